/*
 * Where large blocks begin if the program leaves most of each untouched.
 *
 * A program that writes to the beginning of each block touches a page wherever one begins. Blocks
 * of many lengths begin anywhere in what others left, so that sooner or later each page was a
 * beginning, and is there though all blocks are nearly empty: 500 blocks of 200 to 400 KB had 137
 * MiB, of 2 that were written to, after 100,000 were replaced.
 *
 * The idea: of a block that is freed the system is now and then asked how much of its middle is
 * there (mincore). Little, but not nothing, is what others left. If that is seen twice, with no
 * full block in between, blocks begin at multiples of half the power of two that they are as long
 * as, or longer: mostly where others began. The gaps cost addresses alone. A full block ends it.
 * Every 2 MiB is seldom enough: a beginning and its page table are a 256th of that, and at
 * multiples of more a long block does not fit into what one of its like left.
 *
 * Cost: a system call for a page table's walk over 64 pages: while blocks are sparse at each fourth
 * block that is joined at first, and at each 64th as it goes on, otherwise in the end at each
 * 1,024th. The page heap's lock must be held.
 */
#ifndef SNUG_PAGEHEAP_SPARSE_H
#define SNUG_PAGEHEAP_SPARSE_H

#include "base/bits.h"
#include "pageheap/page_heap_state.h"
#include "platform/memory.h"

/* Looks: so many in a row must find what others left; after so many more what was missed is to be
 * forgotten when a full block comes. */
enum { SPARSE_SEEN = 2, SPARSE_LONG = 16 };

/* Call before a large block is joined with what is free beside it. */
void sparse_look(struct page_heap *page_heap, const struct span *span);

/* Of a range of `pages` that is too long to wait, how many of so many dirty ones are in memory,
 * before it goes back: the program may hardly have written to it, and others are not to be kept in
 * its place. What may wait counts in full: as kept, as gone, and as missed. Needs no lock. */
size_t sparse_pages_there(const struct page_heap *page_heap, const void *start, size_t pages,
                          size_t dirty);

/* Where a new block of `pages` is to begin: at a multiple of so many bytes. Needs no lock: without
 * it the result is a hint. */
static inline size_t sparse_alignment(const struct page_heap *page_heap, size_t pages)
{
    /* relaxed: see above */
    bool sparse = __atomic_load_n(&page_heap->sparse_seen, __ATOMIC_RELAXED) >= SPARSE_SEEN;
    return LIKELY(!sparse) ? PAGE_BYTES
                           : size_min((PAGE_BYTES << bit_highest(pages)) / 2, OS_HUGE_PAGE);
}

#endif
