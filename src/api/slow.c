/*
 * Where malloc and free go when no magazine serves. See slow.h.
 *
 * The idea: what is above the small sizes is mostly a cell that waits in the thread's quick lists, or
 * goes there; everything else is the heap layer's.
 */
#include "api/slow.h"

NOINLINE void *malloc_above(size_t size, struct cache *cache, struct heap *heap)
{
    if (UNLIKELY(size > CELL_MOST))
        return heap == &heap_default ? heap_alloc_large(size) : heap_alloc_with(size, cache, heap);
    void *cell = cache_pop_cell(cache, size);
    return LIKELY(cell != NULL) ? cell : heap_alloc_with(size, cache, heap);
}

NOINLINE void free_of(void *block, size_t class, struct heap *only)
{
    if (class <= PAGE_MAP_CELL || UNLIKELY(!heap_push_other(only, (uintptr_t)block, class)))
        heap_free_of(only, block, class);
}

NOINLINE void free_slow(void *block, size_t class)
{
    if (class - 1 < CLASS_COUNT - 1)
        heap_free_of(NULL, block, class);
    else if (class == 0)
        heap_free_large(block);
    else if (UNLIKELY(class != PAGE_MAP_CELL))
        free_of(block, class, NULL);
    else if (UNLIKELY(!cache_push_cell(thread_self.cache, (uintptr_t)block)))
        free_of(block, PAGE_MAP_CELL, NULL);
}
