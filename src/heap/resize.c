/*
 * Resizing: what realloc does where the magazines have no copy. See resize.h.
 */
#include "heap/resize.h"

#include "heap/tick.h"

/* Resizes a block of which `old_bytes` may be used; 0: that is not known yet. */
static NOINLINE void *resize_other(void *block, size_t bytes, size_t class, size_t old_bytes)
{
    uintptr_t address = (uintptr_t)block;
    if (UNLIKELY(class == PAGE_MAP_HARDENED))
        return heap_resize_hardened(block, bytes);
    struct place place = place_of(address, class);
    heap_poll_taking(place.heap);
    if (old_bytes == 0)
        old_bytes = object_is_live(address, class) ? class_size(class)
                                                   : place_usable(place, address, "realloc");
    if (bytes > MAX_REQUEST)
        return NULL;
    if (UNLIKELY(old_bytes == 0))
        return resize_empty(place, block, bytes);
    if (watch_is_on() || profile_has_blocks())
        return resize_watched(place, block, old_bytes, bytes);
    return resize_plain(place, block, old_bytes, bytes);
}

/* A program that only resizes, and moves nothing, is asked as well. */
static NOINLINE void *after_poll(void *block)
{
    heap_poll_taking(&heap_default);
    return block;
}

void *heap_resize(void *block, size_t bytes)
{
    size_t class = page_map_class((uintptr_t)block);
    size_t old_bytes = place_cell_bytes(class, (uintptr_t)block);
    if (block_stays(old_bytes, bytes) && !watch_is_on())
        return LIKELY(!events_wait()) ? block : after_poll(block);
    return resize_other(block, bytes, class, old_bytes);
}
