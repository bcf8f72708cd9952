/*
 * What a pointer is. See place.h.
 */
#include "heap/place.h"

#include "hardened/hardened.h"
#include "heap/empty.h"
#include "heap/user_heaps.h"

struct heap *heap_samples;

/* Whether a pointer into a slab begins an object that is not free, as far as that can be told
 * without a lock. */
static bool small_is_sound(const struct heap *heap, uintptr_t address, size_t class)
{
    if (heap->page_heap.untouched)
        return slab_misuse(address).kind == MISUSE_NONE;
    return object_is_live(address, class);
}

struct misuse small_misuse(const struct heap *heap, uintptr_t address, size_t class)
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

/* The heap that has a large block at an address, of which `first` is asked first; otherwise the one
 * in whose memory it is; if none does, malloc's, which says so. */
static struct heap *heap_of_large(struct heap *first, uintptr_t address)
{
    if (!heaps_exist() || has_large(first, &address))
        return first;
    if (first != &heap_default && has_large(&heap_default, &address))
        return &heap_default;
    struct heap *heap = heaps_find_by(has_large, &address);
    if (heap == NULL)
        heap = heaps_find(covers, &address);
    return heap != NULL ? heap : &heap_default;
}

NOINLINE struct place place_elsewhere(struct heap *first, uintptr_t address)
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
    } else if (address != 0 && !empty_covers(address)) {
        place.heap = heap_of_large(first, address);
    }
    return place;
}

struct heap *heap_of(const void *block)
{
    uintptr_t address = (uintptr_t)block;
    struct heap *heap = place_of(address, page_map_class_call(address)).heap;
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
        misuse = heap_usable_hardened(address, &bytes);
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
    struct place place = place_of(address, page_map_class(address));
    size_t bytes = place_cell_bytes(place.class, address);
    return LIKELY(bytes != 0) ? bytes : place_usable(place, address, call);
}
