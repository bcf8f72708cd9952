/*
 * Where malloc and free go when no magazine serves. See slow.h.
 *
 * The idea: what is above the small sizes is mostly a cell that waits in the thread's quick lists,
 * or goes there; everything else is the heap layer's, and all of it while a profile is taken.
 */
#include "api/slow.h"

#include "profile/watch.h"
#include "stats/event.h"

/* While requests are looked at: what a magazine has, for one that is like any other; otherwise
 * NULL, and the request is still to be counted. Requests from outside, to end it, are looked for
 * here too. */
static ALWAYS_INLINE void *pop_counted(size_t size, const struct heap *heap)
{
    uint32_t who = watchers();
    if (size > SMALL_MOST || heap != &heap_default || who == 0 || events_requested() ||
        !watch_counts_plain(who, size))
        return NULL;
    void *object = cache_pop(thread_self.cache, class_of_size(size));
    if (UNLIKELY(object == NULL))
        watch_uncounts(who, size);
    return object;
}

/* A function of its own: it needs registers, and the way of cells has none to spare. */
static NOINLINE void *malloc_long(size_t size, struct heap *heap)
{
    if (heap->hardened != NULL)
        return heap_malloc_hardened(size, heap);
    void *object = pop_counted(size, heap);
    return object != NULL ? object : heap_alloc_above(size, heap);
}

/* A cell of the quick lists; NULL if they have none. */
static ALWAYS_INLINE void *pop_cell(size_t size, struct cache *cache)
{
    bool medium = size_is_below(size - (SMALL_MOST + 1), &page_map.cell_sizes);
    return LIKELY(medium) ? cache_pop_cell(cache, size) : NULL;
}

/* What they do not have, or what is none. */
static NOINLINE void *malloc_missed(size_t size)
{
    return malloc_long(size, &heap_default);
}

NOINLINE void *malloc_above(size_t size, struct cache *cache)
{
    void *cell = pop_cell(size, cache);
    return LIKELY(cell != NULL) ? cell : malloc_missed(size);
}

NOINLINE void *malloc_above_in(size_t size, struct cache *cache, struct heap *heap)
{
    void *cell = pop_cell(size, cache);
    return LIKELY(cell != NULL) ? cell : malloc_long(size, heap);
}

NOINLINE void free_of(void *block, size_t class, struct heap *only)
{
    if (class == PAGE_MAP_HARDENED)
        heap_free_hardened(only, block, SIZE_MAX);
    else if (class <= PAGE_MAP_CELL || UNLIKELY(!heap_push_other(only, (uintptr_t)block, class)))
        heap_free_of(only, block, class);
}

NOINLINE void free_slow(void *block, size_t class, struct cache *cache)
{
    if (LIKELY(class == PAGE_MAP_CELL)) { /* a magazine is full less often than a cell is freed */
        if (UNLIKELY(!cache_push_cell(cache, (uintptr_t)block)))
            free_of(block, PAGE_MAP_CELL, NULL);
    } else if (class == PAGE_MAP_HARDENED) {
        heap_free_plain_hardened(block);
    } else if (class == 0) {
        heap_free_unmapped(block);
    } else if (class < CLASS_COUNT) {
        heap_free_of(NULL, block, class);
    } else {
        free_of(block, class, NULL);
    }
}
