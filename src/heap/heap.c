/*
 * Taking, freeing and resizing blocks of any size: the slow paths. See heap.h.
 */
#include "heap/heap.h"

#include <errno.h>
#include <string.h>

#include "platform/check.h"

/* ---- Taking ---- */

static void *take_cell(size_t bytes, size_t alignment)
{
    struct cache *cache = heap_thread_cache();
    void *block = NULL;
    if (alignment <= MIN_ALIGN && bytes > SMALL_MOST)
        block = cache_pop_cell(cache, bytes);
    if (block != NULL)
        return block;
    cache_miss_cell(cache, bytes);
    struct misuse misuse;
    block = arenas_take_cell(&heap_default.arenas, bytes, alignment, &misuse);
    if (UNLIKELY(misuse.kind != MISUSE_NONE))
        misuse_report("malloc", &misuse);
    return block;
}

static void *take_object(size_t class)
{
    struct cache *cache = heap_thread_cache();
    if (!cache_exists(cache))
        return object_take(&heap_default.arenas, class);
    void *object = cache_pop(cache, class);
    return object != NULL ? object : cache_refill(cache, class);
}

static void *take_small(size_t class)
{
    bool waiting = *thread_self.cache->top[class] >= MARK_LIMIT;
    if (!waiting && arenas_class_is_cold(&heap_default.arenas, class)) {
        void *cell = take_cell(class_bytes(class), MIN_ALIGN);
        if (cell != NULL)
            return cell;
    }
    return take_object(class);
}

static void *take_large(size_t bytes, size_t alignment, bool *zero)
{
    heap_thread_cache(); /* makes the heap ready */
    void *block = large_take(&heap_default.spans, bytes, alignment, zero);
    /* What is cached goes back before a program is told that there is nothing. A request that no
     * amount of memory could serve does not cost it its caches. */
    if (block == NULL && bytes < MAX_REQUEST / 2 && heap_trim(0) != 0)
        block = large_take(&heap_default.spans, bytes, alignment, zero);
    return block;
}

void *heap_take(size_t bytes)
{
    bool zero;
    if (bytes <= SMALL_MOST)
        return take_small(class_of_size(bytes + (bytes == 0)));
    if (bytes <= CELL_MOST)
        return take_cell(bytes, MIN_ALIGN);
    return take_large(bytes, MIN_ALIGN, &zero);
}

void *heap_take_zero(size_t bytes)
{
    bool zero = false;
    void *block = bytes <= CELL_MOST ? heap_take(bytes) : take_large(bytes, MIN_ALIGN, &zero);
    if (block != NULL && !zero)
        memset(block, 0, bytes);
    return block;
}

void *heap_take_aligned(size_t alignment, size_t bytes)
{
    if (alignment <= MIN_ALIGN)
        return heap_take(bytes);
    if (bytes > MAX_REQUEST || alignment > MAX_REQUEST)
        return NULL;
    bytes += bytes == 0;
    size_t rounded = align_up(bytes, alignment);
    /* All multiples of the size are multiples of the alignment, counted from a 64 KiB boundary: the
     * grid does the rest. */
    if (rounded <= SMALL_MOST)
        return take_object(class_of_size(rounded));
    if (alignment < PAGE_BYTES && bytes + alignment <= CELL_MOST)
        return take_cell(size_max(bytes, SMALL_MOST + 1), alignment);
    bool zero;
    return take_large(bytes, alignment, &zero);
}

/* ---- What a pointer is ---- */

/* Whether a pointer into a slab begins an object that is not free, as far as that can be told
 * without a lock. */
static bool small_is_sound(uintptr_t address, size_t class)
{
    return on_grid(address, class) && *object_key_word(address) != object_key(address);
}

/* What is wrong with a pointer into a slab for which small_is_sound is false. */
static struct misuse small_misuse(uintptr_t address, size_t class)
{
    if (!on_grid(address, class))
        return slab_misuse(address);
    return (struct misuse){MISUSE_DOUBLE_FREE, address, class_bytes(class), 0};
}

