/*
 * Where malloc and free go when the fast path does not serve, of malloc's heap and of all others;
 * and errno.
 */
#ifndef SNUG_API_SLOW_H
#define SNUG_API_SLOW_H

#include <errno.h>

#include "heap/user_heaps.h"

/* A block of a size that the quick lists may serve, when they do not. Sets errno, as the next. */
NOINLINE void *malloc_missed(size_t size);

/* A large block, or one of any size while requests are looked at. */
NOINLINE void *malloc_counted(size_t size);

static ALWAYS_INLINE bool size_may_be_cell(size_t size)
{
    return size_is_below(size - (SMALL_MOST + 1), &page_map.cell_sizes);
}

/* A block above the small sizes, or of any size while requests are looked at: a cell, mostly from
 * the quick lists of `cache`, which is the thread's. */
static ALWAYS_INLINE void *malloc_above(size_t size, struct cache *cache)
{
    if (UNLIKELY(!size_may_be_cell(size)))
        return malloc_counted(size);
    void *cell = cache_pop_cell(cache, size);
    return LIKELY(cell != NULL) ? cell : malloc_missed(size);
}

/* The same of another heap, of which `cache` is the thread's. */
NOINLINE void *malloc_above_in(struct heap *heap, struct cache *cache, size_t size);

/* Frees a block that must be of heap `only`, unless that is NULL, and not by the quick lists of
 * malloc's heap. */
NOINLINE void free_of(void *block, size_t class, struct heap *only);

/* Frees what neither a magazine nor a quick list took. */
NOINLINE void free_slow(void *block, size_t class);

/* Frees what a magazine did not take: cells, other heaps' blocks, and what is not of the class of
 * its page or finds no room. `cache` is the thread's of malloc's heap. */
static ALWAYS_INLINE void free_above(void *block, size_t class, struct cache *cache)
{
    if (UNLIKELY(class != PAGE_MAP_CELL)) /* a magazine is full less often than a cell is freed */
        free_slow(block, class);
    else if (UNLIKELY(!cache_push_cell(cache, (uintptr_t)block)))
        free_of(block, PAGE_MAP_CELL, NULL);
}

static inline void *or_no_memory(void *block)
{
    if (UNLIKELY(block == NULL))
        errno = ENOMEM;
    return block;
}

#endif
