/*
 * Large objects: those that are no small class's. Up to LARGE_MOST each is a span of a segment, so
 * that pages which are kept serve blocks of any length; above, a mapping of its own. What grows
 * has a mapping of its own from GROWN_MOST on, for that can be resized by moving page table
 * entries, and it gets there in the same way; unless it can grow where it is, or fits into what is
 * kept: copying costs less than faulting in.
 *
 * Thread-safe; takes RANK_PAGE_HEAP.
 */
#ifndef SNUG_PAGEHEAP_LARGE_H
#define SNUG_PAGEHEAP_LARGE_H

#include "meta/extent.h"
#include "meta/misuse.h"
#include "pageheap/large_recent.h"
#include "pageheap/page_heap.h"

/* Bytes (machine): to move the page table entries of a longer block costs less than to copy it. */
#define GROWN_MOST MIB

/* A block of at least `bytes` at a multiple of `alignment` (a power of two), or NULL. Behind its
 * first `*dirty` bytes it is known to be zero. */
void *large_alloc(struct page_heap *page_heap, size_t bytes, size_t alignment, size_t *dirty);

/* The same for a block that was shorter before, and will probably be longer. */
void *large_alloc_grown(struct page_heap *page_heap, size_t bytes, size_t *dirty);

/* A block that does not wait, where the short way (large_recent.h) has found none that does. The
 * lock must be held, and is not after that. NULL: large_alloc may still have one. */
void *large_alloc_missed(struct page_heap *page_heap, size_t bytes, size_t alignment);

/* Frees the block at `address`, unless the result says that there is none. MISUSE_OVERFLOW: it is
 * free, and was written past its end. */
struct misuse large_free(struct page_heap *page_heap, uintptr_t address);

/* The bytes that may be used of the block at `address`, those that were asked for, or what is wrong
 * with the address. MISUSE_OVERFLOW: it was written past its end. */
struct misuse large_usable(struct page_heap *page_heap, uintptr_t address, size_t *bytes);

/* Resizes a block without copying: in place, or by remapping. NULL if that cannot be done: then it
 * is as before. The address must be one for which large_usable finds a block. */
void *large_resize(struct page_heap *page_heap, uintptr_t address, size_t bytes);

/* Frees all huge blocks; for page_heap_clear. The lock must be held. */
void large_clear_locked(struct page_heap *page_heap);

/* Whether a large block begins at an address, or whether it lies in this memory at all, found by
 * walking. Both take the lock. */
bool large_has(struct page_heap *page_heap, uintptr_t address);
bool large_covers(struct page_heap *page_heap, uintptr_t address);

/* The block around an address, or the free pages. False: none is known. Takes the lock if it is
 * free. */
bool large_extent(struct page_heap *page_heap, uintptr_t address, struct block_extent *extent);

/* What is wrong with one of the blocks that wait. Takes the lock. */
struct misuse large_inspect(struct page_heap *page_heap);

/* What is wrong with an address that no slab and no large object begins at. */
struct misuse large_misuse(struct page_heap *page_heap, uintptr_t address);

#endif
