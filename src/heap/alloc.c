/*
 * Taking blocks of any size, from any heap: the one way in. See heap.h, and free.c for the way out.
 *
 *   hardened?  then alloc_hardened.c
 *   poll, then
 *   take:  the thread's cache of the heap, who looks at requests; then alloc_once, by size
 *          small   its magazine; spare -> depot -> slabs -> pages (cache_refill)
 *          medium  its quick lists; free cells, these lists joined -> pages (cell_alloc_missed)
 *          large   pages
 *          and if there was nothing, again, as long as heap_reclaim finds something to give back
 */
#include "heap/alloc.h"

#include <string.h>

#include "hardened/hardened.h"
#include "heap/empty.h"
#include "heap/reclaim.h"
#include "heap/tick.h"
#include "heap/user_heaps.h"
#include "magazine/counted.h"
#include "magazine/shared.h"
#include "pageheap/block_zero.h"
#include "stats/stats.h"

/* ---- By size ---- */

static void *cell_alloc_slow(struct heap *heap, size_t bytes, size_t alignment, size_t *dirty)
{
    struct misuse misuse;
    void *block = arenas_alloc_cell(&heap->arenas, bytes, alignment, CELLS_NEW, &misuse, dirty);
    if (UNLIKELY(misuse.kind != MISUSE_NONE))
        misuse_report("malloc", &misuse);
    return block;
}

/* Before memory is touched that no cell had yet, what waits in the quick lists is joined with its
 * neighbours: then they may hold a lot at no cost in memory. What is spared (quick.h) may wait
 * until a span is needed, but not longer: a short cell keeps apart what is free on both sides of
 * it. */
static ALWAYS_INLINE enum cells_reach cell_reach(const struct cache *cache)
{
    return cache_cells_wait(cache) ? CELLS_USED : CELLS_HELD;
}

/* A cell when the quick lists had none. */
static void *cell_alloc_missed(struct heap *heap, struct cache *cache, size_t bytes,
                               size_t alignment, size_t *dirty)
{
    if (cache_has_cells(cache)) {
        struct misuse misuse;
        void *block =
            arenas_alloc_cell(&heap->arenas, bytes, alignment, cell_reach(cache), &misuse, dirty);
        if (block != NULL) {
            if (UNLIKELY(misuse.kind != MISUSE_NONE)) /* another arena has served */
                misuse_report("malloc", &misuse);
            return block;
        }
        cache_join_cells(cache);
    }
    return cell_alloc_slow(heap, bytes, alignment, dirty);
}

/* The same from the free cells here, if nothing has to be joined for it. NULL: not so. A function
 * of its own, since to have it in both who call it makes the library longer by a page. */
static NOINLINE void *cell_alloc_here(struct heap *heap, struct cache *cache, size_t bytes,
                                      size_t *dirty)
{
    if (UNLIKELY(!cache_lacks_cell(cache, bytes)))
        return NULL;
    void *block = arenas_alloc_cell_here(&heap->arenas, bytes, cell_reach(cache), dirty);
    if (LIKELY(block != NULL))
        cache_note_miss(cache, bytes);
    return block;
}

void *cell_alloc(struct heap *heap, struct cache *cache, size_t bytes, size_t *dirty)
{
    void *block = cache_pop_cell(cache, bytes);
    if (block != NULL) {
        *dirty = bytes; /* it was in use not long ago */
        return block;
    }
    block = cell_alloc_here(heap, cache, bytes, dirty);
    if (LIKELY(block != NULL))
        return block;
    cache_miss_cell(cache, bytes);
    return cell_alloc_missed(heap, cache, bytes, MIN_ALIGN, dirty);
}

static void *alloc_medium_aligned(struct heap *heap, struct cache *cache, size_t bytes,
                                  size_t alignment, size_t *dirty)
{
    bytes = size_max(bytes, SMALL_MOST + 1);
    cache_miss_cell_aligned(cache, bytes);
    return cell_alloc_missed(heap, cache, bytes, alignment, dirty);
}

static void *alloc_object(struct heap *heap, struct cache *cache, size_t class)
{
    void *object = LIKELY(cache_exists(cache)) ? cache_refill(cache, class) : NULL;
    return LIKELY(object != NULL) ? object : shared_alloc(&heap->arenas, class);
}

