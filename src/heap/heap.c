/*
 * Taking, freeing and resizing blocks of any size, in any heap: the slow paths. See heap.h.
 */
#include "heap/heap.h"

#include <errno.h>
#include <string.h>

#include "heap/heaps.h"
#include "options/options.h"
#include "platform/check.h"
#include "stats/event.h"
#include "stats/stats.h"

/* ---- Taking ---- */

/* A cell that does not come from a thread's quick lists. */
static void *take_new_cell(struct heap *heap, size_t bytes, size_t alignment, size_t *dirty)
{
    struct misuse misuse;
    void *block = arenas_take_cell(&heap->arenas, bytes, alignment, &misuse, dirty);
    if (UNLIKELY(misuse.kind != MISUSE_NONE))
        misuse_report("malloc", &misuse);
    return block;
}

static void *take_medium(struct heap *heap, size_t bytes, size_t *dirty)
{
    struct cache *cache = heap_cache(heap);
    void *block = cache_pop_cell(cache, bytes);
    if (block != NULL) {
        *dirty = bytes; /* it was in use not long ago */
        return block;
    }
    cache_miss_cell(cache, bytes);
    return take_new_cell(heap, bytes, MIN_ALIGN, dirty);
}

static void *take_medium_aligned(struct heap *heap, size_t bytes, size_t alignment)
{
    bytes = size_max(bytes, SMALL_MOST + 1);
    size_t dirty;
    void *block = cache_pop_cell_aligned(heap_cache(heap), bytes, alignment);
    return block != NULL ? block : take_new_cell(heap, bytes, alignment, &dirty);
}

static void *take_object(struct heap *heap, size_t class)
{
    struct cache *cache = heap_cache(heap);
    if (!cache_exists(cache))
        return object_take(&heap->arenas, class);
    void *object = cache_pop(cache, class);
    return object != NULL ? object : cache_refill(cache, class);
}

static void *take_small(struct heap *heap, size_t class)
{
    const struct cache *cache = heap_cache(heap); /* which also makes malloc's heap ready */
    bool waiting = *cache->top[class] >= MARK_LIMIT;
    if (!waiting && arenas_class_is_cold(&heap->arenas, class)) {
        size_t dirty;
        void *cell = take_new_cell(heap, class_bytes(class), MIN_ALIGN, &dirty);
        if (cell != NULL)
            return cell;
    }
    if (!heap->spans.compact)
        return take_object(heap, class);
    class = class_compact(class);
    void *object = take_object(heap, class);
    return object != NULL ? object : object_take_larger(&heap->arenas, class);
}

/* The largest block that is no large one. */
static size_t medium_most(const struct heap *heap)
{
    return heap->spans.compact ? SMALL_MOST : CELL_MOST;
}

static void *take_large(struct heap *heap, size_t bytes, size_t alignment, size_t *dirty)
{
    heap_thread_cache(); /* makes malloc's heap ready */
    arenas_end_orphans_once(&heap->arenas);
    return large_take(&heap->spans, bytes, alignment, dirty);
}

/* A block of any size and alignment. Behind its first `*dirty` bytes it is known to be zero;
 * SIZE_MAX: nothing is known of it. */
static void *take_any(struct heap *heap, size_t alignment, size_t bytes, size_t *dirty)
{
    *dirty = SIZE_MAX;
    if (alignment <= MIN_ALIGN) {
        if (bytes <= SMALL_MOST) {
            size_t class = class_of_size(bytes + (bytes == 0));
            sample_request(class, bytes);
            return take_small(heap, class);
        }
        if (bytes <= medium_most(heap))
            return take_medium(heap, bytes, dirty);
        return take_large(heap, bytes, MIN_ALIGN, dirty);
    }
    if (bytes > MAX_REQUEST || alignment > MAX_REQUEST)
        return NULL;
    bytes += bytes == 0;
    size_t rounded = align_up(bytes, alignment);
    /* All multiples of the size are multiples of the alignment, counted from a 64 KiB boundary: the
     * grid does the rest. */
    if (rounded <= SMALL_MOST)
        return take_object(heap, class_of_size(rounded));
    if (alignment < PAGE_BYTES && bytes + alignment <= medium_most(heap))
        return take_medium_aligned(heap, bytes, alignment);
    return take_large(heap, bytes, alignment, dirty);
}

