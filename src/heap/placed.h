/*
 * Heaps whose records lie in the program's own buffers, and which of them a child of fork has.
 *
 * The idea: a fork copies a buffer like all else, unless the program has said otherwise: memory
 * that is shared stays the parent's, whose locks the child must leave alone; memory that is not
 * handed on (MADV_DONTFORK), or comes empty (MADV_WIPEONFORK), has no heap in it. The child forgets
 * such heaps without a look at them. So what it needs to know of them stands here, and in the list
 * of heaps they come last, where they can be cut off.
 *
 * Cost: a fork asks the system three times for each such heap, a child once. The list of heaps must
 * be locked; in a child there is no other thread.
 */
#ifndef SNUG_HEAP_PLACED_H
#define SNUG_HEAP_PLACED_H

#include "heap/user_heaps.h"

/* Takes note of a heap, which has an id, and puts it into the list. */
void placed_add(struct list *heaps, struct heap_record *record);
void placed_remove(struct heap_record *record);

/* Before a fork. */
void placed_fork_before(void);

/* In every child of a fork, before any heap is looked at. */
void placed_fork_in_child(struct list *heaps);

#endif