static size_t class_at(uintptr_t address)
{
    return page_map_covers(address) ? page_map_class(address) : 0;
}

static struct misuse cell_usable(uintptr_t address, size_t *bytes)
{
    struct misuse misuse = cell_misuse(address);
    if (misuse.kind == MISUSE_NONE)
        *bytes = cell_bytes(address);
    return misuse;
}

size_t heap_usable(const void *block, const char *call)
{
    uintptr_t address = (uintptr_t)block;
    size_t class = class_at(address);
    struct misuse misuse;
    size_t bytes = 0;
    heap_thread_cache();
    if (class == 0)
        misuse = large_usable(&heap_default.spans, address, &bytes);
    else if (class == PAGE_MAP_CELL)
        misuse = cell_usable(address, &bytes);
    else if (small_is_sound(address, class))
        return class_bytes(class);
    else
        misuse = small_misuse(address, class);
    misuse_report(call, &misuse);
    return bytes;
}

/* ---- Freeing ---- */

static void give_small(uintptr_t address, size_t class)
{
    struct cache *cache = heap_thread_cache();
    bool room = cache_exists(cache) &&
                (cache->top[class][-1] >= MARK_LIMIT || cache_make_room(cache, class));
    if (!room) {
        object_give(address);
    } else if (!cache_push(cache, address)) {
        struct misuse misuse = small_misuse(address, class);
        misuse_report("free", &misuse);
    }
}

static void give_cell(uintptr_t address)
{
    struct misuse misuse = cell_misuse(address);
    if (LIKELY(misuse.kind == MISUSE_NONE))
        cache_give_cell(heap_thread_cache(), address);
    else
        misuse_report("free", &misuse);
}

void heap_give(void *block)
{
    if (block == NULL)
        return;
    int error = errno; /* of the program; libc may write it when a thread gets its cache */
    uintptr_t address = (uintptr_t)block;
    size_t class = class_at(address);
    if (class == PAGE_MAP_CELL) {
        give_cell(address);
    } else if (class != 0) {
        give_small(address, class);
    } else {
        heap_thread_cache();
        struct misuse misuse = large_give(&heap_default.spans, address);
        misuse_report("free", &misuse);
    }
    errno = error;
}

/* ---- Resizing ---- */

static void *resize_by_copy(void *block, size_t old_bytes, size_t bytes)
{
    void *moved = heap_take(bytes);
    if (moved == NULL)
        return NULL;
    memcpy(moved, block, size_min(old_bytes, bytes));
    heap_give(block);
    return moved;
}

void *heap_resize(void *block, size_t bytes)
{
    size_t old_bytes = heap_usable(block, "realloc");
    if (old_bytes == 0 || bytes > MAX_REQUEST)
        return NULL;
    size_t class = class_at((uintptr_t)block);
    if (class == PAGE_MAP_CELL) {
        if (bytes > SMALL_MOST && bytes <= CELL_MOST && cell_resize((uintptr_t)block, bytes))
            return block;
    } else if (class != 0) {
        /* A block that becomes a little smaller stays; moving it would cost more than it frees. */
        if (bytes <= old_bytes && (bytes > old_bytes / 2 || old_bytes <= 64))
            return block;
    } else if (bytes > CELL_MOST) {
        void *resized = large_resize(&heap_default.spans, (uintptr_t)block, bytes);
        if (resized != NULL)
            return resized;
    }
    return resize_by_copy(block, old_bytes, bytes);
}

/* ---- The whole heap ---- */

size_t heap_trim(size_t keep)
{
    struct cache *cache = heap_thread_cache();
    if (cache_exists(cache))
        cache_flush(cache);
    size_t purged = arenas_trim(&heap_default.arenas);
    return purged + spans_purge(&heap_default.spans, keep >> PAGE_SHIFT);
}

const char *heap_check(void)
{
    heap_thread_cache();
    const char *wrong = arenas_check(&heap_default.arenas);
    return wrong != NULL ? wrong : spans_check(&heap_default.spans);
}
