/*
 * What alloc.c and resize.c share: both go from a pointer to its place, take and give.
 */
#ifndef SNUG_HEAP_ALLOC_H
#define SNUG_HEAP_ALLOC_H

#include "heap/thread.h"

/* Where an address is: in which heap, and among its small objects (the class), its cells
 * (PAGE_MAP_CELL) or neither (0). */
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

/* The largest block that is no large one. */
static inline size_t medium_most(const struct heap *heap)
{
    return heap->page_heap.compact ? SMALL_MOST : CELL_MOST;
}

/* A block of any size and alignment, or NULL. `cache`: the thread's, of that heap. Behind its first
 * `*dirty` bytes the block is known to be zero. */
void *block_alloc(struct heap *heap, struct cache *cache, size_t alignment, size_t bytes,
                  size_t *dirty);

/* What heap_alloc_with does after it has polled; and heap_free_of, of what is in no slab and no
 * span of cells. `block` is not NULL. */
void *heap_alloc_polled(struct heap *heap, struct cache *cache, size_t bytes);
void heap_free_polled(void *block);

/* A cell that does not come from a thread's quick lists; NULL if that cannot be. */
void *cell_alloc_slow(struct heap *heap, size_t bytes, size_t alignment, size_t *dirty);

/* Frees what is at a place; reports what is no block. */
void block_free(struct place place, struct cache *cache, uintptr_t address);

#endif