static COLD void *alloc_compact(struct heap *heap, struct cache *cache, size_t class)
{
    class = class_compact(class);
    void *object = alloc_object(heap, cache, class);
    return object != NULL ? object : object_alloc_larger(&heap->arenas, class);
}

/* What serves a request better than the class's magazine: that of the processor if the thread has
 * no cache; a cell instead of an object of a class that is seldom asked for. NULL: it is to be an
 * object, of what *class is then: of a larger one, if it would grow and much of that lies idle. */
static NOINLINE void *alloc_otherwise(struct heap *heap, struct cache *cache, size_t *class)
{
    size_t dirty;
    if (!cache_is_empty(cache, *class) || cache_has_spare(cache, *class))
        return NULL;
    void *object = cache_exists(cache) ? NULL : shared_pop(&heap->arenas, *class);
    if (object != NULL || class_bytes(*class) < BORROW_LEAST)
        return object;
    if (arenas_class_is_cold(&heap->arenas, *class))
        return cell_alloc(heap, cache, class_bytes(*class), &dirty);
    size_t lender = arenas_class_lender(&heap->arenas, *class);
    *class = lender != 0 ? lender : *class;
    return NULL;
}

static ALWAYS_INLINE void *alloc_small(struct heap *heap, struct cache *cache, size_t bytes)
{
    if (UNLIKELY(bytes == 0)) {
        void *empty = heap == &heap_default ? empty_alloc() : NULL;
        if (empty != NULL)
            return empty;
        bytes = 1;
    }
    size_t class = class_of_size(bytes);
    sample_request(class, bytes);
    if (UNLIKELY(heap->page_heap.compact))
        return alloc_compact(heap, cache, class);
    void *block = alloc_otherwise(heap, cache, &class);
    return UNLIKELY(block != NULL) ? block : alloc_object(heap, cache, class);
}

static NOINLINE void *alloc_large(struct heap *heap, size_t bytes, size_t alignment, size_t *dirty)
{
    arenas_end_orphans_once(&heap->arenas);
    return large_alloc(&heap->page_heap, bytes, alignment, dirty);
}

static void *alloc_aligned(struct heap *heap, struct cache *cache, size_t alignment, size_t bytes,
                           size_t *dirty)
{
    if (bytes > MAX_REQUEST || alignment > MAX_REQUEST)
        return NULL;
    bytes += bytes == 0;
    size_t class = class_of_aligned(alignment, bytes);
    if (class != 0)
        return alloc_object(heap, cache, class);
    if (alignment < PAGE_BYTES && bytes + alignment <= medium_most(heap))
        return alloc_medium_aligned(heap, cache, bytes, alignment, dirty);
    return alloc_large(heap, bytes, alignment, dirty);
}

static NOINLINE void *alloc_larger(struct heap *heap, struct cache *cache, size_t bytes,
                                   size_t *dirty)
{
    if (bytes <= medium_most(heap))
        return cell_alloc(heap, cache, bytes, dirty);
    return alloc_large(heap, bytes, MIN_ALIGN, dirty);
}

static ALWAYS_INLINE void *alloc_once(struct heap *heap, struct cache *cache, size_t alignment,
                                      size_t bytes, size_t *dirty)
{
    *dirty = SIZE_MAX;
    if (UNLIKELY(alignment > MIN_ALIGN))
        return alloc_aligned(heap, cache, alignment, bytes, dirty);
    if (UNLIKELY(bytes > SMALL_MOST))
        return alloc_larger(heap, cache, bytes, dirty);
    return alloc_small(heap, cache, bytes);
}

/* The same for what is seldom. */
static COLD void *alloc_once_seldom(struct heap *heap, struct cache *cache, size_t alignment,
                                    size_t bytes, size_t *dirty)
{
    return alloc_once(heap, cache, alignment, bytes, dirty);
}

/* What another structure may still have where that for this size has nothing: pages where a span of
 * cells cannot be had, a cell where a slab cannot. So hardly a request fails that a longer one
 * would not. */
