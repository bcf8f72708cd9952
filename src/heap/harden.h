/*
 * Hardened heaps among the others: which heap is one, the threads' caches of malloc's, and what is
 * done with all heaps. See hardened/hardened.h for what they are.
 *
 * A thread's cache of malloc's heap is found at once, that of another heap through the thread's
 * table (thread.h). Its memory stays with the heap's state, which later heaps take over; what the
 * table of a thread says of a heap that is gone is told by the heap's id.
 */
#ifndef SNUG_HEAP_HARDEN_H
#define SNUG_HEAP_HARDEN_H

#include "hardened/hardened.h"
#include "heap/heap.h"

/* Makes a heap hardened, before its first block. False: no memory. */
bool heap_harden(struct heap *heap);

/* Frees all hardened blocks of a heap, with which it goes on; or for good. Nobody else may use it.
 */
void heap_harden_clear(struct heap *heap);
void heap_harden_end(struct heap *heap);

/* Before the latter, with heaps_lock held: no thread has a cache of it any more. */
static inline void heap_harden_leave(struct heap *heap)
{
    if (heap->hardened != NULL)
        hard_caches_clear(heap->hardened, true);
}

/* Empties the calling thread's quarantine and that of all, and gives free memory back. Returns the
 * bytes. */
size_t heap_harden_trim(struct heap *heap);

/* The calling thread's cache of malloc's heap, or &hard_cache_none. */
extern INTERNAL __thread struct hard_cache *hard_cache_self
    __attribute__((tls_model("initial-exec")));

/* How many sizes, from 1 on, that cache may serve without a further look: those below OBJECT_LONG,
 * and below HARD_FAST_MOST; or 0 while requests are counted (heap_serve). */
extern INTERNAL size_t hard_short_sizes, hard_fast_sizes;

/* Ends it. */
void heap_harden_thread_end(void);

/* Looks for misuse that nobody would find any more, as the process ends. */
void heap_harden_exit(void);

/* In a child of fork, with all locks held. */
void heap_harden_forked(struct heap *heap);

/* The locks of one rank. */
void heap_harden_each_lock(struct heap *heap, enum lock_rank rank, void (*act)(struct lock *lock));

#endif
