/*
 * Which free pages a page heap keeps, and which go back to the system.
 *
 * No thread waits to do this: it happens in calls of free, and on slow paths. Pages above the bound
 * (retention.h) are purged in the call that makes them free, so they have gone when a program falls
 * idle: what was free for the longest time first, be it a run or an empty segment of the cache,
 * which goes by one call; short runs last. A purge goes on to an eighth of the base below the
 * bound, so that not every free purges.
 *
 * What takes the system long goes without the page heap's lock: it is taken out, and nobody's,
 * until it has gone. The thread that does so holds purge_lock, which fork and who finds no pages
 * wait for.
 *
 * Cost: a system call for each segment or run that goes back. Unless a function says otherwise the
 * page heap's lock must be held.
 */
#ifndef SNUG_PAGEHEAP_PAGE_HEAP_PURGE_H
#define SNUG_PAGEHEAP_PAGE_HEAP_PURGE_H

#include "options/options.h"
#include "pageheap/page_heap_state.h"

/* Times: of the bound, free parts of huge pages are kept up to so much, since their other parts may
 * soon be free as well. */
enum { KEPT_WITH_PARTS_MOST = 2 };

/* How many dirty pages may be kept now. */
size_t page_heap_bound(struct page_heap *page_heap);

/* Purges the pages that are kept above the bound. */
void page_heap_keep_bound(struct page_heap *page_heap);

/* Call when pages cannot be had: waits for what another thread gives back at this moment, without
 * the lock. False: there is nothing to wait for. */
bool page_heap_wait_apart(struct page_heap *page_heap);

/* Joins the blocks that were freed last, and wait (recent.h, nearby.h), with their neighbours: for
 * a request that none of them serves those of the processor at hand, for a purge all. If `at` is
 * not NULL the request is one for a large block, which may lie where the processor freed one last:
 * the run in which that was, and its beginning; NULL: none (recent_take_own). */
struct span *page_heap_join_recent(struct page_heap *page_heap, char **at);
void page_heap_join_waiting(struct page_heap *page_heap);

/* Gives segments back for which the cache has no room. To be called when one was put into it. */
void page_heap_shrink_cache(struct page_heap *page_heap);

/* Gives all segments of the cache back, if `refused` bytes, which the provider did not give, might
 * be had then; 0: in any case. Returns the pages that went. */
size_t page_heap_release_cache(struct page_heap *page_heap, size_t refused);

/* Purges free runs until at most `keep_pages` are dirty, and with 0 gives empty segments back.
 * Returns the bytes that went to the system. Takes the lock. */
size_t page_heap_purge(struct page_heap *page_heap, size_t keep_pages);

/* The page heap's part of the heap's tick (heap/tick.h): the bound of what is kept shrinks by what
 * was not needed, and old empty segments go. False: it is not due. Takes the lock. */
bool page_heap_tick(struct page_heap *page_heap);

/* Some part of the heap wants a tick, at `due` at the latest. Takes the lock. */
void page_heap_ask_tick(struct page_heap *page_heap, uint64_t due);

/* The heap will not be used any more, or is as new: nothing wants a tick. */
void page_heap_end_ticks(struct page_heap *page_heap);

/* The pages that a heap keeps without having missed them, in free runs and inside of free cells
 * together: SNUG_DIRTY, or an eighth of the pages in use, not counting those inside of free cells.
 * Needs no lock; without it the result is a hint. */
size_t page_heap_base(const struct page_heap *page_heap);

/* How many of these may be inside of an arena's free cells, which keep `kept` pages now. Needs no
 * lock. */
size_t page_heap_base_of_cells(const struct page_heap *page_heap, size_t kept);

/* Some arena has so many pages more, or by negative numbers fewer, than it said before: in free
 * cells in memory, in free cells in all, and in cells in use, where the program may never touch
 * them. Needs no lock. */
void page_heap_note_cells(struct page_heap *page_heap, size_t kept, size_t idle, size_t loose);

/* The same of cells that may wait in some thread's quick lists beyond the least. */
void page_heap_note_lists(struct page_heap *page_heap, size_t kept);

/* So many units were handed out that no cell had before. Needs no lock. */
static inline void page_heap_note_fresh(struct page_heap *page_heap, uint32_t units)
{
    /* relaxed, and no addition: a hint; of two threads' that count at once one may be lost */
    uint32_t fresh = __atomic_load_n(&page_heap->cells_fresh, __ATOMIC_RELAXED);
    __atomic_store_n(&page_heap->cells_fresh, fresh + units, __ATOMIC_RELAXED);
}

/* How many, modulo 2^32. */
static inline uint32_t page_heap_fresh(const struct page_heap *page_heap)
{
    return __atomic_load_n(&page_heap->cells_fresh, __ATOMIC_RELAXED);
}

static inline bool page_heap_tick_is_due(const struct page_heap *page_heap)
{
    /* relaxed: a hint; mostly there is nothing to do, and the clock is not read */
    uint64_t due = __atomic_load_n(&page_heap->tick_due, __ATOMIC_RELAXED);
    return UNLIKELY(due != UINT64_MAX) && page_heap->now() >= due;
}

/* Takes note of a change in what is kept or in use. */
static inline void page_heap_see(struct page_heap *page_heap)
{
    retention_see(&page_heap->retention, page_heap_kept_pages(page_heap),
                  page_heap_in_use_pages(page_heap));
}

/* page_heap_keep_bound, but does nothing if all that is kept could stay when the bound was looked
 * at last, and nothing that the bound depends on is other than it was then. */
void page_heap_keep_bound_if_new(struct page_heap *page_heap);

/* Call when a block was put with those that were freed last. */
static inline void page_heap_note_put(struct page_heap *page_heap)
{
    /* A heap may keep so much in any case, which is more than most such blocks. */
    size_t base = options.dirty >> PAGE_SHIFT;
    base -= size_min(base / 2, page_heap_used_kept(page_heap));
    if (UNLIKELY(page_heap_kept_pages(page_heap) > base || options.purge_delay == 0))
        page_heap_keep_bound_if_new(page_heap);
    /* Otherwise there is nothing to see: no more is in use, and no less is kept. */
}

/* Call when so many pages were taken. Clean pages are not those that are kept: then more of the
 * kept ones may have to go. */
static inline void page_heap_note_alloc(struct page_heap *page_heap, size_t pages, bool clean)
{
    if (UNLIKELY(clean && page_heap->retention.ghosts != 0))
        retention_missed(&page_heap->retention, pages, page_heap->now());
    if (clean)
        page_heap_keep_bound(page_heap);
    else
        page_heap_see(page_heap);
}

/* Whether there are huge pages where a span is. A hint: it needs no lock. */
static inline bool span_has_huge_pages(const struct span *span)
{
    return __atomic_load_n(&span->segment->huge, __ATOMIC_RELAXED) == HUGE_THERE;
}

/* Call before parts of a span in use are purged: its segment gets no huge pages any more. Takes the
 * lock. */
void span_split_huge(struct page_heap *page_heap, const struct span *span);

#endif