static COLD void *alloc_elsewhere(struct heap *heap, size_t alignment, size_t bytes, size_t *dirty)
{
    if (bytes > CELL_MOST)
        return NULL;
    if (bytes > SMALL_MOST)
        return alloc_large(heap, bytes, alignment, dirty);
    if (alignment > MIN_ALIGN || heap->page_heap.compact)
        return NULL;
    return cell_alloc_slow(heap, size_max(bytes, 1), MIN_ALIGN, dirty);
}

/* The same again after each step that gives some back. Of what it finds elsewhere a heap at its end
 * may live for long: then that is looked for first, for a moment. */
static void *alloc_reclaimed(struct heap *heap, struct cache *cache, size_t alignment, size_t bytes,
                             size_t *dirty)
{
    void *block = NULL;
    enum reclaim_step step = RECLAIM_OWN;
    bool more;
    do {
        more = heap_reclaim(heap, size_max(bytes, alignment), &step);
        if (more)
            block = alloc_once_seldom(heap, cache, alignment, bytes, dirty);
        if (block == NULL) {
            block = alloc_elsewhere(heap, alignment, bytes, dirty);
            page_heap_set_dry(&heap->page_heap, block != NULL);
        }
    } while (block == NULL && more);
    return block;
}

/* When there was no memory. None is told to the program before the provider was asked. */
static COLD void *alloc_again(struct heap *heap, struct cache *cache, size_t alignment,
                              size_t bytes, size_t *dirty)
{
    void *block = NULL;
    if (page_heap_is_dry(&heap->page_heap)) {
        block = alloc_elsewhere(heap, alignment, bytes, dirty);
        if (block == NULL) {
            page_heap_set_dry(&heap->page_heap, false);
            block = alloc_once_seldom(heap, cache, alignment, bytes, dirty);
        }
    }
    return block != NULL ? block : alloc_reclaimed(heap, cache, alignment, bytes, dirty);
}

/* Looks whether a heap is over its limit, after a block was taken from it. */
static ALWAYS_INLINE void *look_at_limit(struct heap *heap, void *block)
{
    return LIKELY(heap->record == NULL) ? block : heap_look_at_limit(heap, block);
}

void *block_alloc(struct heap *heap, struct cache *cache, size_t alignment, size_t bytes,
                  size_t *dirty)
{
    void *block = alloc_once(heap, cache, alignment, bytes, dirty);
    if (UNLIKELY(block == NULL))
        return alloc_again(heap, cache, alignment, bytes, dirty);
    return look_at_limit(heap, block);
}

/* ---- While requests are looked at ---- */

/* A sample that would be no large block by its size. */
static void *sample_alloc_smaller(struct heap *heap, size_t alignment, size_t bytes, size_t *dirty)
{
    if (heap != &heap_default)
        return look_at_limit(heap, alloc_large(heap, bytes + (bytes == 0), alignment, dirty));
    heap_poll_taking(heap_samples);
    return alloc_once_seldom(heap_samples, heap_cache(heap_samples), alignment, bytes, dirty);
}

COLD void *sample_alloc(struct heap *heap, struct cache *cache, size_t alignment, size_t bytes,
                        size_t *dirty)
{
    bool large = bytes > medium_most(heap) || alignment >= PAGE_BYTES;
    void *block = large ? block_alloc(heap, cache, alignment, bytes, dirty)
                        : sample_alloc_smaller(heap, alignment, bytes, dirty);
    if (block != NULL && (!large || page_map_class((uintptr_t)block) == 0))
        profile_put(block, bytes);
    else if (!large)
        profile_miss();
    return block;
}

/* A block that is looked at; NULL: it is like any other. */
static void *alloc_watched(struct heap *heap, struct cache *cache, size_t alignment, size_t bytes,
                           size_t *dirty)
{
    uint32_t who = watch_counts(bytes);
    if ((who & WATCH_PROFILE) != 0)
        return sample_alloc(heap, cache, alignment, bytes, dirty);
    bool guarded = (who & WATCH_GUARDS) != 0 && heap == &heap_default;
    void *block = guarded ? guard_alloc(bytes, alignment) : NULL;
    if (block != NULL)
        *dirty = 0;
    return block;
}

