/*
 * The block around an address: the class byte of its page says who knows. Large blocks of heaps of
 * the program's own are not looked for: that would take more locks than one that can be tried.
 */
#include "hardened/hardened.h"
#include "heap/place.h"
#include "pageheap/large.h"
#include "platform/tags.h"

/* In terms of the pointer, which may have a tag. */
static bool hardened_extent(uintptr_t pointer, struct block_extent *extent)
{
    uintptr_t tag = pointer - tags_strip(pointer);
    bool found = hard_extent(pointer - tag, extent);
    extent->start += tag;
    extent->end += tag;
    return found;
}

bool block_extent(uintptr_t address, struct block_extent *extent)
{
    size_t byte = page_map_class_call(address);
    if (byte == PAGE_MAP_CELL || byte == PAGE_MAP_OTHER_CELL)
        return cell_extent(address, extent);
    if (byte == PAGE_MAP_HARDENED)
        return hardened_extent(address, extent);
    if (byte != 0)
        return slab_extent(address, byte, extent);
    return heap_is_made() && large_extent(&heap_default.page_heap, address, extent);
}
