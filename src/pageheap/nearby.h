/*
 * Large blocks that stay near a processor: so threads that take and free such blocks at the same
 * time neither wait for each other, nor take the lines of the page heap from one another's caches.
 *
 * The idea: each processor knows some of the blocks that were taken there, by address, and when one
 * of these is freed there it waits there, whole, for a request of as many pages. Both are done
 * under a lock of its own, which hardly anybody else wants. A block becomes known when it is taken
 * of the recent ones (recent.h), one for each time that a thread had to wait for a page heap's
 * lock: so as many get here as there is contention for, and a program whose threads do not meet
 * never has any.
 *
 *     taken of the recent ones, after a wait ──> known ──free──> waits ──malloc──> known
 *                                                  └─ freed elsewhere, resized: a block like any
 *
 * For the page heap such a block is in use, whether it waits or not, and is in the table; so the
 * peaks that it counts contain what waits, and statistics subtract it. Who comes to one by the
 * table asks here first (nearby_waits). Those that wait are joined with their neighbours for a
 * request of other pages: these of the processor at hand, and those of all for a purge, a tick, or
 * where too much is kept.
 *
 * Bound: half of the base (page_heap_base), of which each processor has its share.
 *
 * Cost: one lock, and three lines of cache besides the block's own. What contention costs with and
 * without: docs/decisions/0004-giving-back.md.
 * Source: P. McKenney and J. Slingwine, "Efficient Kernel Memory Allocation on Shared-Memory
 * Multiprocessors" (1993), for caches by processor.
 */
#ifndef SNUG_PAGEHEAP_NEARBY_H
#define SNUG_PAGEHEAP_NEARBY_H

#include "pageheap/page_heap_state.h"

/* Lists (table): one for each processor, a power of two. More processors share them. */
enum { NEARBY_MOST = 64 };

/* Blocks (table): binary logarithm of how many a processor knows. Threads have few at a time. */
enum { NEARBY_KNOWN_LOG = 6 };

struct nearby {
    _Alignas(64) struct lock lock;
    struct recent recent; /* those that wait */
    size_t room;          /* pages that may wait, as of when one became known or all were joined */
    struct span *known[1 << NEARBY_KNOWN_LOG]; /* by a hash of the address; NULL: none */
};
/* A span that stands in one of the two is of kind SPAN_LARGE, its `owner` leads here, and it stands
 * in no other. Where `owner` leads it need not stand: another may have its place among the known.
 * `owner` is written under the page heap's lock; who takes a span out for good has both locks. */

/* Says that a heap, of which nobody knows yet, may have such blocks. */
void nearby_begin(struct page_heap *page_heap, unsigned processors);

/* Whether there are any: none before the first is needed. */
static inline bool nearby_there(const struct page_heap *page_heap)
{
    /* acquire: pairs with nearby_make */
    return __atomic_load_n(&page_heap->nearby, __ATOMIC_ACQUIRE) != NULL;
}

static inline size_t nearby_count(const struct page_heap *page_heap)
{
    return nearby_there(page_heap) ? (size_t)1 << page_heap->nearby_log : 0;
}

/* A block of so many pages at a multiple of `alignment` that waits near the processor; NULL if
 * there is none. No lock is held. It may have been written to while it waited. */
struct span *nearby_take(const struct page_heap *page_heap, size_t pages, size_t alignment);

/* Frees the block at `address`, so that it waits. False, and nothing is changed: it is not known
 * here, or there is no room, or it was written past its end. No lock is held. */
bool nearby_put(struct page_heap *page_heap, uintptr_t address);

/* Asks for a look at the peak, unless what waits in the page heap and near the processor makes
 * that too few pages. Needs no lock. */
void peak_ask(const struct page_heap *page_heap);

/* To be called when pages were taken, or a block that waited was: more may be live than ever. A
 * program that has about as much in use with what waits would otherwise have a look in vain, at the
 * lists of all processors, for each block that it takes. Needs no lock. */
static inline void peak_compare(const struct page_heap *page_heap)
{
    if (UNLIKELY(pages_in_use_are_enough(0)))
        peak_ask(page_heap);
}

/* In all below the page heap's lock is held. */

/* Whether the lock had to be waited for since a block became known last. */
static inline bool nearby_is_wanted(const struct page_heap *page_heap)
{
    /* relaxed: a hint */
    return page_heap->waits_seen != __atomic_load_n(&lock_waits[RANK_PAGE_HEAP], __ATOMIC_RELAXED);
}

/* A block was taken while that was so: the processor knows it from now on. */
void nearby_note(struct page_heap *page_heap, struct span *span);

/* Where a large block may wait; NULL: nowhere. */
static inline struct nearby *nearby_of(const struct span *span)
{
    return span->kind == SPAN_LARGE ? (struct nearby *)span->owner : NULL;
}

/* Whether a large block waits there. The lock of `nearby` is held, too. */
bool nearby_has(const struct nearby *nearby, const struct span *span);

/* Whether a block that may wait does so. If it does not and `leaves`, no processor knows it any
 * more. */
bool nearby_waits(struct span *span, bool leaves);

/* Whether a span of the table is a live block; if it leaves the table soon, it `leaves`. */
static inline bool block_is_live(struct span *span, bool leaves)
{
    return span_is_used(span) && (LIKELY(nearby_of(span) == NULL) || !nearby_waits(span, leaves));
}

/* Joins what waits near the processor at hand, or near all, with its neighbours. True: a segment
 * went to the cache. */
bool nearby_join_here(struct page_heap *page_heap);
bool nearby_join(struct page_heap *page_heap);

/* Calls `act` with the lock of each; for fork. */
void nearby_each_lock(const struct page_heap *page_heap, void (*act)(struct lock *lock));

#endif
