/*
 * From a pointer to its place: which heap it is of, and what serves there.
 *
 * The page map tells at once what is a small object or a cell of malloc's heap. The span of all
 * other slabs, cells and hardened zones leads to its heap; a large block is looked for.
 */
#ifndef SNUG_HEAP_PLACE_H
#define SNUG_HEAP_PLACE_H

#include "heap/thread.h"
#include "profile/watch.h"

/* Layout: of a place that is a guarded block (profile/guard.h); no other place has this class. */
enum { PLACE_GUARDED = PAGE_MAP_OTHER };

/* Where an address is: in which heap, and among its small objects (the class), its cells
 * (PAGE_MAP_CELL), hardened blocks (PAGE_MAP_HARDENED), guarded blocks or none of these (0). */
struct place {
    struct heap *heap;
    size_t class;
};

/* The place of an address that is not among malloc's small objects and cells. To find the heap of a
 * large block all are asked, `first` before the others. */
struct place place_elsewhere(struct heap *first, uintptr_t address);

/* The place of any address, whose page has this class byte. */
static inline struct place place_near(struct heap *first, uintptr_t address, size_t byte)
{
    if (byte != 0 && byte <= PAGE_MAP_CELL)
        return (struct place){&heap_default, byte};
    return place_elsewhere(first, address);
}

static inline struct place place_of(uintptr_t address, size_t byte)
{
    return place_near(&heap_default, address, byte);
}

/* The usable bytes of what is there; 0, after a report as misuse of `call`, if it is no block. */
size_t place_usable(struct place place, uintptr_t address, const char *call);

/* The same of a live cell, where places of this class are likely to be one; otherwise 0. */
static ALWAYS_INLINE size_t place_cell_bytes(size_t class, uintptr_t address)
{
    bool live = class == PAGE_MAP_CELL && cell_is_live_at(address);
    return LIKELY(live) ? cell_bytes(address) : 0;
}

/* What is wrong with a pointer into a slab that begins no object, or one that is free. */
struct misuse small_misuse(const struct heap *heap, uintptr_t address, size_t class);

/* Samples of malloc's blocks lie in a heap of their own, whose pages tell free that they are not
 * malloc's; but for large blocks, which are looked for in any case, and stay where they were. In
 * other heaps a sample of any size is a large block: so it counts towards the heap's limits, and
 * goes when that is cleared. So free needs no test for them. NULL until the first profile is taken.
 * (sampled.c) */
extern struct heap *heap_samples;

/* Whether what is at a place may be a sample. */
static inline bool place_may_be_sample(struct place place)
{
    return profile_has_blocks() && (place.class == 0 || place.heap == heap_samples);
}

/* The block around any address, of any heap, or that was there before it was freed; false: there is
 * none, or it cannot be told. Safe in signal handlers. (extent.c) */
bool block_extent(uintptr_t address, struct block_extent *extent);

#endif
