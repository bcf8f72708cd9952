/*
 * Doubly linked lists whose nodes live inside what they link: nothing is allocated, and an element
 * leaves its list in O(1) without knowing which list that is. A list is a ring around its head.
 */
#ifndef SNUG_BASE_LIST_H
#define SNUG_BASE_LIST_H

#include "base/common.h"

struct list {
    struct list *next;
    struct list *prev;
};

static inline void list_init(struct list *head)
{
    head->next = head;
    head->prev = head;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

static inline void list_push(struct list *head, struct list *node)
{
    node->next = head->next;
    node->prev = head;
    head->next->prev = node;
    head->next = node;
}

static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = node;
    node->prev = node;
}

#define LIST_EACH(node, head) \
    for (struct list *node = (head)->next; node != (head); node = node->next)

#endif
