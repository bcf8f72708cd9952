/*
 * Taking and freeing blocks without a look at who asks for them: what alloc.c, free.c and
 * resize_plain.c share.
 */
#ifndef SNUG_HEAP_ALLOC_H
#define SNUG_HEAP_ALLOC_H

#include "heap/place.h"

/* The largest block that is no large one. */
static inline size_t medium_most(const struct heap *heap)
{
    return heap->page_heap.compact ? SMALL_MOST : CELL_MOST;
}

/* A block of a heap that is a sample, noted as such. NULL: there was no memory for it; a small one,
 * which may be had otherwise, is counted as lost. */
void *sample_alloc(struct heap *heap, struct cache *cache, size_t alignment, size_t bytes,
                   size_t *dirty);

/* A block of any size and alignment, of a heap that is not hardened, or NULL; it is never a sample.
 * `cache`: the thread's, of that heap. Behind its first `*dirty` bytes the block is known to be
 * zero. errno stays as it is: who has no memory may go on without. */
void *block_alloc(struct heap *heap, struct cache *cache, size_t alignment, size_t bytes,
                  size_t *dirty);

/* A cell, from the thread's quick lists if they have one that fits; NULL if that cannot be. */
void *cell_alloc(struct heap *heap, struct cache *cache, size_t bytes, size_t *dirty);

/* Frees what is at a place that is not hardened; reports what is no block. (free.c) */
void block_free(struct place place, struct cache *cache, uintptr_t address);

#endif