/* A request that is not looked at gets what the fast path would have given. */
static COLD void *take_watched(struct heap *heap, struct cache *cache, size_t alignment,
                               size_t bytes, size_t *dirty)
{
    size_t class = class_of_aligned(alignment, bytes);
    void *block = alloc_watched(heap, cache, alignment, bytes, dirty);
    if (block == NULL) {
        *dirty = SIZE_MAX;
        block = class != 0 ? cache_pop(cache, class) : NULL;
    }
    return block != NULL ? block : or_no_memory(block_alloc(heap, cache, alignment, bytes, dirty));
}

/* An object from a magazine for a request that is counted, but not looked at; or NULL. */
static NOINLINE void *pop_counted(const struct heap *heap, size_t alignment, size_t bytes)
{
    size_t class = class_of_aligned(alignment, bytes);
    return LIKELY(class != 0) ? cache_pop_counted(heap_cache_if_any(heap), class, bytes) : NULL;
}

/* ---- The way in ---- */

/* Takes a block of a heap that is not hardened, after a poll. This is a function of its own, and so
 * are the next ones: the short ways need fewer registers. */
static NOINLINE void *take(struct heap *heap, size_t alignment, size_t bytes, size_t *dirty,
                           bool watched)
{
    struct cache *cache = heap_cache(heap);
    return UNLIKELY(watched) ? take_watched(heap, cache, alignment, bytes, dirty)
                             : or_no_memory(block_alloc(heap, cache, alignment, bytes, dirty));
}

static NOINLINE void *alloc_polled(size_t bytes, struct heap *heap)
{
    size_t dirty;
    return take(heap, MIN_ALIGN, bytes, &dirty, watch_is_on());
}

static NOINLINE void *alloc_aligned_other(struct heap *heap, size_t alignment, size_t bytes)
{
    if (UNLIKELY(heap->hardened != NULL))
        return heap_alloc_hardened(heap, alignment, bytes);
    if (alignment < PAGE_BYTES) /* whole pages have polled */
        heap_poll_taking(heap);
    size_t dirty;
    bool watched = watch_is_on();
    void *block = UNLIKELY(watched) ? pop_counted(heap, alignment, bytes) : NULL;
    if (UNLIKELY(block != NULL))
        return block;
    return take(heap, alignment, bytes, &dirty, watched);
}

/* A large block where none that waits served. The lock is held, and is not after that. */
static NOINLINE void *alloc_not_recent(size_t bytes, struct heap *heap, size_t alignment)
{
    void *block = NULL;
    if (LIKELY(!arenas_have_orphans(&heap->arenas)))
        block = large_alloc_missed(&heap->page_heap, bytes, alignment);
    else
        lock_release(&heap->page_heap.lock);
    if (UNLIKELY(block == NULL))
        return alloc_aligned_other(heap, alignment, bytes);
    heap_cache(heap); /* with it a thread that takes only such blocks has its own counters */
    return look_at_limit(heap, block);
}

/* A large block: mostly one that was freed last. */
static NOINLINE void *alloc_recent(size_t bytes, struct heap *heap)
{
    if (UNLIKELY(watch_is_on()))
        return alloc_polled(bytes, heap);
    void *block = large_alloc_recent(&heap->page_heap, bytes, 1); /* anywhere */
    return LIKELY(block != NULL) ? look_at_limit(heap, block)
                                 : alloc_not_recent(bytes, heap, PAGE_BYTES);
}

/* A medium block that the thread's quick lists do not have: mostly a free cell. */
static NOINLINE void *alloc_joined(size_t bytes, struct heap *heap)
{
    size_t dirty;
    struct cache *cache = heap_cache_if_any(heap);
    void *block = NULL;
    if (LIKELY(cache_exists(cache) && !watch_is_on()))
        block = cell_alloc_here(heap, cache, bytes, &dirty);
    return LIKELY(block != NULL) ? look_at_limit(heap, block) : alloc_polled(bytes, heap);
}

static ALWAYS_INLINE void *alloc_any(size_t bytes, struct heap *heap)
{
    struct polled polled = heap_poll_with(bytes, heap);
    if (polled.bytes <= SMALL_MOST)
        return alloc_polled(polled.bytes, polled.heap);
    return polled.bytes > CELL_MOST ? alloc_recent(polled.bytes, polled.heap)
                                    : alloc_joined(polled.bytes, polled.heap);
}

