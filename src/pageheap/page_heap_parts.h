/*
 * What the files of this layer share about runs and segments: span.c takes and frees,
 * span_segment.c has the segments and their cache, span_purge.c gives back. Not for other layers.
 * The lock of the spans must be held for all of it.
 */
#ifndef SNUG_PAGEHEAP_PAGE_HEAP_PARTS_H
#define SNUG_PAGEHEAP_PAGE_HEAP_PARTS_H

#include "meta/page_map.h"
#include "pageheap/page_heap.h"

static inline struct runs *runs_of(struct page_heap *page_heap, const struct span *run)
{
    return run->kind == SPAN_DIRTY ? &page_heap->dirty : &page_heap->clean;
}

/* A descriptor, or NULL. */
static inline struct span *descriptor_alloc(struct page_heap *page_heap)
{
    struct span *span = meta_alloc_from(page_heap->meta, sizeof(*span));
    if (span != NULL)
        span->units = 1;
    return span;
}
_Static_assert(sizeof(struct span) <= META_LEAST, "a descriptor is the least block of metadata");

static inline void descriptor_free(struct page_heap *page_heap, struct span *span)
{
    meta_free_to(page_heap->meta, span, span->units * META_LEAST);
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
void run_settle(struct page_heap *page_heap, struct span *run);

/* Cuts `pages` pages at `start` out of a free run, as `span`, which is in no bin then and has its
 * place, its length and its kind. The run's descriptor goes on for what is left, or is given back.
 * False: no memory for another; nothing changed. */
bool run_cut(struct page_heap *page_heap, struct span *run, struct span *span, char *start,
             size_t pages);

/* Takes `pages` pages from that end of a free run at which a neighbour is to become longer. */
void run_shorten(struct page_heap *page_heap, struct span *run, size_t pages, bool at_start);

/* The free run of any kind on the right of a span, or on its left; NULL if there is none. */
struct span *run_beside(const struct span *span, bool right);

/* Whether a run is part of `pages` free pages in a row, dirty or clean. */
bool run_can_widen(const struct span *run, size_t pages);

/* Makes a dirty run `pages` long by what is free beside it. The pages that were clean count as
 * dirty until the caller takes all, at once. */
struct found run_widen(struct page_heap *page_heap, struct span *run, size_t pages);

/* ---- Finding one (run_find.c) ---- */

struct found run_find(struct page_heap *page_heap, size_t pages, size_t alignment);

/* Only one that memory is paid for already: a dirty one, or one in the cache, or one with a dirty
 * part. */
struct found run_find_kept(struct page_heap *page_heap, size_t pages, size_t alignment);

/* For a span that will be filled; see span_packed.c. */
struct found run_find_packed(struct page_heap *page_heap, size_t pages, size_t alignment);

/* ---- Segments (span_segment.c) ---- */

/* Adds a segment, from the cache or from the provider, in which `pages` pages fit for sure. */
bool page_heap_grow(struct page_heap *page_heap, size_t pages);

/* Fills in what a segment without a page in use, whose runs are in no bin, says of them. */
void segment_summarize(struct segment *segment);

/* Puts such a segment into the list, and its runs into the bins. */
void segment_list(struct page_heap *page_heap, struct segment *segment);

/* Adds a segment from the cache of which `pages` pages in a row, or fewer, occupy memory. False:
 * none there is dirty. */
bool page_heap_grow_dirty(struct page_heap *page_heap, size_t pages);

/* Moves a segment without a page in use from the list to the cache. */
void segment_retire(struct page_heap *page_heap, struct segment *segment);

/* Purges a segment in the cache that has dirty pages. False: the provider refused. */
bool segment_purge(struct page_heap *page_heap, struct segment *segment);

/* Notes whether there are huge pages, or will be. */
static inline void segment_has_huge(struct segment *segment, bool has)
{
    /* Atomic because span_has_huge_pages reads without the lock; relaxed: it is a hint. */
    __atomic_store_n(&segment->huge_pages, has, __ATOMIC_RELAXED);
}

/* Asks for huge pages, or says that there should be none. */
void segment_want_huge(struct page_heap *page_heap, struct segment *segment, bool huge);

/* Gives a segment that is in no list, and whose runs are in no bin, back to the provider. False: it
 * refused, and the segment is as before, but for being one run. */
bool segment_drop(struct page_heap *page_heap, struct segment *segment);

/* Moves all segments of the cache to the list, their runs into no bin; for page_heap_clear. */
void page_heap_list_cached(struct page_heap *page_heap);

/* Makes segments leave the cache that it has no room for, or, with `all`, all of them. Returns the
 * pages that went to the system by that. */
size_t page_heap_shrink_cache(struct page_heap *page_heap, bool all);

/* How many dirty pages may be kept now (span_purge.c). */
size_t page_heap_bound(const struct page_heap *page_heap);

/* Takes note of a change in what is kept or in use. */
static inline void page_heap_see(struct page_heap *page_heap)
{
    retention_see(&page_heap->retention, page_heap_kept_pages(page_heap),
                  page_heap->used_pages + page_heap->huge_pages);
}

/* To be called when so many pages were taken. If they were clean, not those that are kept, more of
 * the kept ones may have to go. */
static inline void page_heap_note_alloc(struct page_heap *page_heap, size_t pages, bool clean)
{
    if (UNLIKELY(clean && page_heap->retention.ghosts != 0))
        retention_missed(&page_heap->retention, pages, page_heap->now());
    if (clean)
        page_heap_keep_bound(page_heap);
    else
        page_heap_see(page_heap);
}

#endif
