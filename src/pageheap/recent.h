/*
 * Large blocks that were freed last, each still whole: not joined with its neighbours, in no bin,
 * with its descriptor and its place in the table. A request of exactly that many pages takes the
 * newest such block back.
 *
 * The idea (quick fit, for pages): a program that takes and frees a buffer of one size, over and
 * over, would join and cut the same pages at each turn. Here that is put off until somebody needs
 * other pages: as soon as a request of another length comes, or something is to be purged, all of
 * them are joined as any free would have, so no run is missed and none goes back to the system that
 * would not have otherwise. What waits here counts as kept.
 *
 * Where threads on several processors free large blocks, a request of another length gets pages
 * where its own processor freed a block last, if they are enough: these are in its caches, and what
 * others freed is in theirs, from which it comes line by line. So each block knows where it was
 * freed. As this is no best fit, it is done only while few large blocks are in use.
 *
 * For its segment such a block is in use, so no segment with one is retired; likewise for
 * used_pages. As nobody takes other pages while one waits, the most that was ever in use is known
 * from when pages were taken.
 *
 * Cost: O(RECENT_MOST) to look, in two lines of cache. The page heap's lock must be held.
 * Source: C. Weinstock and W. Wulf, "Quick Fit" (1988), for putting off what joins.
 */
#ifndef SNUG_PAGEHEAP_RECENT_H
#define SNUG_PAGEHEAP_RECENT_H

#include "pageheap/page_heap_state.h"
#include "platform/thread.h"

/* Moves those up that stand behind a gap, at an index below the count. */
void recent_close_gap(struct recent *recent, size_t index);

/* Takes the block at an index out of the list. */
static inline struct span *recent_take_out(struct recent *recent, size_t index)
{
    struct span *span = recent->spans[index];
    uint32_t count = recent->count - 1;
    GAUGE_ADD(recent->pages, -(size_t)span->pages);
    GAUGE_SET(recent->count, count);
    if (UNLIKELY(index != count))
        recent_close_gap(recent, index);
    return span;
}

/* Takes the newest block of `pages` at a multiple of `alignment` out of a list; NULL if there is
 * none. */
static inline struct span *recent_take(struct recent *recent, size_t pages, size_t alignment)
{
    for (size_t i = recent->count; i != 0; i--) {
        const struct span *span = recent->spans[i - 1];
        if (span->pages == pages && ((uintptr_t)span->start & (alignment - 1)) == 0)
            return recent_take_out(recent, i - 1);
    }
    return NULL;
}

/* Puts a block into a list, in which there is room. */
static inline void recent_add(struct recent *recent, struct span *span)
{
    uint32_t count = recent->count;
    recent->spans[count] = span;
    GAUGE_SET(recent->requested[count], span->requested);
    GAUGE_SET(recent->count, count + 1);
    GAUGE_ADD(recent->pages, span->pages);
}

/* Takes a block of `pages` back, at a multiple of `alignment`, which is a large one in use again;
 * NULL if there is none. */
static inline struct span *recent_get(struct page_heap *page_heap, size_t pages, size_t alignment)
{
    struct span *span = recent_take(&page_heap->recent, pages, alignment);
    if (LIKELY(span != NULL))
        span->kind = SPAN_LARGE;
    return span;
}

/* Joins a block that waited, and was taken out, with its neighbours. Returns the run that it is
 * part of then; NULL: its segment went to the cache. */
struct span *recent_join_span(struct page_heap *page_heap, struct span *span);

/* Puts a large block there that is freed now. If there is no room the oldest is joined; true: its
 * segment went to the cache. */
static inline bool recent_put(struct page_heap *page_heap, struct span *span)
{
    struct recent *recent = &page_heap->recent;
    bool retired = UNLIKELY(recent->count == RECENT_MOST) &&
                   recent_join_span(page_heap, recent_take_out(recent, 0)) == NULL;
    span->kind = SPAN_RECENT;
    recent->homes[recent->count] = page_heap->home;
    recent_add(recent, span);
    return retired;
}

/* Joins all of them with their neighbours. True: a segment went to the cache. */
bool recent_join(struct page_heap *page_heap);

/* Notes the processor that is about to free a large block. */
void recent_note_home(struct page_heap *page_heap);

/* Takes the block out that was freed last by the processor at hand, if another is to lie where it
 * is; NULL: there is none. To be called while own_turns is not 0. */
struct span *recent_take_own(struct page_heap *page_heap);

/* Makes a span, to which nothing leads any more, free pages, dirty or clean. Returns the run that
 * it is part of then; NULL: its segment went to the cache. */
struct span *span_join(struct page_heap *page_heap, struct span *span, enum span_kind kind,
                       size_t object_bytes);

#endif