void *heap_alloc_slow(size_t bytes, struct heap *heap)
{
    return LIKELY(heap->hardened == NULL) ? alloc_any(bytes, heap)
                                          : heap_malloc_hardened(bytes, heap);
}

void *heap_alloc_small(size_t bytes, struct heap *heap, struct cache *cache)
{
    if (UNLIKELY(events_wait() || !cache_exists(cache)))
        return heap_alloc_slow(bytes, heap);
    void *object = alloc_small(heap, cache, bytes);
    return LIKELY(object != NULL) ? look_at_limit(heap, object) : alloc_polled(bytes, heap);
}

static COLD void *alloc_counted_cell(size_t bytes, struct heap *heap, struct cache *cache)
{
    void *cell = cache_pop_cell_counted(cache, bytes);
    return LIKELY(cell != NULL) ? cell : heap_alloc_slow(bytes, heap);
}

void *heap_alloc_counted(size_t bytes, struct heap *heap, struct cache *cache)
{
    if (UNLIKELY(heap->hardened != NULL))
        return heap_malloc_hardened(bytes, heap);
    if (UNLIKELY(!cache_may_count(bytes)))
        return alloc_any(bytes, heap);
    if (UNLIKELY(bytes > SMALL_MOST))
        return alloc_counted_cell(bytes, heap, cache);
    void *object = cache_pop_counted(cache, class_of_size(bytes), bytes);
    return LIKELY(object != NULL) ? object : heap_alloc_slow(bytes, heap);
}

static ALWAYS_INLINE void *zero(struct heap *heap, void *block, size_t bytes, size_t dirty)
{
    if (block == NULL || dirty == 0)
        return block;
    /* A block that was in use not long ago is mostly in the processor's caches, and soon
     * cleared. In a short one there is nothing that the system could take back. */
    bool cold = dirty == SIZE_MAX && bytes >= RETENTION_PURGE_LEAST;
    if (bytes <= medium_most(heap) && !cold)
        return memset(block, 0, size_min(bytes, dirty));
    block_zero(&heap->page_heap, block, size_min(bytes, dirty));
    return block;
}

void *heap_alloc_zero_in(struct heap *heap, size_t bytes)
{
    if (UNLIKELY(heap->hardened != NULL))
        return heap_alloc_hardened(heap, MIN_ALIGN, bytes);
    heap_poll_taking(heap);
    size_t dirty;
    bool watched = watch_is_on();
    void *object = watched ? pop_counted(heap, MIN_ALIGN, bytes) : NULL;
    if (UNLIKELY(object != NULL))
        return bytes_clear(object, align_up(bytes, MIN_ALIGN));
    void *block = take(heap, MIN_ALIGN, bytes, &dirty, watched);
    return zero(heap, block, bytes, dirty);
}

/* A block aligned to less than a page: mostly a cell that waits in the thread's quick lists. */
static NOINLINE void *alloc_aligned_less(struct heap *heap, size_t alignment, size_t bytes)
{
    void *cell = cache_pop_cell_aligned(heap_cache_if_any(heap), alignment, bytes);
    return LIKELY(cell != NULL) ? cell : alloc_aligned_other(heap, alignment, bytes);
}

/* Whole pages: mostly a block that was freed last. */
static NOINLINE void *alloc_aligned_pages(struct heap *heap, size_t alignment, size_t bytes)
{
    if (UNLIKELY(heap->hardened != NULL))
        return alloc_aligned_other(heap, alignment, bytes);
    heap_poll_taking(heap);
    if (UNLIKELY(watch_is_on()))
        return alloc_aligned_other(heap, alignment, bytes);
    void *block = large_alloc_recent(&heap->page_heap, bytes, alignment);
    return LIKELY(block != NULL) ? look_at_limit(heap, block)
                                 : alloc_not_recent(bytes, heap, alignment);
}

void *heap_alloc_aligned_in(struct heap *heap, size_t alignment, size_t bytes)
{
    return alignment >= PAGE_BYTES ? alloc_aligned_pages(heap, alignment, bytes)
                                   : alloc_aligned_less(heap, alignment, bytes);
}
