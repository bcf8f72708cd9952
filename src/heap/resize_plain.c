/*
 * Resizing a block while nobody looks at requests. See resize.h.
 *
 * A block stays where it is if it can: a cell takes from the free cell behind it, a large block
 * grows into free pages or moves by remapping. Otherwise it is copied, and what grows by little
 * gets more than was asked for.
 */
#include "heap/resize.h"

#include <errno.h>
#include <string.h>

/* A block that was made longer once will be again. A cell can grow where it is, and the place that
 * it leaves is joined. With slabs of one class after the other, each half empty as the blocks moved
 * on, programs took three times the memory. Up to BYTES_SHORT a block is not worth a header. It
 * gets `wish` bytes, or `bytes` if that is too much. */
static void *alloc_to_grow(struct heap *heap, struct cache *cache, size_t bytes, size_t wish,
                           size_t *dirty)
{
    void *block = NULL;
    if (wish > BYTES_SHORT && wish <= SMALL_MOST && medium_most(heap) == CELL_MOST) {
        block = cell_alloc(heap, cache, wish, dirty);
    } else if (wish > CELL_MOST) {
        block = large_alloc_grown(&heap->page_heap, wish, dirty);
        wish = bytes; /* nothing is given back to have more than was asked for */
    }
    if (block == NULL)
        block = block_alloc(heap, cache, MIN_ALIGN, wish, dirty);
    if (UNLIKELY(block == NULL) && wish != bytes)
        block = block_alloc(heap, cache, MIN_ALIGN, bytes, dirty);
    return block;
}

static bool is_zero(const char *start, size_t bytes)
{
    return *start == 0 && memcmp(start, start + 1, bytes - 1) == 0;
}

/* Copies between two blocks, of which `to` begins with a page and is zero behind its first `dirty`
 * bytes. Pages of zeros are not written there: so what the program never touched occupies no memory
 * after the copy either. */
static void copy_pages(char *to, const char *from, size_t bytes, size_t dirty)
{
    for (size_t done = 0, page; done < bytes; done += page) {
        page = size_min(bytes - done, PAGE_BYTES);
        if (done < dirty || !is_zero(from + done, page))
            memcpy(to + done, from + done, page);
    }
}

void *resize_moved(void *moved, struct place place, struct cache *cache, void *block, size_t bytes,
                   size_t dirty)
{
    if (moved == NULL)
        return NULL;
    if (UNLIKELY(bytes > CELL_MOST))
        copy_pages(moved, block, bytes, dirty);
    else
        memcpy(moved, block, bytes);
    if (place.class == PAGE_MAP_CELL && LIKELY(cache_push_cell(cache, (uintptr_t)block)))
        return moved;
    int error = errno;
    block_free(place, cache, (uintptr_t)block);
    errno = error;
    return moved;
}

COLD void *resize_stay(struct place place, void *block, size_t old_bytes, size_t bytes)
{
    if (bytes > old_bytes)
        return NULL;
    if (place.class == 0)
        large_resize(&place.heap->page_heap, (uintptr_t)block, size_max(bytes, 1));
    return block;
}

static void *resize_by_copy(struct place place, void *block, size_t old_bytes, size_t bytes)
{
    size_t dirty;
    struct cache *cache = heap_cache(place.heap);
    void *moved = bytes > old_bytes ? alloc_to_grow(place.heap, cache, bytes,
                                                    bytes_to_grow(old_bytes, bytes), &dirty)
                                    : block_alloc(place.heap, cache, MIN_ALIGN, bytes, &dirty);
    if (UNLIKELY(moved == NULL))
        return resize_stay(place, block, old_bytes, bytes);
    return resize_moved(moved, place, cache, block, size_min(old_bytes, bytes), dirty);
}

/* Whether a large block that becomes shorter stays one: it is rounded up to whole pages, which may
 * be SLACK_SHARE of it, and nothing of it that was never touched is. */
static bool shrinks_in_place(size_t old_bytes, size_t bytes)
{
    return bytes < old_bytes && bytes >= SLACK_SHARE * PAGE_BYTES;
}

/* Whether a block that is no small object stays as it is: all of it but little is still wanted, or
 * what it got in order to grow is. */
static bool block_stays(size_t old_bytes, size_t bytes)
{
    return bytes <= old_bytes && bytes > old_bytes - old_bytes / SLACK_SHARE;
}

bool resize_cell(void *block, size_t old_bytes, size_t bytes)
{
    if (block_stays(old_bytes, bytes))
        return true;
    return bytes > BYTES_SHORT && bytes <= CELL_MOST && bytes > old_bytes / MOST_SHARE &&
           cell_resize((uintptr_t)block, bytes,
                       size_min(bytes_to_grow(old_bytes, bytes), CELL_MOST));
}

void *resize_plain(struct place place, void *block, size_t old_bytes, size_t bytes)
{
    if (place.class == PAGE_MAP_CELL) {
        if (resize_cell(block, old_bytes, bytes))
            return block;
    } else if (place.class != 0) {
        if (object_stays(old_bytes, bytes))
            return block;
    } else if (bytes > medium_most(place.heap) || shrinks_in_place(old_bytes, bytes)) {
        if (old_bytes <= GROWN_MOST && block_stays(old_bytes, bytes))
            return block;
        void *resized = large_resize(&place.heap->page_heap, (uintptr_t)block, bytes);
        if (resized != NULL)
            return resized;
    }
    return resize_by_copy(place, block, old_bytes, bytes);
}
