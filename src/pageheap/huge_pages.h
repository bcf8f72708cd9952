/*
 * Huge pages for spans of which every page will be touched: slabs, which fill in order, and spans
 * of small cells.
 *
 * The idea: where such a span would begin a huge page's range of clean memory, the whole range is
 * made present at once, by a huge page if those are cheap (huge_price.h). What is not taken now is
 * dirty memory from then on, and so the first that is used next; no other kind of request is ever
 * the reason for a huge page. So a program that touches one byte in a thousand has none, and one
 * that fills its memory has hardly any faults.
 *
 * The lock is released meanwhile, as a huge page may take the kernel milliseconds: other threads
 * take and free what there is, or buy for themselves.
 *
 * The kernel is told to use a huge page for that range, and then that it should not make others:
 * what is purged later stays away.
 *
 * Cost: at most one part in ONE_OF_MANY of what slabs and cells fill is present ahead of its use,
 * or was taken by others. A huge page takes a third of the time of the faults that it saves.
 */
#ifndef SNUG_PAGEHEAP_HUGE_PAGES_H
#define SNUG_PAGEHEAP_HUGE_PAGES_H

#include "pageheap/run.h"

/* As run_find, for a span that will be filled. The page heap's lock must be held; it may be
 * released and taken again. */
struct found run_find_packed(struct page_heap *page_heap, size_t pages, size_t alignment);

#endif
