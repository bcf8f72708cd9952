/*
 * The state of a page heap, for the files that are parts of it. Others include page_heap.h.
 *
 * The functions here count pages. The lock must be held for them.
 */
#ifndef SNUG_PAGEHEAP_PAGE_HEAP_STATE_H
#define SNUG_PAGEHEAP_PAGE_HEAP_STATE_H

#include "base/backoff.h"
#include "options/options.h"
#include "pageheap/huge_price.h"
#include "pageheap/large_sizes.h"
#include "pageheap/large_table.h"
#include "pageheap/pages_in_use.h"
#include "pageheap/runs.h"
#include "pageheap/segment_cache.h"
#include "platform/lock.h"
#include "retention/retention.h"

/* Blocks (table): a second free mostly follows the first soon, so the last few, large or huge, are
 * known.
 */
enum { BLOCKS_FREED = 4 };

/* Blocks (table): freed last and not joined yet. A program has few buffers that it takes and frees
 * in turn, and two lines of cache are looked through. */
enum { RECENT_MOST = 8 };

/* Nanoseconds (machine): in so long a thousand reclaims that help nobody are spared, and what the
 * program itself gives back to the system is not waited for any longer. */
#define DRY_TIME ((uint64_t)10000000)

/* See recent.h. */
struct recent {
    struct span *spans[RECENT_MOST]; /* the oldest first; all of kind SPAN_RECENT */
    size_t requested[RECENT_MOST];   /* what each has of it, for statistics, which reach no spans */
    uint8_t homes[RECENT_MOST]; /* page_heap->home when it was freed; nothing near a processor */
    uint32_t count;
    size_t pages; /* == sum of their pages */
};

struct freed_blocks {
    struct freed_block {
        uintptr_t start;
        size_t bytes;
    } last[BLOCKS_FREED];
    unsigned next;
};

struct page_heap {
    struct lock lock;
    struct lock purge_lock; /* who gives pages back without the other holds it, as fork does */
    /* The provider had no memory when it was asked last: what is empty goes back at once, since
     * others may need the addresses, as for a thread's stack. */
    bool refused;
    bool locked;          /* what is mapped is in memory at once, as after mlockall */
    bool scarce;          /* the provider refused memory at some time */
    bool purge_refused;   /* the last runs that were to go back did not, so the next go singly */
    bool apart;           /* a thread gives something back with purge_lock alone */
    uint8_t home;         /* where a large block was freed last, if there are threads: a byte of the
                             processor's number and 1; 0: nowhere yet */
    uint8_t own_turns;    /* so many more blocks may lie where their processor freed one last */
    size_t segment_pages; /* == used_pages + busy_pages + dirty.pages + clean.pages */
    size_t used_pages;    /* recent.pages are among them */
    size_t busy_pages;    /* of runs that are SPAN_BUSY */
    /* used_pages + busy_pages == sum of segment->used_pages */
    size_t shared_pages; /* of used_pages, == sum over slabs and spans of cells */
    size_t empty_segments;

    /* What every slow path reads, and hardly anybody writes: apart from the lock, whose line goes
     * from processor to processor. */
    _Alignas(64) bool other; /* not malloc's: its pages have class bytes of their own */
    /* For heaps of little memory: slabs of a page or two, no cells, everything in segments. */
    bool compact;
    bool untouched;        /* nothing of snug's is written into the pages; compact too */
    bool nearby_may;       /* whether it has some of the next when it needs them */
    uint8_t nearby_log;    /* there are 1 << nearby_log */
    struct nearby *nearby; /* see nearby.h; NULL before the first is needed */
    size_t large_most;     /* LARGE_MOST, but for tests */
    const struct provider *provider;
    struct meta *meta; /* where descriptors lie */
    /* The heap's clocks but for tests: os_clock, and os_clock_exact for what takes microseconds. */
    uint64_t (*now)(void);
    uint64_t (*now_exact)(void);

    struct list segments;
    struct span *huge;   /* the first of the huge blocks */
    uint64_t waits_seen; /* of lock_waits, when a block became known near a processor last */
    struct recent recent;
    struct runs dirty;
    struct runs clean;
    struct large_table large; /* large and huge blocks, but for those of a compact heap */
    struct freed_blocks freed;
    size_t huge_count;
    size_t huge_pages;
    size_t huge_requested;      /* sum of `requested` over the huge blocks */
    struct large_sizes sizes;   /* large and huge blocks, and those in `recent` */
    size_t mapped_peak;         /* most of segment_pages + cache.pages + huge_pages */
    size_t used_peak;           /* most of page_heap_in_use_pages */
    size_t noted_pages;         /* of another heap: what pages_in_use.others has of it */
    struct segment_cache cache; /* empty segments in addition to those in `segments` */
    struct retention retention; /* how many free pages are worth keeping */
    size_t went;                /* pages that were in memory and went since it was told */
    /* When page_heap_keep_bound found last that all may stay; no state is like it if something had
     * to go since. */
    struct settled {
        size_t kept, in_use, used_kept, wanted;
    } settled;
    size_t cells_kept; /* of used_pages: those inside of large free cells that are in memory, */
    size_t cells_idle; /* and all that are free there, */
    /* and those in use there that may stay untouched; all three as of what the cells said last */
    size_t cells_loose;
    uint32_t cells_fresh; /* see page_heap_note_fresh */
    size_t lists_kept;    /* == sum of quick->kept over the threads' caches */
    uint64_t arenas_due;  /* when cells want a tick */
    struct huge_price huge_price;
    size_t huge_ahead; /* pages bought in huge ones, less those filled since; see huge_pages.c */
    struct backoff zero_asked;   /* see block_zero.c */
    struct backoff sparse_asked; /* see sparse.h, and so the next */
    uint8_t sparse_seen;
    struct backoff margins_seen; /* see large_margin.c, and so the next two */
    struct backoff margins_asked;
    uint32_t margins_in_vain; /* looks that told nothing since one that did */
    const char *fresh; /* of the newest segment, from here to `fresh_end` nothing was ever used */
    const char *fresh_end;
    uint64_t tick_due;  /* when the heap wants a tick; UINT64_MAX: never */
    uint64_t dry_until; /* the provider is not asked for segments before: see page_heap_is_dry */
};