/* Whether there would be so much if all heaps gave back all that they have but for huge blocks. */
static bool trim_may_help(const struct heap *heap, size_t bytes)
{
    size_t mapped = COUNTED(map_bytes) - COUNTED(unmap_bytes);
    /* relaxed: both change while this is read, and what comes of it is a guess */
    size_t huge = __atomic_load_n(&heap->spans.huge_pages, __ATOMIC_RELAXED) << PAGE_SHIFT;
    return provider_might_take(heap->spans.provider, bytes, mapped - size_min(mapped, huge));
}

static void *take_trimmed(struct heap *heap, size_t alignment, size_t bytes, size_t *dirty)
{
    heap_trim_of(heap, 0);
    void *block = take_any(heap, alignment, bytes, dirty);
    if (block == NULL && heaps_trim_others(heap, bytes))
        block = take_any(heap, alignment, bytes, dirty);
    /* Where a span of cells has no room, pages may have. */
    if (block == NULL && bytes > SMALL_MOST && bytes <= CELL_MOST)
        block = take_large(heap, bytes, alignment, dirty);
    return block;
}

/* There was nothing. What is cached goes back before a program is told so, first in this heap, then
 * in all others, since they may share a provider, and do share the limits of the process; and who
 * asked to be told first may free something. A request beyond all there is does not cost the
 * program its caches. */
static COLD void *take_again(struct heap *heap, size_t alignment, size_t bytes, size_t *dirty)
{
    if (bytes >= MAX_REQUEST / 2 || alignment >= MAX_REQUEST / 2)
        return NULL;
    void *block = NULL;
    if (trim_may_help(heap, bytes))
        block = take_trimmed(heap, alignment, bytes, dirty);
    if (block == NULL && heap_call_back(heap, bytes)) {
        heap_trim_of(heap, 0);
        block = take_any(heap, alignment, bytes, dirty);
    }
    return block;
}

/* Does not poll; who calls it has. */
static inline void *take(struct heap *heap, size_t alignment, size_t bytes, size_t *dirty)
{
    void *block = take_any(heap, alignment, bytes, dirty);
    if (UNLIKELY(block == NULL))
        block = take_again(heap, alignment, bytes, dirty);
    else if (UNLIKELY(heap->record != NULL))
        heap_look_at_limit(heap);
    return block;
}

void *heap_take_in(struct heap *heap, size_t bytes)
{
    size_t dirty;
    events_poll();
    return take(heap, MIN_ALIGN, bytes, &dirty);
}

void *heap_take_zero_in(struct heap *heap, size_t bytes)
{
    size_t dirty;
    events_poll();
    void *block = take(heap, MIN_ALIGN, bytes, &dirty);
    if (block == NULL || dirty == 0)
        return block;
    /* Of what was in use not long ago most is in the processor's caches, and soon written. */
    bool cold = dirty == SIZE_MAX && bytes > SMALL_MOST;
    if (bytes > medium_most(heap) || cold)
        block_zero(&heap->spans, block, size_min(bytes, dirty));
    else
        memset(block, 0, size_min(bytes, dirty));
    return block;
}

void *heap_take_aligned_in(struct heap *heap, size_t alignment, size_t bytes)
{
    size_t dirty;
    events_poll();
    return take(heap, alignment, bytes, &dirty);
}

/* What most calls of a thread that has a cache come for: its other magazine. */
static void *take_from_spare(size_t bytes)
{
    size_t class = class_of_size(bytes);
    void *object = cache_refill_from_spare(thread_self.cache, class);
    if (object != NULL)
        sample_request(class, bytes);
    return object;
}

void *heap_take(size_t bytes)
{
    size_t dirty;
    events_poll();
    void *object = bytes <= SMALL_MOST ? take_from_spare(bytes) : NULL;
    return object != NULL ? object : take(&heap_default, MIN_ALIGN, bytes, &dirty);
}

void *heap_take_zero(size_t bytes)
{
    return heap_take_zero_in(&heap_default, bytes);
}

void *heap_take_aligned(size_t alignment, size_t bytes)
{
    return heap_take_aligned_in(&heap_default, alignment, bytes);
}

/* ---- What a pointer is ---- */

/* Whether a pointer into a slab begins an object that is not free, as far as that can be told
 * without a lock. */
static bool small_is_sound(const struct heap *heap, uintptr_t address, size_t class)
{
    if (heap->spans.untouched)
        return slab_misuse(address).kind == MISUSE_NONE;
    return on_grid(address, class) && *object_key_word(address) != object_key(address);
}

/* What is wrong with a pointer into a slab for which small_is_sound is false. */
static struct misuse small_misuse(const struct heap *heap, uintptr_t address, size_t class)
{
    if (!on_grid(address, class) || heap->spans.untouched)
        return slab_misuse(address);
    return (struct misuse){MISUSE_DOUBLE_FREE, address, class_bytes(class), 0};
}

