/*
 * Resizing: what realloc does where the magazines have no copy. See resize.h.
 */
#include "heap/resize.h"

#include "heap/tick.h"

void *heap_resize_known(void *block, size_t bytes, size_t old_bytes)
{
    uintptr_t address = (uintptr_t)block;
    size_t class = page_map_class_call(address);
    if (UNLIKELY(class == PAGE_MAP_HARDENED))
        return heap_resize_hardened(block, bytes);
    struct place place = place_of(address, class);
    heap_poll_taking(place.heap);
    if (old_bytes == 0)
        old_bytes = place_usable(place, address, "realloc");
    if (bytes > MAX_REQUEST)
        return NULL;
    if (UNLIKELY(old_bytes == 0))
        return resize_empty(place, block, bytes);
    if (watch_is_on() || profile_has_blocks())
        return resize_watched(place, block, old_bytes, bytes);
    return resize_plain(place, block, old_bytes, bytes);
}
