/*
 * One run: joined with its neighbours, cut, shortened, made longer by what is beside it. No
 * decision is made here: what is free, and of which kind, the callers say.
 *
 * Cost: O(1), but for run_widen, which goes on for as many runs as it takes in. The page heap's
 * lock must be held.
 */
#ifndef SNUG_PAGEHEAP_RUN_H
#define SNUG_PAGEHEAP_RUN_H

#include "pageheap/page_heap_state.h"

/* A run in which a span fits. */
struct found {
    struct span *run;      /* NULL: there is none */
    size_t fresh;          /* pages of it that were clean, and are about to be used */
    const char *dirty_end; /* behind here it is zero */
};

/* Takes the span on the right of a run, which is in no bin any more, into it; so is the run. */
void run_take_in(struct page_heap *page_heap, struct span *run);

/* Makes a run, which is in no bin, one whose pages are made present or purged without the lock: as
 * if it were in use, so nobody joins it, and its segment stays. */
void run_begin_busy(struct page_heap *page_heap, struct span *run);

/* Ends that: it is a run of this kind, and where it belongs. Its descriptor may be gone then. */
void run_end_busy(struct page_heap *page_heap, struct span *run, enum span_kind kind);

/* Puts a run, which is in no bin, where it belongs, joined with its neighbours of the same kind.
 * Returns what it is then: its descriptor may be gone. */
struct span *run_settle(struct page_heap *page_heap, struct span *run);

/* Cuts `pages` pages at `start` out of a run, as `span`, which is in no bin then and has its place,
 * its length and its kind. The run's descriptor goes on for what is left, or is given back. False:
 * no memory for another; nothing changed. */
bool run_cut(struct page_heap *page_heap, struct span *run, struct span *span, char *start,
             size_t pages);

/* The same as a run of its own, which may be all of it. NULL: no memory for a descriptor. */
struct span *run_part(struct page_heap *page_heap, struct span *run, char *start, size_t pages);

/* Takes `pages` pages from that end of a run at which a neighbour is to become longer. */
void run_shorten(struct page_heap *page_heap, struct span *run, size_t pages, bool at_start);

/* The run of any kind on the right of a span, or on its left; NULL if there is none. */
struct span *run_beside(const struct span *span, bool right);

/* Whether a run is part of `pages` free pages in a row, dirty or clean. */
bool run_can_widen(const struct span *run, size_t pages);

/* Makes a dirty run long enough for `pages` at a multiple of `alignment`, by what is free beside
 * it: first on its right, as that may leave all of its left in use. It must be part of as many free
 * pages in a row as have room for that wherever they begin. The pages that were clean count as
 * dirty from then on; the caller takes them at once, or all but less than `alignment` of them. */
struct found run_widen(struct page_heap *page_heap, struct span *run, size_t pages,
                       size_t alignment);

#endif
