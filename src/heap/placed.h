/*
 * Heaps whose records lie in the program's own buffers, and which of them a child of fork has.
 *
 * The idea: a fork copies a buffer like all else, unless the program has said otherwise.
 *
 * Memory that is shared has one heap, with one set of locks, for both processes. Fork does not take
 * them, as nothing there is copied. Nor may the child release what the parent's threads hold, or
 * change the links to other heaps, so the heap is in no list of the child's.
 *
 * Memory that is not handed on (MADV_DONTFORK), or comes empty (MADV_WIPEONFORK), has no heap in
 * it. The child forgets such a one without a look at it. So what it needs to know stands here, and
 * in the list of heaps they come last, where they can be cut off.
 *
 * Cost: a fork asks the system three times for each such heap, a child once. The list of heaps must
 * be locked; in a child there is no other thread.
 */
#ifndef SNUG_HEAP_PLACED_H
#define SNUG_HEAP_PLACED_H

#include "heap/user_heaps.h"

/* Takes note of a heap, which has an id, and puts it into the list. */
void placed_add(struct list *heaps, struct heap_record *record);

/* The opposite. False: it is the parent's, and nothing was done. */
bool placed_remove(struct heap_record *record);

/* Around a fork: looks which are shared with the child, and ends that. Otherwise none counts as
 * shared. */
void placed_set_forking(bool forking);
bool placed_is_shared(const struct heap_record *record);

/* In every child of a fork, before any heap is looked at. */
void placed_fork_in_child(struct list *heaps);

#endif
