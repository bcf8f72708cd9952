/*
 * Visiting the live objects of a slab: those that are not free in its bitmap, and do not carry the
 * key of those that wait in magazines and depots.
 */
#include "base/bits.h"
#include "slab/slab.h"

bool slab_visit(const struct slab *slab, bool keys,
                bool (*visit)(void *context, void *block, size_t bytes), void *context)
{
    size_t bytes = class_bytes(slab->span.class);
    uintptr_t object = align_down((uintptr_t)slab->span.start, GRID_BYTES) + slab->first * bytes;
    for (size_t i = 0; i < slab->fresh; i++, object += bytes) {
        bool is_free = bitmap_get(slab->free_bits, i) ||
                       (keys && *object_key_word(object) == object_key(object));
        if (!is_free && !visit(context, (void *)object, bytes))
            return false;
    }
    return true;
}