/* Whether the system is asked which pages of a heap are there. Of another provider it does not know
 * or may mean something else, and in a small heap no more can pile up than is kept in any case.
 * Needs no lock. */
static inline bool page_heap_may_ask(const struct page_heap *page_heap)
{
    /* relaxed: a hint; margins are made without the lock */
    size_t used = __atomic_load_n(&page_heap->used_pages, __ATOMIC_RELAXED);
    return page_heap->provider == &provider_os && used >= options.dirty >> PAGE_SHIFT;
}

static inline struct runs *runs_of(struct page_heap *page_heap, const struct span *run)
{
    return run->kind == SPAN_DIRTY ? &page_heap->dirty : &page_heap->clean;
}

/* Free pages that occupy memory. */
static ALWAYS_INLINE size_t page_heap_kept_pages(const struct page_heap *page_heap)
{
    return page_heap->dirty.pages + page_heap->recent.pages + page_heap->cache.dirty_pages;
}

/* Pages in use that count as kept: free ones inside of cells, and those of cells that wait. */
static ALWAYS_INLINE size_t page_heap_used_kept(const struct page_heap *page_heap)
{
    /* relaxed: as in page_heap_base */
    return __atomic_load_n(&page_heap->cells_kept, __ATOMIC_RELAXED) +
           __atomic_load_n(&page_heap->lists_kept, __ATOMIC_RELAXED);
}

static inline size_t page_heap_in_use_pages(const struct page_heap *page_heap)
{
    return page_heap->used_pages - page_heap->recent.pages + page_heap->huge_pages;
}

/* The same with those that wait (recent.h), read without the lock: a hint. */
static inline size_t page_heap_in_use_hint(const struct page_heap *page_heap)
{
    /* relaxed: each tells by itself */
    return __atomic_load_n(&page_heap->used_pages, __ATOMIC_RELAXED) +
           __atomic_load_n(&page_heap->huge_pages, __ATOMIC_RELAXED);
}

/* So many pages were filled, or went back: of huge ones fewer wait to be filled. */
static inline void huge_ahead_fewer(struct page_heap *page_heap, size_t pages)
{
    page_heap->huge_ahead -= size_min(page_heap->huge_ahead, pages);
}

/* Whether the provider had no segment a moment ago, even after all had been given back that could
 * be: asking it, and giving back, takes some 10 us, and hardly helps the next request. Needs no
 * lock. */
static inline bool page_heap_is_dry(const struct page_heap *page_heap)
{
    /* relaxed: who is early or late asks the provider, or does not */
    uint64_t until = __atomic_load_n(&page_heap->dry_until, __ATOMIC_RELAXED);
    return UNLIKELY(until != 0) && page_heap->now() < until;
}

/* Says that it is so, for DRY_TIME, or not. */
static ALWAYS_INLINE void page_heap_set_dry(struct page_heap *page_heap, bool dry)
{
    __atomic_store_n(&page_heap->dry_until, dry ? page_heap->now() + DRY_TIME : 0,
                     __ATOMIC_RELAXED);
}

/* Tells pages_in_use what there is now. The lock must be held. */
static inline void page_heap_note_use(struct page_heap *page_heap)
{
    size_t now = page_heap->used_pages + page_heap->huge_pages;
    if (!page_heap->other) {
        GAUGE_SET(pages_in_use.malloc, now);
        return;
    }
    gauge_change(&pages_in_use.others, now - page_heap->noted_pages);
    page_heap->noted_pages = now;
}

/* Raises the peaks to what there is now. */
static inline void page_heap_note_peak(struct page_heap *page_heap)
{
    GAUGE_RAISE(page_heap->mapped_peak,
                page_heap->segment_pages + page_heap->cache.pages + page_heap->huge_pages);
    GAUGE_RAISE(page_heap->used_peak, page_heap_in_use_pages(page_heap));
    page_heap_note_use(page_heap);
}

/* Counts pages of a segment that are no run any more, or are one again. */
static inline void segment_count_in(struct page_heap *page_heap, struct segment *segment,
                                    uint32_t pages)
{
    if (segment->used_pages == 0)
        page_heap->empty_segments--;
    segment->used_pages += pages;
}

static inline void segment_count_out(struct page_heap *page_heap, struct segment *segment,
                                     uint32_t pages)
{
    segment->used_pages -= pages;
    if (segment->used_pages == 0)
        page_heap->empty_segments++;
}

/* Notes that a block is no longer where it was. */
static inline void page_heap_note_freed(struct page_heap *page_heap, const char *start,
                                        size_t bytes)
{
    struct freed_blocks *freed = &page_heap->freed;
    freed->last[freed->next++ % BLOCKS_FREED] = (struct freed_block){(uintptr_t)start, bytes};
}

/* A descriptor, or NULL. Needs no lock. */
static inline struct span *descriptor_alloc(struct page_heap *page_heap)
{
    struct span *span = meta_alloc_from(page_heap->meta, sizeof(*span));
    if (span != NULL) {
        span->units = 1;
        span->requested = 0;
    }
    return span;
}

static inline void descriptor_free(struct page_heap *page_heap, struct span *span)
{
    meta_free_to(page_heap->meta, span, span->units * META_LEAST);
}

#endif
