/*
 * The object around an address: the grid tells where it begins, and its key whether it is free. The
 * slab is only asked where one of malloc's heap is not in the page of the address, for at both ends
 * of a slab the grid goes on without objects; and in other heaps, whose page's byte does not say
 * the class.
 */
#include "slab/slab.h"

static void extent_of(uintptr_t address, size_t class, struct block_extent *extent)
{
    extent->start =
        align_down(address, GRID_BYTES) + grid_index(address, class) * class_size(class);
    extent->end = extent->start + class_size(class);
}

/* relaxed: a word of the program's, which other threads of it may be writing */
static bool has_key(uintptr_t object)
{
    return __atomic_load_n(object_key_word(object), __ATOMIC_RELAXED) == object_key(object);
}

static bool extent_by_slab(uintptr_t address, struct block_extent *extent)
{
    uintptr_t entry = page_map_entry_fast(address);
    if (!entry_is_span(entry))
        return false;
    const struct slab *slab = (const struct slab *)entry;
    if (slab->span.kind != SPAN_SLAB)
        return false;
    size_t class = slab->span.class;
    if (grid_index(address, class) - slab->first >= slab->capacity) /* wraps below the first */
        return false;
    extent_of(address, class, extent);
    extent->is_free = !slab->span.segment->page_heap->untouched && has_key(extent->start);
    return true;
}

bool slab_extent(uintptr_t address, size_t byte, struct block_extent *extent)
{
    if (byte >= CLASS_COUNT)
        return extent_by_slab(address, extent);
    extent_of(address, byte, extent);
    if (((uintptr_t)object_key_word(extent->start) ^ address) >> PAGE_SHIFT != 0)
        return extent_by_slab(address, extent);
    extent->is_free = has_key(extent->start);
    return true;
}
