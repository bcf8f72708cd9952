/*
 * Stacks, each kept once: a tree of calls.
 *
 * The idea: a node is a call, and its parent the call that it was made from. A stack is the number
 * of its innermost node, and stacks that begin alike share what they begin with: a million sites
 * below the same main are little more than a million nodes.
 *
 * A node's address means something only together with the object that had it at that time: objects
 * are closed, and others come in their place. So each object that was met is written down.
 *
 * Not thread-safe: under the profile's lock. Nothing is ever removed, so whoever has a number, in
 * this process or another, may follow it at any time. 24 bytes for each node, bounded as all tables
 * are (table.h).
 */
#ifndef SNUG_PROFILE_STACKS_H
#define SNUG_PROFILE_STACKS_H

#include "profile/index.h"
#include "profile/unwind.h"

/* Layout: of an object's name; longer ones are cut, from the front. */
enum { OBJECT_NAME_MOST = 232 };

struct stack_object {
    uint64_t start, end, bias;
    char name[OBJECT_NAME_MOST]; /* of its file; empty: the program */
};

struct stack_node {
    struct indexed call; /* key: the address of code in the call; salt: the parent */
    uint32_t object;     /* 0: in none */
    uint32_t site;       /* of what was allocated in this call; 0: nothing was */
};

struct stacks {
    struct index nodes;
    struct table objects;
};

void stacks_init(struct stacks *stacks);

/* The number of a stack; 0: there is no room. */
uint32_t stacks_put(struct stacks *stacks, const struct unwind_stack *stack);

static inline struct stack_node *stacks_node(const struct stacks *stacks, uint32_t number)
{
    return index_at(&stacks->nodes, number);
}

#endif
