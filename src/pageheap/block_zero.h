/*
 * Memory that the system makes zero for less than it takes to write.
 *
 * The idea: what was handed out and freed counts as dirty, but a program may have touched little of
 * it, and writing zeros to the rest would make it present. So the system is asked what is there;
 * where that is little, or the range is long, it goes back and is zero when it is touched again.
 * For short ranges to ask costs a part of what writing does: they are asked about as long as that
 * pays, and otherwise at ever rarer occasions.
 *
 * Costs: writing zeros takes 0.5 us a page, and 1.5 more for each that is not there; giving pages
 * back 0.2 us for each that is there, and 1.5 for each that is touched again; to ask, 0.2 us and 10
 * ns a page.
 */
#ifndef SNUG_PAGEHEAP_BLOCK_ZERO_H
#define SNUG_PAGEHEAP_BLOCK_ZERO_H

#include "pageheap/page_heap_state.h"

/* Makes the first `bytes` of a block zero, of cells or a large one, which the caller has just been
 * given. Takes no lock. */
void block_zero(struct page_heap *page_heap, void *block, size_t bytes);

#endif
