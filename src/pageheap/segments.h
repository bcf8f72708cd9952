/*
 * The segments of a page heap: where runs come from, and where they go when a segment is empty.
 *
 * A segment without a page in use leaves the list for the cache of empty segments, and its runs the
 * bins. They stay cut as they are, so to put it back is to put its few runs back into the bins. A
 * huge block that is freed becomes a segment of one dirty run in the cache, and a whole cached
 * segment can become a huge block.
 *
 * Nothing is decided here: a segment stays in the cache until a function of page_heap_purge.h takes
 * it out.
 *
 * Cost: O(the runs of an empty segment). The page heap's lock must be held.
 */
#ifndef SNUG_PAGEHEAP_SEGMENTS_H
#define SNUG_PAGEHEAP_SEGMENTS_H

#include "pageheap/page_heap_state.h"

/* Pages: of the first segments, since a program that locks its memory pays for all of it. They hold
 * a span of cells and some slabs. A segment that is to have huge pages is not shorter. */
#define SEGMENT_PAGES_FIRST ((MIB + 256 * KIB) >> PAGE_SHIFT)

/* Bytes: a heap asks its provider for no less, as descriptors, an arena and first slabs fill that.
 * When there is not room for a segment, the multiple of these that the request needs is tried. */
#define SEGMENT_LEAST (64 * KIB)

/* Adds a segment, from the cache or from the provider, in which `pages` pages fit for sure. With
 * `dirty_only`, one from the cache of which some pages occupy memory; false: there is none. */
bool segments_grow(struct page_heap *page_heap, size_t pages, bool dirty_only);

/* Puts a segment without a page in use into the list, and its runs into the bins. */
void segments_add(struct page_heap *page_heap, struct segment *segment);

/* Fills in what a segment without a page in use says of its runs, for the cache. */
void segment_summarize(struct segment *segment);

/* Puts a summarized segment that is in no list, and whose runs are in no bin, into the cache. */
void segments_cache(struct page_heap *page_heap, struct segment *segment);

/* Moves a segment without a page in use from the list to the cache. */
void segments_retire(struct page_heap *page_heap, struct segment *segment);

/* Purges a summarized segment that is in no list, whose runs are in no bin, and that has dirty
 * pages. False: the provider refused. This and the next need no lock. */
bool segments_purge(struct page_heap *page_heap, struct segment *segment);

/* Gives such a segment, dirty or not, back to the provider. False: it refused, and the segment is
 * as before, but for being one run. */
bool segments_drop(struct page_heap *page_heap, struct segment *segment);

/* Whole ranges, for huge blocks. */

/* A range of `bytes` or, from the cache, up to an eighth more, at a multiple of `alignment`, which
 * `span` then describes; false: no memory. */
bool segments_alloc_range(struct page_heap *page_heap, struct span *span, size_t bytes,
                          size_t alignment);

/* Takes a range back, and the span with it: into the cache, or to the provider. */
void segments_free_range(struct page_heap *page_heap, struct span *span);

/* Asks the provider for huge pages in a segment, or says that there should be none. */
void segment_ask_huge(const struct page_heap *page_heap, struct segment *segment, bool huge);

/* Atomic because span_has_huge_pages reads without the lock; relaxed: it is a hint. */
static inline void segment_set_huge(struct segment *segment, enum segment_huge huge)
{
    __atomic_store_n(&segment->huge, (uint8_t)huge, __ATOMIC_RELAXED);
}

#endif
