/*
 * Where malloc and free go when no magazine serves. See slow.h.
 *
 * The idea: what is above the small sizes is mostly a cell that waits in the thread's quick lists,
 * or goes there; everything else is the heap layer's, and all of it while a profile is taken.
 */
#include "api/slow.h"

#include "magazine/counted.h"

static ALWAYS_INLINE void *malloc_long(size_t size, struct heap *heap)
{
    if (UNLIKELY(heap->hardened != NULL))
        return heap_malloc_hardened(size, heap);
    return heap_alloc_above(size, heap);
}

/* Functions of their own, here and below: each needs registers, which the others have to spare. */
NOINLINE void *malloc_missed(size_t size)
{
    return malloc_long(size, &heap_default);
}

static NOINLINE void *malloc_counted_cell(size_t size)
{
    void *cell = cache_pop_cell_counted(thread_self.cache, size);
    return LIKELY(cell != NULL) ? cell : malloc_missed(size);
}

NOINLINE void *malloc_counted(size_t size)
{
    if (UNLIKELY(!cache_may_count(size)))
        return malloc_long(size, &heap_default);
    if (UNLIKELY(size > SMALL_MOST))
        return malloc_counted_cell(size);
    void *object = cache_pop_counted(thread_self.cache, class_of_size(size), size);
    return LIKELY(object != NULL) ? object : malloc_missed(size);
}

void *malloc_above_in(struct heap *heap, struct cache *cache, size_t size)
{
    void *cell = LIKELY(size_may_be_cell(size)) ? cache_pop_cell(cache, size) : NULL;
    return LIKELY(cell != NULL) ? cell : malloc_long(size, heap);
}

NOINLINE void free_of(void *block, size_t class, struct heap *only)
{
    if (class == PAGE_MAP_HARDENED)
        heap_free_hardened(only, block, SIZE_MAX);
    else if (class <= PAGE_MAP_CELL || UNLIKELY(!heap_push_other(only, (uintptr_t)block, class)))
        heap_free_of(only, block, class);
}

NOINLINE void free_slow(void *block, size_t class)
{
    if (class == 0)
        heap_free_unmapped(block);
    else if (class == PAGE_MAP_HARDENED)
        heap_free_plain_hardened(block);
    else if (class < CLASS_COUNT)
        heap_free_of(NULL, block, class);
    else
        free_of(block, class, NULL);
}
