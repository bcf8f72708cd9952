/*
 * Taking and freeing blocks of any size, in any heap: the one way in and the one way out. See
 * heap.h.
 *
 *   take:  poll, the thread's cache of the heap; then by size
 *          small   its magazine; spare -> depot -> slabs -> pages (cache_refill)
 *          medium  its quick lists; free cells -> pages (arenas_alloc_cell)
 *          large   pages
 *          and if there was nothing, again, as long as heap_reclaim finds something to give back
 *   give:  poll, where the pointer is, the thread's cache; then the same way back
 */
#include "heap/alloc.h"

#include <errno.h>
#include <string.h>

#include "hardened/hardened.h"
#include "heap/empty.h"
#include "heap/reclaim.h"
#include "heap/tick.h"
#include "heap/user_heaps.h"
#include "magazine/counted.h"
#include "pageheap/block_zero.h"
#include "stats/stats.h"

/* ---- Taking ---- */

void *cell_alloc_slow(struct heap *heap, size_t bytes, size_t alignment, size_t *dirty)
{
    struct misuse misuse;
    void *block = arenas_alloc_cell(&heap->arenas, bytes, alignment, &misuse, dirty);
    if (UNLIKELY(misuse.kind != MISUSE_NONE))
        misuse_report("malloc", &misuse);
    return block;
}

static void *alloc_medium(struct heap *heap, struct cache *cache, size_t bytes, size_t *dirty)
{
    void *block = cache_pop_cell(cache, bytes);
    if (block != NULL) {
        *dirty = bytes; /* it was in use not long ago */
        return block;
    }
    cache_miss_cell(cache, bytes);
    return cell_alloc_slow(heap, bytes, MIN_ALIGN, dirty);
}

static void *alloc_medium_aligned(struct heap *heap, struct cache *cache, size_t bytes,
                                  size_t alignment)
{
    bytes = size_max(bytes, SMALL_MOST + 1);
    size_t dirty;
    void *block = cache_pop_cell_aligned(cache, bytes, alignment);
    return block != NULL ? block : cell_alloc_slow(heap, bytes, alignment, &dirty);
}

static void *alloc_object(struct heap *heap, struct cache *cache, size_t class)
{
    return LIKELY(cache_exists(cache)) ? cache_refill(cache, class)
                                       : object_alloc(&heap->arenas, class);
}

static NOINLINE void *alloc_compact(struct heap *heap, struct cache *cache, size_t class)
{
    class = class_compact(class);
    void *object = alloc_object(heap, cache, class);
    return object != NULL ? object : object_alloc_larger(&heap->arenas, class);
}

/* A cell instead of an object of a class that is seldom asked for; NULL if it is not such a one. */
static NOINLINE void *alloc_cold(struct heap *heap, const struct cache *cache, size_t class)
{
    size_t dirty;
    if (!cache_is_empty(cache, class) || !arenas_class_is_cold(&heap->arenas, class))
        return NULL;
    return cell_alloc_slow(heap, class_bytes(class), MIN_ALIGN, &dirty);
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
    void *cell = UNLIKELY(bytes > BYTES_SHORT) ? alloc_cold(heap, cache, class) : NULL;
    return UNLIKELY(cell != NULL) ? cell : alloc_object(heap, cache, class);
}

static void *alloc_large(struct heap *heap, size_t bytes, size_t alignment, size_t *dirty)
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
        return alloc_medium_aligned(heap, cache, bytes, alignment);
    return alloc_large(heap, bytes, alignment, dirty);
}

