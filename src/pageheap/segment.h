/*
 * Segments: the ranges that a heap takes from its provider, some MiB each, and cuts into spans.
 *
 * A segment needs no particular size or alignment, so any range of memory can be one: the mapping
 * of a huge block that was freed becomes one, and an empty segment can serve as a huge block. The
 * page map has its leaves before a segment is used, so that nothing later can fail for their lack.
 */
#ifndef SNUG_PAGEHEAP_SEGMENT_H
#define SNUG_PAGEHEAP_SEGMENT_H

#include "base/list.h"
#include "meta/meta.h"
#include "provider/provider.h"

struct span;
struct page_heap;

/* Huge pages in a segment. */
enum segment_huge {
    HUGE_NONE,      /* none were asked for */
    HUGE_BY_SYSTEM, /* it was one block, for which the system may use them by itself */
    HUGE_THERE,     /* there are, or will be */
    HUGE_SPLIT      /* there were, and parts of them were purged: see segment_split_huge */
};

struct segment {
    struct list link;            /* in the heap's list of segments, or in its cache of empty ones */
    struct page_heap *page_heap; /* that it belongs to */
    char *start;
    size_t pages;
    struct span *first;  /* the leftmost of the spans that tile it */
    uint32_t used_pages; /* <= pages: those of slabs, cells and large blocks, recent too */
    /* While it is in the cache: */
    uint32_t dirty_pages; /* those that occupy memory; 0: all of it is zero */
    uint64_t emptied;     /* since when, on the heap's clock, in nanoseconds, */
    uint16_t freed;       /* and on that of the dirty runs (runs.h) */
    uint32_t longest;     /* pages of the longest run of one kind in it */
    uint8_t huge;         /* enum segment_huge */
};
_Static_assert(sizeof(struct segment) <= 2 * META_LEAST, "a block of metadata");

/* A segment of `pages`, all zero, with its descriptor from `meta`; or NULL. */
struct segment *segment_new(struct page_heap *page_heap, const struct provider *provider,
                            struct meta *meta, size_t pages);

/* Makes a segment of `pages` at `start`, which the provider gave as a whole. NULL: no memory for
 * its descriptor or for the page map. */
struct segment *segment_of_range(struct page_heap *page_heap, struct meta *meta, char *start,
                                 size_t pages);

/* Gives a segment back. False: the provider refused, and the segment is as before. */
bool segment_free(const struct provider *provider, struct meta *meta, struct segment *segment);

/* Forgets a segment whose memory goes on as something else. */
void segment_forget(struct meta *meta, struct segment *segment);

static inline char *segment_end(const struct segment *segment)
{
    return segment->start + (segment->pages << PAGE_SHIFT);
}

#endif
