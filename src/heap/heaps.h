/*
 * Heaps beside malloc's: which there are, and the threads' caches of them.
 *
 * The idea: such a heap has segments, slabs and cells of its own, so all that is in it can be given
 * back segment by segment. A thread that uses it often gets a cache of it, with the same magazines
 * as malloc's cache has, found through a small table of the thread's (struct heap_slot).
 *
 * A cache belongs to its heap as well as to its thread: destroying the heap frees the caches of all
 * threads. What such a thread's table says then is stale, and harmless, since no other heap ever
 * has the same id; and a thread that ends believes only what the cache itself still says, under the
 * lock.
 *
 * Thread-safe but for heap_clear and heap_destroy: those need that nobody else uses that heap at
 * the moment. RANK_HEAPS.
 */
#ifndef SNUG_HEAP_HEAPS_H
#define SNUG_HEAP_HEAPS_H

#include "heap/heap.h"

/* What is kept of a heap beside what malloc's has too. */
struct heap_record {
    struct heap heap;
    struct list link;   /* in the list of heaps */
    struct list caches; /* the threads' caches of it */
    bool caching;       /* threads may have caches of it */
    struct arena *arena;
};

/* A new heap on a provider, which must outlive it; NULL: no memory. */
struct heap *heap_create(const struct provider *provider);

/* Frees everything in a heap at once. It stays usable. */
void heap_clear(struct heap *heap);

/* Frees everything in a heap, and the heap. */
void heap_destroy(struct heap *heap);

/* The calling thread's cache of a heap, as heap_thread_cache. */
struct cache *heap_cache(struct heap *heap);

static inline struct heap *heap_of_spans(struct spans *spans)
{
    return CONTAINER_OF(spans, struct heap, spans);
}

/* The calling thread's cache of a heap if it is there without looking further. */
static ALWAYS_INLINE struct cache *heap_cache_fast(const struct heap *heap)
{
    const struct heap_slot *slot = &thread_self.slots[heap->id % HEAP_SLOTS];
    return LIKELY(slot->id == heap->id) ? slot->cache : (struct cache *)&cache_none;
}

/* Puts a small object or a cell of a heap other than malloc's, as its page's class byte says, into
 * the calling thread's magazines. False: nothing was done, as for cache_push. */
static inline bool heap_push_other(uintptr_t address, size_t byte)
{
    uintptr_t entry = page_map_entry(address);
    if (UNLIKELY(!entry_is_span(entry)))
        return false;
    const struct span *span = (const struct span *)entry;
    struct cache *cache = heap_cache_fast(heap_of_spans(span_home(span)));
    return byte == PAGE_MAP_OTHER ? cache_push_of(cache, address, span->class)
                                  : cache_push_cell(cache, address);
}

/* Gives the calling thread's caches of all heaps back; it is about to end. */
void heaps_thread_end(void);

/* Calls `act` for every heap but malloc's until it returns true; returns that heap, or NULL. The
 * list is locked meanwhile. */
struct heap *heaps_find(bool (*act)(struct heap *heap, void *context), void *context);

/* Every heap's locks of one rank, and the list's; for fork. */
void heaps_each_lock_of(enum lock_rank rank, void (*act)(struct lock *lock));

#endif
