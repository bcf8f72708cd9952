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

/* Makes `span` the right neighbour of `left`, or the left one of `right`. */
static inline void span_link_right(struct span *left, struct span *span)
{
    span->left = left;
    span->right = left->right;
    if (left->right != NULL)
        left->right->left = span;
    left->right = span;
}

static inline void span_link_left(struct span *right, struct span *span)
{
    span->left = right->left;
    span->right = right;
    if (right->left != NULL)
        right->left->right = span;
    else
        right->segment->first = span;
    right->left = span;
}

/* Takes a span out from between its neighbours. */
static inline void span_unlink(struct span *span)
{
    if (span->left != NULL)
        span->left->right = span->right;
    else
        span->segment->first = span->right;
    if (span->right != NULL)
        span->right->left = span->left;
}

/* Makes `span` all of its segment. */
static inline void span_link_only(struct span *span)
{
    span->left = span->right = NULL;
    span->segment->first = span;
}

/* ---- One run (run.c) ---- */

/* A run in which a span fits. */
struct found {
    struct span *run;      /* NULL: there is none */
    size_t fresh;          /* pages of it that were clean, and are about to be used */
    const char *dirty_end; /* behind here it is zero */
};

/* Puts a free run, which is in no bin, where it belongs, joined with its free neighbours. */
void run_settle(struct spans *spans, struct span *run);

/* Cuts `pages` pages at `start` out of a free run, as `span`, which is in no bin then and has its
 * place, its length and its kind. The run's descriptor goes on for what is left, or is given back.
 * False: no memory for another; nothing changed. */
bool run_cut(struct spans *spans, struct span *run, struct span *span, char *start, size_t pages);

/* Takes `pages` pages from that end of a free run at which a neighbour is to become longer. */
void run_shorten(struct spans *spans, struct span *run, size_t pages, bool at_start);

/* The free run of any kind on the right of a span, or on its left; NULL if there is none. */
struct span *run_beside(const struct span *span, bool right);

/* Whether a run is part of `pages` free pages in a row, dirty or clean. */
bool run_can_widen(const struct span *run, size_t pages);

/* Makes a dirty run `pages` long by what is free beside it. The pages that were clean count as
 * dirty until the caller takes all, at once. */
struct found run_widen(struct spans *spans, struct span *run, size_t pages);

/* ---- Finding one (run_find.c) ---- */

struct found run_find(struct spans *spans, size_t pages, size_t alignment);

/* Only one that memory is paid for already: a dirty one, or one in the cache, or one with a dirty
 * part. */
struct found run_find_kept(struct spans *spans, size_t pages, size_t alignment);

/* For a span that will be filled; see span_packed.c. */
struct found run_find_packed(struct spans *spans, size_t pages, size_t alignment);

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

/* Notes whether there are huge pages, or will be. */
static inline void segment_has_huge(struct segment *segment, bool has)
{
    /* Atomic because span_has_huge_pages reads without the lock; relaxed: it is a hint. */
    __atomic_store_n(&segment->huge_pages, has, __ATOMIC_RELAXED);
}

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
