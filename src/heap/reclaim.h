/*
 * Giving memory back: when the program asks for it, and when a request was refused. Running out of
 * memory is handled here and nowhere else.
 */
#ifndef SNUG_HEAP_RECLAIM_H
#define SNUG_HEAP_RECLAIM_H

#include "heap/heap.h"

/* The steps that are tried, one after the other, when there is no memory. */
enum reclaim_step {
    RECLAIM_OWN,    /* all that this heap keeps goes back, the thread's cache first */
    RECLAIM_OTHERS, /* and what other heaps keep: they may share a provider, and do share the
                       limits of the process */
    RECLAIM_TELL,   /* the program's function for this heap may free something */
    RECLAIM_END
};

/* Takes the next step after which a refused request for `bytes` of a heap may succeed. False: no
 * step is left. A request that no step could serve does not cost the program its caches. */
bool heap_reclaim(struct heap *heap, size_t bytes, enum reclaim_step *step);

/* Calls the program's function if a heap has grown beyond its soft limit. Returns `block`. */
void *heap_look_at_limit(struct heap *heap, void *block);

#endif
