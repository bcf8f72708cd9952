/*
 * Moving blocks out of nearly empty slabs; see slab/slab_move.c for which. Samples of a profile
 * stay: they are known by their addresses.
 */
#include <errno.h>
#include <string.h>

#include "heap/place.h"

/* Whether a block is a live small object that may move. */
static bool is_movable(struct place place, uintptr_t address)
{
    return place.class - 1 < CLASS_COUNT - 1 && place.heap != heap_samples &&
           object_is_live(address, place.class);
}

bool heap_should_move(const void *block)
{
    uintptr_t address = (uintptr_t)block;
    return is_movable(place_of(address, page_map_class_call(address)), address) &&
           object_should_move(address);
}

void *heap_move(void *block)
{
    uintptr_t address = (uintptr_t)block;
    struct place place = place_of(address, page_map_class_call(address));
    if (!is_movable(place, address) || !object_should_move(address))
        return NULL;
    int error = errno;
    void *moved = object_alloc_beside(&place.heap->arenas, address);
    if (moved != NULL) {
        memcpy(moved, block, class_bytes(place.class));
        object_free(address);
    }
    errno = error;
    return moved;
}
