/*
 * Where malloc and free go when no magazine serves, of malloc's heap and of all others; and errno.
 *
 * The idea: what is above the small sizes is mostly a cell that waits in the thread's quick lists,
 * or goes there; everything else is the heap layer's, and all of it while a profile is taken.
 */
#ifndef SNUG_API_SLOW_H
#define SNUG_API_SLOW_H

#include "heap/user_heaps.h"

/* A block above the small sizes, or of any size while requests are looked at: a cell, mostly from
 * the quick lists of `cache`, which is the thread's of that heap. */
static ALWAYS_INLINE void *malloc_above(size_t size, struct heap *heap, struct cache *cache)
{
    if (UNLIKELY(!size_may_be_cell(size)))
        return heap_alloc_counted(size, heap, cache);
    void *cell = cache_pop_cell(cache, size);
    return LIKELY(cell != NULL) ? cell : heap_alloc_slow(size, heap);
}

/* Frees what a magazine did not take: cells, other heaps' blocks, and what is not of the class of
 * its page or finds no room. `cache` is the thread's of malloc's heap. */
static ALWAYS_INLINE void free_above(void *block, size_t class, struct cache *cache)
{
    /* A magazine is full less often than a cell is freed. */
    if (UNLIKELY(class != PAGE_MAP_CELL) || UNLIKELY(!cache_push_cell(cache, (uintptr_t)block)))
        heap_free_slow(block, class);
}

/* What a free may say of who made its block. */
static inline enum maker maker_that_counts(enum maker maker)
{
    return heap_makers_count ? maker : MADE_BY_MALLOC;
}

#endif
