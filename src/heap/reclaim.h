/*
 * Giving memory back: when the program asks for it, and, here and nowhere else, when there is none.
 */
#ifndef SNUG_HEAP_RECLAIM_H
#define SNUG_HEAP_RECLAIM_H

#include "heap/heap.h"

/* What is tried next when there is no memory. */
enum reclaim_step {
    RECLAIM_OWN,    /* all that this heap keeps goes back, the thread's cache first */
    RECLAIM_OTHERS, /* and what other heaps keep: they may share a provider, and do share the
                       limits of the process */
    RECLAIM_TELL,   /* who asked to be told may free something */
    RECLAIM_END
};

/* Does the next thing after which a request for `bytes` of a heap, which was refused, may succeed.
 * False: there is nothing left to do. A request beyond all there is does not cost the program its
 * caches. */
bool heap_reclaim(struct heap *heap, size_t bytes, enum reclaim_step *step);

/* Tells who wants to know if a heap has grown beyond its soft limit. Returns `block`. */
void *heap_look_at_limit(struct heap *heap, void *block);

#endif
