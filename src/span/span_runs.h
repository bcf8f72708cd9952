/*
 * What the files of this layer share about runs and segments: span.c takes and frees,
 * span_segment.c has the segments and their cache, span_purge.c gives back. Not for other layers.
 * The lock of the spans must be held for all of it.
 */
#ifndef SNUG_SPAN_SPAN_RUNS_H
#define SNUG_SPAN_SPAN_RUNS_H

#include "meta/page_map.h"
#include "span/span.h"

static inline struct runs *runs_of(struct spans *spans, const struct span *run)
{
    return run->kind == SPAN_DIRTY ? &spans->dirty : &spans->clean;
}

/* A descriptor, or NULL. */
static inline struct span *descriptor_take(struct spans *spans)
{
    struct span *span = meta_take_from(spans->meta, sizeof(*span));
    if (span != NULL)
        span->units = 1;
    return span;
}
_Static_assert(sizeof(struct span) <= META_LEAST, "a descriptor is the least block of metadata");

static inline void descriptor_give(struct spans *spans, struct span *span)
{
    meta_give_to(spans->meta, span, span->units * META_LEAST);
}

/* Makes the first and the last page of a free run lead to it. */
static inline void run_map(struct span *run)
{
    page_map_set_entry(run->start, (uintptr_t)run);
    page_map_set_entry(span_end(run) - PAGE_BYTES, (uintptr_t)run);
}

/* Makes them lead nowhere, but remember what was there. */
static inline void run_unmap(struct span *run)
{
    page_map_set_entry(span_end(run) - PAGE_BYTES, entry_freed(0));
    page_map_set_entry(run->start, entry_freed(run->former_bytes));
}

/* The run of a segment without a page in use that begins at `at`. */
static inline struct span *run_of_empty(const char *at)
{
    return (struct span *)page_map_entry((uintptr_t)at);
}

/* Puts a free run, which is in no bin, where it belongs, joined with its free neighbours. */
void run_settle(struct spans *spans, struct span *run);

/* Cuts `pages` pages at `start` out of a free run; they are in no bin then. The run's descriptor
 * goes on for what is left, or is given back. False: no memory for another; nothing changed. */
bool run_cut(struct spans *spans, struct span *run, char *start, size_t pages);

/* ---- Segments (span_segment.c) ---- */

/* Adds a segment, from the cache or from the provider, in which `pages` pages fit for sure. */
bool spans_grow(struct spans *spans, size_t pages);

/* Fills in what a segment without a page in use, whose runs are in no bin, says of them. */
void segment_summarize(struct segment *segment);

/* Puts such a segment into the list, and its runs into the bins. */
void segment_list(struct spans *spans, struct segment *segment);

/* Adds a segment from the cache of which `pages` pages in a row, or fewer, occupy memory. False:
 * none there is dirty. */
bool spans_grow_dirty(struct spans *spans, size_t pages);

/* Moves a segment without a page in use from the list to the cache. */
void segment_retire(struct spans *spans, struct segment *segment);

/* Purges a segment in the cache that has dirty pages. False: the provider refused. */
bool segment_purge(struct spans *spans, struct segment *segment);

/* Asks for huge pages, or says that there should be none. */
void segment_want_huge(struct spans *spans, struct segment *segment, bool huge);

/* Gives a segment that is in no list, and whose runs are in no bin, back to the provider. False: it
 * refused, and the segment is as before, but for being one run. */
bool segment_drop(struct spans *spans, struct segment *segment);

/* Moves all segments of the cache to the list, their runs into no bin; for spans_clear. */
void spans_list_cached(struct spans *spans);

/* Makes segments leave the cache that it has no room for, or, with `all`, all of them. Returns the
 * pages that went to the system by that. */
size_t spans_shrink_cache(struct spans *spans, bool all);

/* How many dirty pages may be kept now (span_purge.c). */
size_t spans_bound(const struct spans *spans);

/* Takes note of a change in what is kept or in use. */
static inline void spans_see_demand(struct spans *spans)
{
    demand_see(&spans->demand, spans_kept_pages(spans), spans->used_pages + spans->huge_pages);
}

/* To be called when so many pages were taken. If they were clean, not those that are kept, more of
 * the kept ones may have to go. */
static inline void spans_took(struct spans *spans, size_t pages, bool clean)
{
    if (UNLIKELY(clean && spans->demand.ghosts != 0))
        demand_missed(&spans->demand, pages, spans->now());
    if (clean)
        spans_keep_bound(spans);
    else
        spans_see_demand(spans);
}

#endif
