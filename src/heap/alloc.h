/*
 * What alloc.c and resize.c share: both go from a pointer to its place, take and give.
 */
#ifndef SNUG_HEAP_ALLOC_H
#define SNUG_HEAP_ALLOC_H

#include "heap/thread.h"
#include "profile/watch.h"

/* Layout: of a place that is a guarded block (profile/guard.h); no other place has this class. */
enum { PLACE_GUARDED = PAGE_MAP_OTHER };

/* Where an address is: in which heap, and among its small objects (the class), its cells
 * (PAGE_MAP_CELL), guarded blocks or none of these (0). */
struct place {
    struct heap *heap;
    size_t class;
};

/* The place of an address that is not among malloc's small objects and cells. */
struct place place_elsewhere(uintptr_t address);

/* The place of any address, whose page has this class byte. */
static inline struct place place_of(uintptr_t address, size_t byte)
{
    if (byte != 0 && byte <= PAGE_MAP_CELL)
        return (struct place){&heap_default, byte};
    return place_elsewhere(address);
}

/* The usable bytes of what is there; 0, after a report as misuse of `call`, if it is no block. */
size_t place_usable(struct place place, uintptr_t address, const char *call);

/* The block around any address, of any heap, or that was there before it was freed; false: there is
 * none, or it cannot be told. Safe in signal handlers. (extent.c) */
bool block_extent(uintptr_t address, struct block_extent *extent);

/* The largest block that is no large one. */
static inline size_t medium_most(const struct heap *heap)
{
    return heap->page_heap.compact ? SMALL_MOST : CELL_MOST;
}

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

/* A block of a heap that is a sample, noted as such; NULL: there was no memory for it; a
 * small one, which may be had otherwise, is counted as lost. */
void *sample_alloc(struct heap *heap, struct cache *cache, size_t alignment, size_t bytes,
                   size_t *dirty);

/* A block of any size and alignment, or NULL; it is never a sample. `cache`: the thread's, of that
 * heap. Behind its first
 * `*dirty` bytes the block is known to be zero. */
void *block_alloc(struct heap *heap, struct cache *cache, size_t alignment, size_t bytes,
                  size_t *dirty);

/* A cell that does not come from a thread's quick lists; NULL if that cannot be. */
void *cell_alloc_slow(struct heap *heap, size_t bytes, size_t alignment, size_t *dirty);

/* Frees what is at a place; reports what is no block. */
void block_free(struct place place, struct cache *cache, uintptr_t address);

#endif
