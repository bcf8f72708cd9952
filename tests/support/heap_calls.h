/*
 * The ways into the heap and out of it as tests call them: of malloc's heap, and of one.
 */
#ifndef SNUG_TESTS_HEAP_CALLS_H
#define SNUG_TESTS_HEAP_CALLS_H

#include "heap/thread.h"

static inline void *heap_alloc_in(struct heap *heap, size_t bytes)
{
    return size_is_below(bytes, &page_map.small_sizes)
               ? heap_alloc_small(bytes, heap, heap_cache_if_any(heap))
               : heap_alloc_slow(bytes, heap);
}

static inline void *heap_alloc(size_t bytes)
{
    return heap_alloc_in(&heap_default, bytes);
}

static inline void heap_free_in(struct heap *heap, void *block)
{
    heap_free_of(heap, block, page_map_class((uintptr_t)block));
}

static inline void heap_free(void *block)
{
    heap_free_slow(block, page_map_class((uintptr_t)block));
}

#endif