static NOINLINE void *alloc_larger(struct heap *heap, struct cache *cache, size_t bytes,
                                   size_t *dirty)
{
    if (bytes <= medium_most(heap))
        return alloc_medium(heap, cache, bytes, dirty);
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

/* The same once there was no memory, after each step that gives some back. */
static COLD void *alloc_again(struct heap *heap, struct cache *cache, size_t alignment,
                              size_t bytes, size_t *dirty)
{
    void *block = NULL;
    enum reclaim_step step = RECLAIM_OWN;
    while (block == NULL && heap_reclaim(heap, size_max(bytes, alignment), &step)) {
        block = alloc_once(heap, cache, alignment, bytes, dirty);
        /* Where a span of cells has no room, pages may have. */
        if (block == NULL && bytes > SMALL_MOST && bytes <= CELL_MOST)
            block = alloc_large(heap, bytes, alignment, dirty);
    }
    if (block == NULL)
        errno = ENOMEM;
    return block;
}

/* What is to be done with a block that was taken, where its heap may have a limit. */
static ALWAYS_INLINE void *look_at_limit(struct heap *heap, void *block)
{
    return LIKELY(heap->record == NULL) ? block : heap_look_at_limit(heap, block);
}

static ALWAYS_INLINE void *take(struct heap *heap, struct cache *cache, size_t alignment,
                                size_t bytes, size_t *dirty)
{
    void *block = alloc_once(heap, cache, alignment, bytes, dirty);
    if (UNLIKELY(block == NULL))
        return alloc_again(heap, cache, alignment, bytes, dirty);
    return look_at_limit(heap, block);
}

static ALWAYS_INLINE void *take_plain(struct heap *heap, struct cache *cache, size_t alignment,
                                      size_t bytes, size_t *dirty)
{
    if (UNLIKELY(heap->hardened != NULL)) {
        *dirty = 0;
        return heap_alloc_hardened(heap, alignment, bytes);
    }
    return take(heap, cache, alignment, bytes, dirty);
}

void *block_alloc(struct heap *heap, struct cache *cache, size_t alignment, size_t bytes,
                  size_t *dirty)
{
    return take_plain(heap, cache, alignment, bytes, dirty);
}

/* ---- While requests are looked at ---- */

struct heap *heap_samples;

/* Where one lies that would be no large block by its size. */
static void *sample_alloc_smaller(struct heap *heap, size_t alignment, size_t bytes, size_t *dirty)
{
    if (heap != &heap_default)
        return look_at_limit(heap, alloc_large(heap, bytes + (bytes == 0), alignment, dirty));
    heap_poll(heap_samples);
    return alloc_once(heap_samples, heap_cache(heap_samples), alignment, bytes, dirty);
}

void *sample_alloc(struct heap *heap, struct cache *cache, size_t alignment, size_t bytes,
                   size_t *dirty)
{
    bool large = bytes > medium_most(heap) || alignment >= PAGE_BYTES;
    void *block = large ? take(heap, cache, alignment, bytes, dirty)
                        : sample_alloc_smaller(heap, alignment, bytes, dirty);
    if (block != NULL && (!large || page_map_class((uintptr_t)block) == 0))
        profile_put(block, bytes);
    else if (!large)
        profile_miss();
    return block;
}

/* A block that is looked at; NULL: it is like any other. */
static void *take_watched(struct heap *heap, struct cache *cache, size_t alignment, size_t bytes,
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

static ALWAYS_INLINE void *pop_counted(struct cache *cache, size_t alignment, size_t bytes)
{
    size_t class = class_of_aligned(alignment, bytes);
    return LIKELY(class != 0) ? cache_pop_counted(cache, class, bytes) : NULL;
}

/* If the request is not looked at, what the fast path would have done. */
static NOINLINE void *take_counted(struct heap *heap, struct cache *cache, size_t alignment,
                                   size_t bytes, size_t *dirty)
{
    size_t class = class_of_aligned(alignment, bytes);
    void *block = take_watched(heap, cache, alignment, bytes, dirty);
    if (block == NULL) {
        *dirty = SIZE_MAX;
        block = class != 0 ? cache_pop(cache, class) : NULL;
    }
    return block != NULL ? block : take(heap, cache, alignment, bytes, dirty);
}

static void *take_or_sample(struct heap *heap, struct cache *cache, size_t alignment, size_t bytes,
                            size_t *dirty)
{
    if (UNLIKELY(heap->hardened != NULL))
        return block_alloc(heap, cache, alignment, bytes, dirty);
    if (watch_is_on())
        return take_counted(heap, cache, alignment, bytes, dirty);
    return take(heap, cache, alignment, bytes, dirty);
}

/* The way in, here and twice below. */
static NOINLINE void *alloc_polled(struct heap *heap, size_t bytes)
{
    size_t dirty;
    if (UNLIKELY(heap->hardened != NULL))
        return heap_alloc_hardened(heap, MIN_ALIGN, bytes);
    heap_poll(heap);
    return take_or_sample(heap, heap_cache(heap), MIN_ALIGN, bytes, &dirty);
}

/* A large block that was freed last, where there is nothing else to do; NULL if there is none. */
static ALWAYS_INLINE void *take_recent(struct heap *heap, size_t alignment, size_t bytes)
{
    if (UNLIKELY(events_wait() || watch_is_on()))
        return NULL;
    return large_alloc_recent(&heap->page_heap, bytes, alignment);
}

void *heap_alloc_above(size_t bytes, struct heap *heap)
{
    void *block = bytes > CELL_MOST ? take_recent(heap, PAGE_BYTES, bytes) : NULL;
    return LIKELY(block != NULL) ? look_at_limit(heap, block) : alloc_polled(heap, bytes);
}

/* The same for what is small, where there is a cache and nothing else to do. */
void *heap_alloc_with(size_t bytes, struct cache *cache, struct heap *heap)
{
    bool small = size_is_below(bytes, &page_map.small_sizes); /* none is in a profile */
    if (UNLIKELY(!small || events_wait() || !cache_exists(cache)))
        return heap_alloc_above(bytes, heap);
    void *object = alloc_small(heap, cache, bytes);
    if (UNLIKELY(object == NULL))
        return alloc_polled(heap, bytes);
    return look_at_limit(heap, object);
}

static ALWAYS_INLINE void *zero(struct heap *heap, void *block, size_t bytes, size_t dirty)
{
    if (block == NULL || dirty == 0)
        return block;
    /* Of what was in use not long ago most is in the processor's caches, and soon written. */
    bool cold = dirty == SIZE_MAX && bytes > SMALL_MOST;
    if (bytes > medium_most(heap) || cold)
        block_zero(&heap->page_heap, block, size_min(bytes, dirty));
    else
        memset(block, 0, size_min(bytes, dirty));
    return block;
}

/* While requests are looked at: what the fast path would have done, here and below. */
static NOINLINE void *alloc_zero_watched(struct heap *heap, size_t bytes)
{
    size_t dirty;
    void *object = pop_counted(heap_cache_if_any(heap), MIN_ALIGN, bytes);
    if (LIKELY(object != NULL))
        return bytes_clear(object, align_up(bytes, MIN_ALIGN));
    heap_poll(heap);
    void *block = take_or_sample(heap, heap_cache(heap), MIN_ALIGN, bytes, &dirty);
    return zero(heap, block, bytes, dirty);
}

void *heap_alloc_zero_in(struct heap *heap, size_t bytes)
{
    size_t dirty;
    if (watch_is_on())
        return alloc_zero_watched(heap, bytes);
    heap_poll(heap);
    void *block = take_plain(heap, heap_cache(heap), MIN_ALIGN, bytes, &dirty);
    return zero(heap, block, bytes, dirty);
}

static NOINLINE void *alloc_aligned_watched(struct heap *heap, size_t alignment, size_t bytes)
{
    size_t dirty;
    void *object = pop_counted(heap_cache_if_any(heap), alignment, bytes);
    if (LIKELY(object != NULL))
        return object;
    heap_poll(heap);
    return take_or_sample(heap, heap_cache(heap), alignment, bytes, &dirty);
}

/* A function of its own, for its registers. */
static NOINLINE void *alloc_aligned_polled(struct heap *heap, size_t alignment, size_t bytes)
{
    size_t dirty;
    heap_poll(heap);
    return take_plain(heap, heap_cache(heap), alignment, bytes, &dirty);
}

void *heap_alloc_aligned_in(struct heap *heap, size_t alignment, size_t bytes)
{
    if (watch_is_on())
        return alloc_aligned_watched(heap, alignment, bytes);
    void *block = alignment >= PAGE_BYTES ? take_recent(heap, alignment, bytes) : NULL;
    return LIKELY(block != NULL) ? look_at_limit(heap, block)
                                 : alloc_aligned_polled(heap, alignment, bytes);
}

/* ---- What a pointer is ---- */

/* Whether a pointer into a slab begins an object that is not free, as far as that can be told
 * without a lock. */
static bool small_is_sound(const struct heap *heap, uintptr_t address, size_t class)
{
    if (heap->page_heap.untouched)
        return slab_misuse(address).kind == MISUSE_NONE;
    return object_is_live(address, class);
}

/* What is wrong with a pointer into a slab for which small_is_sound is false. */
static struct misuse small_misuse(const struct heap *heap, uintptr_t address, size_t class)
{
    if (!on_grid(address, class) || heap->page_heap.untouched)
        return slab_misuse(address);
    return (struct misuse){
        .kind = MISUSE_DOUBLE_FREE, .address = address, .bytes = class_bytes(class)};
}

static bool has_large(struct heap *heap, void *context)
{
    return large_has(&heap->page_heap, *(uintptr_t *)context);
}

static bool covers(struct heap *heap, void *context)
{
    return large_covers(&heap->page_heap, *(uintptr_t *)context);
}

/* The heap that has a large block at an address; otherwise the one in whose memory it is; if none
 * does, malloc's, which says so. */
static struct heap *heap_of_large(uintptr_t address)
{
    if (!heaps_exist() || has_large(&heap_default, &address))
        return &heap_default;
    struct heap *heap = heaps_find(has_large, &address);
    if (heap == NULL)
        heap = heaps_find(covers, &address);
    return heap != NULL ? heap : &heap_default;
}

NOINLINE struct place place_elsewhere(uintptr_t address)
{
    uintptr_t entry = page_map_entry(address);
    struct place place = {&heap_default, 0};
    if (entry_is_span(entry)) {
        const struct span *span = (const struct span *)entry;
        place.heap = heap_of_page_heap(span_home(span));
        if (span->kind == SPAN_SLAB)
            place.class = span->class;
        else if (span->kind == SPAN_CELLS)
            place.class = PAGE_MAP_CELL;
        else if (span->kind == SPAN_HARDENED)
            place.class = PAGE_MAP_HARDENED;
    } else if (guard_has(address)) {
        place.class = PLACE_GUARDED;
    } else if (address != 0) {
        place.heap = heap_of_large(address);
    }
    return place;
}

struct heap *heap_of(const void *block)
{
    uintptr_t address = (uintptr_t)block;
    struct heap *heap = place_of(address, page_map_class(address)).heap;
    return heap == heap_samples ? &heap_default : heap;
}

static struct misuse cell_usable(uintptr_t address, size_t *bytes)
{
    struct misuse misuse = cell_misuse(address);
    if (misuse.kind == MISUSE_NONE)
        *bytes = cell_bytes(address);
    return misuse;
}

size_t place_usable(struct place place, uintptr_t address, const char *call)
{
    struct misuse misuse;
    size_t bytes = 0;
    heap_init();
    if (UNLIKELY(empty_covers(address)))
        misuse = empty_misuse(address);
    else if (place.class == 0)
        misuse = large_usable(&place.heap->page_heap, address, &bytes);
    else if (place.class == PAGE_MAP_CELL)
        misuse = cell_usable(address, &bytes);
    else if (place.class == PAGE_MAP_HARDENED)
        misuse = hard_usable(address, &bytes);
    else if (place.class == PLACE_GUARDED)
        misuse = guard_usable(address, &bytes);
    else if (small_is_sound(place.heap, address, place.class))
        return class_bytes(place.class);
    else
        misuse = small_misuse(place.heap, address, place.class);
    misuse_report(call, &misuse);
    return bytes;
}

size_t heap_usable(const void *block, const char *call)
{
    uintptr_t address = (uintptr_t)block;
    return place_usable(place_of(address, page_map_class(address)), address, call);
}

/* ---- Freeing ---- */

static inline void free_small(struct heap *heap, struct cache *cache, uintptr_t address,
                              size_t class)
{
    bool room =
        !cache_is_full(cache, class) || (cache_exists(cache) && cache_make_room(cache, class));
    if (UNLIKELY(!room)) {
        object_free(address);
    } else if (UNLIKELY(!cache_push_of(cache, address, class))) {
        struct misuse misuse = small_misuse(heap, address, class);
        misuse_report("free", &misuse);
    }
}

static void free_cell(struct cache *cache, uintptr_t address)
{
    struct misuse misuse = cell_misuse(address);
    if (LIKELY(misuse.kind == MISUSE_NONE))
        cache_free_cell(cache, address);
    else
        misuse_report("free", &misuse);
}

static void free_large(struct heap *heap, uintptr_t address)
{
    struct misuse misuse = UNLIKELY(empty_covers(address)) ? empty_free(address)
                                                           : large_free(&heap->page_heap, address);
    misuse_report("free", &misuse);
}

void block_free(struct place place, struct cache *cache, uintptr_t address)
{
    if (place.class == 0)
        free_large(place.heap, address);
    else if (place.class == PAGE_MAP_CELL)
        free_cell(cache, address);
    else if (place.class == PLACE_GUARDED)
        guard_free(address, "free");
    else
        free_small(place.heap, cache, address, place.class);
}

/* What is no small object of malloc's heap. */
static NOINLINE void free_other(struct heap *only, uintptr_t address, size_t byte)
{
    if (UNLIKELY(byte == PAGE_MAP_HARDENED)) {
        heap_free_hardened(only, (void *)address, SIZE_MAX);
        return;
    }
    struct place place = place_of(address, byte);
    struct profile_block sample;
    if (LIKELY(only == NULL || only == place.heap)) {
        if (place_may_be_sample(place))
            profile_take((void *)address, &sample); /* before another thread has the address */
        block_free(place, heap_cache(place.heap), address);
    } else {
        struct misuse misuse = {.kind = MISUSE_OTHER_HEAP, .address = address};
        misuse_report("free", &misuse);
    }
}

static NOINLINE void forget_sample(void *block)
{
    struct profile_block sample;
    profile_take(block, &sample);
}

/* Not by large_free_recent. */
static NOINLINE void free_unmapped(uintptr_t address)
{
    int error = errno; /* as below */
    free_other(NULL, address, 0);
    errno = error;
}

/* What is freed is mostly a large block of malloc's heap. */
void heap_free_unmapped(void *block)
{
    if (block == NULL)
        return;
    heap_poll(&heap_default);
    if (profile_has_blocks())
        forget_sample(block); /* before another thread has the address */
    if (UNLIKELY(!large_free_recent(&heap_default.page_heap, (uintptr_t)block)))
        free_unmapped((uintptr_t)block);
}

/* The way out. */
void heap_free_of(struct heap *only, void *block, size_t byte)
{
    uintptr_t address = (uintptr_t)block;
    if (LIKELY(byte - 1 < CLASS_COUNT - 1 && only == NULL)) {
        heap_poll(&heap_default);
        free_small(&heap_default, heap_cache(&heap_default), address, byte);
    } else if (byte == 0 && only == NULL) {
        heap_free_unmapped(block);
    } else if (block != NULL) {
        int error = errno; /* the program's; a provider of its own may write it */
        heap_poll(only == NULL ? &heap_default : only);
        free_other(only, address, byte);
        errno = error;
    }
}
