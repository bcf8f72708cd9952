/*
 * Where malloc and free go when the fast path does not serve, of malloc's heap and of all others;
 * and errno. (malloc.c)
 */
#ifndef SNUG_API_SLOW_H
#define SNUG_API_SLOW_H

#include <errno.h>

#include "heap/user_heaps.h"

/* A block of a heap that the magazine of its size did not give: above the small sizes a cell,
 * mostly from the quick lists of `cache`, which is the thread's of that heap. Sets errno. */
NOINLINE void *malloc_slow(size_t size, struct heap *heap, struct cache *cache);

/* Frees what a magazine did not take: cells, other heaps' blocks, and what is not of the class of
 * its page or finds no room. The block must be of heap `only`, unless that is NULL. */
NOINLINE void free_slow(void *block, size_t class, struct heap *only);

static inline void *or_no_memory(void *block)
{
    if (UNLIKELY(block == NULL))
        errno = ENOMEM;
    return block;
}

#endif