/* Where an address is: in which heap, and among its small objects (the class), its cells
 * (PAGE_MAP_CELL) or neither (0). */
struct place {
    struct heap *heap;
    size_t class;
};

static bool has_large(struct heap *heap, void *context)
{
    return large_has(&heap->spans, *(uintptr_t *)context);
}

static bool covers(struct heap *heap, void *context)
{
    return large_covers(&heap->spans, *(uintptr_t *)context);
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

static struct place place_elsewhere(uintptr_t address)
{
    uintptr_t entry = page_map_entry(address);
    struct place place = {&heap_default, 0};
    if (entry_is_span(entry)) {
        const struct span *span = (const struct span *)entry;
        place.heap = heap_of_spans(span_home(span));
        if (span->kind == SPAN_SLAB)
            place.class = span->class;
        else if (span->kind == SPAN_CELLS)
            place.class = PAGE_MAP_CELL;
    } else if (address != 0) {
        place.heap = heap_of_large(address);
    }
    return place;
}

static inline struct place place_of(uintptr_t address)
{
    size_t byte = page_map_class(address);
    if (byte != 0 && byte <= PAGE_MAP_CELL)
        return (struct place){&heap_default, byte};
    return place_elsewhere(address);
}

struct heap *heap_of(const void *block)
{
    return place_of((uintptr_t)block).heap;
}

static struct misuse cell_usable(uintptr_t address, size_t *bytes)
{
    struct misuse misuse = cell_misuse(address);
    if (misuse.kind == MISUSE_NONE)
        *bytes = cell_bytes(address);
    return misuse;
}

static size_t usable_at(struct place place, uintptr_t address, const char *call)
{
    struct misuse misuse;
    size_t bytes = 0;
    heap_thread_cache(); /* makes malloc's heap ready */
    if (place.class == 0)
        misuse = large_usable(&place.heap->spans, address, &bytes);
    else if (place.class == PAGE_MAP_CELL)
        misuse = cell_usable(address, &bytes);
    else if (small_is_sound(place.heap, address, place.class))
        return class_bytes(place.class);
    else
        misuse = small_misuse(place.heap, address, place.class);
    misuse_report(call, &misuse);
    return bytes;
}

size_t heap_usable(const void *block, const char *call)
{
    return usable_at(place_of((uintptr_t)block), (uintptr_t)block, call);
}

/* ---- Freeing ---- */

static void give_small(struct heap *heap, struct cache *cache, uintptr_t address, size_t class)
{
    bool room = cache_exists(cache) &&
                (cache->top[class][-1] >= MARK_LIMIT || cache_make_room(cache, class));
    if (!room) {
        object_give(address);
    } else if (!cache_push_of(cache, address, class)) {
        struct misuse misuse = small_misuse(heap, address, class);
        misuse_report("free", &misuse);
    }
}

static void give_cell(struct cache *cache, uintptr_t address)
{
    struct misuse misuse = cell_misuse(address);
    if (LIKELY(misuse.kind == MISUSE_NONE))
        cache_give_cell(cache, address);
    else
        misuse_report("free", &misuse);
}

static void give_at(struct place place, uintptr_t address)
{
    struct cache *cache = heap_cache(place.heap);
    if (place.class == PAGE_MAP_CELL) {
        give_cell(cache, address);
    } else if (place.class != 0) {
        give_small(place.heap, cache, address, place.class);
    } else {
        struct misuse misuse = large_give(&place.heap->spans, address);
        misuse_report("free", &misuse);
    }
}

void heap_give_in(struct heap *heap, void *block)
{
    if (block == NULL)
        return;
    int error = errno;
    events_poll();
    uintptr_t address = (uintptr_t)block;
    struct place place = place_of(address);
    if (LIKELY(place.heap == heap)) {
        give_at(place, address);
    } else {
        struct misuse misuse = {.kind = MISUSE_OTHER_HEAP, .address = address};
        misuse_report("free", &misuse);
    }
    errno = error;
}

void heap_give(void *block)
{
    if (block == NULL)
        return;
    int error = errno; /* of the program; libc may write it when a thread gets its cache */
    events_poll();
    give_at(place_of((uintptr_t)block), (uintptr_t)block);
    errno = error;
}

/* ---- Resizing ---- */

/* Blocks of so many bytes may be cells. Smaller ones are not worth a header. */
enum { GROWN_LEAST = 257 };

/* What was made longer once will be again. A cell can grow where it is, and what it leaves when it
 * moves is joined; slabs of one class after the other, each half empty as the blocks move on, came
 * to three times the memory. */
static void *take_to_grow(struct heap *heap, size_t bytes)
{
    void *block = NULL;
    size_t dirty;
    if (bytes >= GROWN_LEAST && bytes <= SMALL_MOST && medium_most(heap) == CELL_MOST)
        block = take_new_cell(heap, bytes, MIN_ALIGN, &dirty);
    else if (bytes > CELL_MOST)
        block = large_take_grown(&heap->spans, bytes, &dirty);
    return block != NULL ? block : take(heap, MIN_ALIGN, bytes, &dirty);
}

/* What a block of `old_bytes` that becomes one of `bytes` is given. One that grows by little grows
 * often: it gets an eighth more, so that the next times nothing need be done. */
static size_t bytes_to_grow(size_t old_bytes, size_t bytes)
{
    bool creeps = bytes > old_bytes && bytes - old_bytes <= old_bytes / 4;
    return creeps && bytes >= GROWN_LEAST && bytes <= CELL_MOST / 9 * 8 ? bytes + bytes / 8 : bytes;
}

static void *resize_by_copy(struct place place, void *block, size_t old_bytes, size_t bytes)
{
    size_t dirty;
    void *moved = bytes > old_bytes ? take_to_grow(place.heap, bytes_to_grow(old_bytes, bytes))
                                    : take(place.heap, MIN_ALIGN, bytes, &dirty);
    if (moved == NULL)
        return NULL;
    memcpy(moved, block, size_min(old_bytes, bytes));
    int error = errno;
    give_at(place, (uintptr_t)block);
    errno = error;
    return moved;
}

/* Whether a large block that becomes shorter stays one: it is rounded up to whole pages, which are
 * an eighth of it at most, and nothing of it that was never touched is. */
static bool shrinks_in_place(size_t old_bytes, size_t bytes)
{
    return bytes < old_bytes && bytes >= 8 * PAGE_BYTES;
}

void *heap_resize(void *block, size_t bytes)
{
    events_poll();
    struct place place = place_of((uintptr_t)block);
    size_t old_bytes = usable_at(place, (uintptr_t)block, "realloc");
    if (old_bytes == 0 || bytes > MAX_REQUEST)
        return NULL;
    if (place.class == PAGE_MAP_CELL) {
        if (bytes <= old_bytes && bytes > old_bytes - old_bytes / 8)
            return block;
        if (bytes >= GROWN_LEAST && bytes <= CELL_MOST &&
            cell_resize((uintptr_t)block, bytes, bytes_to_grow(old_bytes, bytes)))
            return block;
    } else if (place.class != 0) {
        /* A block that becomes a little smaller stays; moving it would cost more than it frees. */
        if (bytes <= old_bytes && (bytes > old_bytes / 2 || old_bytes <= 64))
            return block;
    } else if (bytes > medium_most(place.heap) || shrinks_in_place(old_bytes, bytes)) {
        void *resized = large_resize(&place.heap->spans, (uintptr_t)block, bytes);
        if (resized != NULL)
            return resized;
    }
    return resize_by_copy(place, block, old_bytes, bytes);
}

/* ---- The whole heap ---- */

size_t heap_trim_of(struct heap *heap, size_t keep)
{
    struct cache *cache = heap_cache(heap);
    if (cache_exists(cache))
        cache_flush(cache);
    arenas_end_orphans_once(&heap->arenas);
    size_t purged = arenas_trim(&heap->arenas);
    return purged + spans_purge(&heap->spans, keep >> PAGE_SHIFT);
}

size_t heap_trim(size_t keep)
{
    return heap_trim_of(&heap_default, keep);
}

const char *heap_check_of(struct heap *heap)
{
    struct cache *cache = heap == &heap_default ? thread_self.cache : heap_cache_fast(heap);
    check_begin();
    const char *wrong = cache_check(cache);
    if (wrong == NULL)
        wrong = arenas_check(&heap->arenas);
    return wrong != NULL ? wrong : spans_check(&heap->spans);
}

static bool check_next(struct heap *heap, void *wrong)
{
    *(const char **)wrong = heap_check_of(heap);
    return *(const char **)wrong != NULL;
}

const char *heap_check(void)
{
    heap_thread_cache();
    const char *wrong = heap_check_of(&heap_default);
    if (wrong == NULL)
        heaps_find(check_next, &wrong);
    return wrong;
}
