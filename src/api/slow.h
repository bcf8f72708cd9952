/*
 * Where malloc and free go when the fast path does not serve, of malloc's heap and of all others;
 * and errno.
 */
#ifndef SNUG_API_SLOW_H
#define SNUG_API_SLOW_H

#include <errno.h>

#include "heap/user_heaps.h"

/* A block above the small sizes, or of any size while requests are looked at: a cell, mostly from
 * the quick lists of `cache`, which is the thread's. Sets errno. */
NOINLINE void *malloc_above(size_t size, struct cache *cache);

/* The same of another heap, of which `cache` is the thread's. */
NOINLINE void *malloc_above_in(struct heap *heap, struct cache *cache, size_t size);

/* Frees what a magazine did not take: cells, other heaps' blocks, and what is not of the class of
 * its page or finds no room. `cache` is the thread's of malloc's heap. */
NOINLINE void free_slow(void *block, size_t class, struct cache *cache);

/* The same of a block that must be of heap `only`, unless that is NULL, and not by the quick lists
 * of malloc's heap. */
NOINLINE void free_of(void *block, size_t class, struct heap *only);

static inline void *or_no_memory(void *block)
{
    if (UNLIKELY(block == NULL))
        errno = ENOMEM;
    return block;
}

#endif
