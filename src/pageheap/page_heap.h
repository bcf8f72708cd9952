/*
 * Spans: runs of pages inside segments, each either free or in use as a slab or a large object.
 *
 * The idea: free runs stand in bins by length under a bitmap, so that a fitting one is found
 * without walking; every span knows its neighbours, so that a run that becomes free is joined with
 * those that are free at once. What a block is of is told by the page map for slabs and cells,
 * each page of which leads to its span, and by a table of addresses for large blocks. Free runs are
 * of two kinds that are never joined: dirty ones, which still occupy memory, and clean ones, which
 * are known to be zero and occupy none. A request is served from dirty runs as long as one fits:
 * memory that is paid for is used before new memory is touched. Of several that fit, one in the
 * fullest segment is taken, so that the others empty. A long request that no dirty run fits is made
 * of a dirty run and what is clean beside it.
 *
 * A segment without a page in use, but for one of them, leaves its list for the cache of empty
 * segments, its runs the bins. They stay cut as they are; what comes out again is as it was.
 *
 * Cost: O(1), but for entries of the page map, one per page of slabs and of spans of cells.
 * Source: two-level bins as in M. Masmano et al., "TLSF" (2004).
 *
 * Thread-safe; takes RANK_SPANS, and RANK_META inside.
 */
#ifndef SNUG_PAGEHEAP_PAGE_HEAP_H
#define SNUG_PAGEHEAP_PAGE_HEAP_H

#include "base/list.h"
#include "base/peek.h"
#include "meta/meta.h"
#include "pageheap/huge_price.h"
#include "pageheap/large_table.h"
#include "pageheap/segment_cache.h"
#include "platform/lock.h"
#include "retention/retention.h"

enum span_kind {
    SPAN_DIRTY, /* free, with leftovers in it */
    SPAN_CLEAN, /* free and zero */
    SPAN_SLAB,
    SPAN_CELLS,
    SPAN_LARGE,
    SPAN_HUGE /* not in a segment: a mapping of its own */
};

/* A span, or the head of a larger descriptor that begins with one. The spans of a segment tile it:
 * right->start == start + pages, and right->left == this one. */
struct span {
    union {
        struct list link; /* free: in its bin; slab: in its arena's lists */
        struct {
            size_t requested;   /* large and huge: what the program asked for */
            size_t dirty_bytes; /* so many from `start` on may not have been zero at first */
        };
    };
    struct span *left;  /* its neighbours in the segment, NULL at the ends; huge: in the list of */
    struct span *right; /* all huge ones */
    char *start;
    struct segment *segment; /* NULL for huge spans */
    union {
        void *owner;         /* slab: its bin; cells: their struct cells; huge: its struct spans */
        size_t former_bytes; /* free: the size of the objects that were at `start`, 0 if unknown */
    };
    uint32_t pages;
    uint8_t kind;  /* enum span_kind */
    uint8_t class; /* of a slab */
    bool zero;     /* in use: it was all zero when it was taken */
    uint8_t units; /* what the descriptor occupies, in units of META_LEAST */
};

/* Lengths 1 to 16 have a bin each, then every doubling has 8, up to 2^32 pages. */
enum { RUN_EXACT = 16, RUN_STEPS = 8, RUN_BINS = RUN_EXACT + 28 * RUN_STEPS };

struct runs {
    uint64_t bitmap[(RUN_BINS + 63) / 64]; /* bit b == bins[b] is not empty */
    struct list bins[RUN_BINS];
    size_t pages; /* sum over the bins */
    size_t count; /* of runs */
};

/* A larger block has a mapping of its own. Page map entries for 128 MiB, 256 KiB of them, take less
 * time than the faults of 1 MiB. */
#define LARGE_MOST (128 * MIB)

/* The large and huge blocks that were freed, or moved, last: for what is said of a second free. */
enum { SPANS_FREED = 4 };

struct freed_blocks {
    struct freed_block {
        uintptr_t start;
        size_t bytes;
    } last[SPANS_FREED];
    unsigned next;
};

struct page_heap {
    struct lock lock;
    bool other; /* a heap's that is not malloc's: its pages have class bytes of their own */
    /* For heaps of little memory: slabs of a page or two, no cells, everything in segments. */
    bool compact;
    bool untouched;    /* nothing of snug's is written into the pages; compact too */
    size_t large_most; /* LARGE_MOST, but for tests */
    const struct provider *provider;
    struct meta *meta;     /* where descriptors lie */
    uint64_t (*now)(void); /* the heap's clock: os_clock, but for tests */
    struct list segments;
    size_t segment_pages; /* == used_pages + dirty.pages + clean.pages */
    size_t used_pages;    /* == sum of segment->used_pages */
    size_t shared_pages;  /* of them, == sum over slabs and spans of cells */
    size_t empty_segments;
    struct runs dirty;
    struct runs clean;
    struct large_table large; /* large and huge blocks, but for those of a compact heap */
    struct span *huge;        /* the first of the huge ones */
    struct freed_blocks freed;
    size_t huge_count;
    size_t huge_pages;
    size_t large_count;         /* large blocks; huge ones are not among them */
    size_t large_requested;     /* sum of `requested` over the large blocks */
    size_t huge_requested;      /* and over the huge ones */
    size_t mapped_peak;         /* most of segment_pages + cache.pages + huge_pages */
    size_t used_peak;           /* most of used_pages + huge_pages */
    struct segment_cache cache; /* empty segments in addition to those in `segments` */
    struct retention retention;
    struct huge_price huge_price;
    struct zero_asked {
        uint32_t wait;   /* so many short blocks are made zero by hand without asking */
        uint32_t waited; /* how many were after the last time */
    } zero_asked;
    const char *fresh; /* of the newest segment, from here to `fresh_end` nothing was ever used */
    const char *fresh_end;
    uint64_t tick_due; /* when page_heap_tick has something to do; UINT64_MAX: never */
};

void page_heap_init(struct page_heap *page_heap, const struct provider *provider);

/* Raises the peaks to what there is now. The lock must be held. */
static inline void page_heap_note_peak(struct page_heap *page_heap)
{
    GAUGE_RAISE(page_heap->mapped_peak,
                page_heap->segment_pages + page_heap->cache.pages + page_heap->huge_pages);
    GAUGE_RAISE(page_heap->used_peak, page_heap->used_pages + page_heap->huge_pages);
}

/* Makes the first segment, if there is memory for it yet. */
void page_heap_prepare(struct page_heap *page_heap);

/* Takes `pages` pages at a multiple of `alignment` bytes (a power of two, at least PAGE_BYTES).
 * `span`, which the caller brings with `units` filled in, becomes their descriptor, and every page
 * leads to it. False: no memory, and nothing has changed. */
bool span_alloc(struct page_heap *page_heap, struct span *span, enum span_kind kind, size_t pages,
                size_t alignment);

/* The same for a span of which every page will be touched, one soon after the other: it may be made
 * of huge pages. See span_packed.c. */
bool span_alloc_packed(struct page_heap *page_heap, struct span *span, enum span_kind kind,
                       size_t pages, size_t alignment);

/* The same, but only of memory that is kept: false if what is dirty does not fit. */
bool span_alloc_kept(struct page_heap *page_heap, struct span *span, enum span_kind kind,
                     size_t pages);

/* Frees a span that span_alloc gave; the descriptor goes with it. `object_bytes` is the size of the
 * objects that were in it, for messages about later misuse. The pages' class bytes must be 0. */
void span_free(struct page_heap *page_heap, struct span *span, size_t object_bytes);

/* The same for a caller that holds the lock. */
void span_free_locked(struct page_heap *page_heap, struct span *span, size_t object_bytes);

/* Notes that a block is no longer where it was. The lock must be held. */
static inline void page_heap_note_freed(struct page_heap *page_heap, const char *start,
                                        size_t bytes)
{
    struct freed_blocks *freed = &page_heap->freed;
    freed->last[freed->next++ % SPANS_FREED] = (struct freed_block){(uintptr_t)start, bytes};
}

/* The span in a segment that an address is in, found by walking; NULL if none is. The lock must be
 * held. */
struct span *span_around(const struct page_heap *page_heap, uintptr_t address);

/* Makes a span longer in place, if what follows it is free. */
bool span_extend(struct page_heap *page_heap, struct span *span, size_t pages);

/* Makes a span shorter and frees the rest. False: no memory for a descriptor; as before. */
bool span_shrink(struct page_heap *page_heap, struct span *span, size_t pages);

/* ---- What is kept (span_purge.c) ---- */

/* Free pages that occupy memory. The lock must be held. */
static inline size_t page_heap_kept_pages(const struct page_heap *page_heap)
{
    return page_heap->dirty.pages + page_heap->cache.dirty_pages;
}

/* Purges free runs until at most `keep_pages` are dirty, and with 0 gives empty segments back.
 * Returns the bytes that went to the system. */
size_t page_heap_purge(struct page_heap *page_heap, size_t keep_pages);

/* Purges what is kept beyond its bound. The lock must be held. */
void page_heap_keep_bound(struct page_heap *page_heap);

/* Lets the bound of what is kept shrink by what was not needed, and old empty segments go. To be
 * called on slow paths when it is due: no thread of snug's own does it. */
void page_heap_tick(struct page_heap *page_heap);

static inline bool page_heap_tick_is_due(const struct page_heap *page_heap)
{
    /* relaxed: a hint; mostly there is nothing to do, and the clock is not read */
    uint64_t due = __atomic_load_n(&page_heap->tick_due, __ATOMIC_RELAXED);
    return UNLIKELY(due != UINT64_MAX) && page_heap->now() >= due;
}

/* Whether huge pages were asked for where a span is. A hint: it needs no lock. */
static inline bool span_has_huge_pages(const struct span *span)
{
    return __atomic_load_n(&span->segment->huge_pages, __ATOMIC_RELAXED);
}

/* To be called before parts of a span in use are purged: where it is there should be no huge pages
 * any more. Takes the lock. */
void span_split_huge(struct page_heap *page_heap, const struct span *span);

/* ---- Whole ranges, for huge blocks (span_segment.c) ---- */

/* A range of `bytes` or, from the cache, up to an eighth more, at a multiple of `alignment`, which
 * `span` then describes; false: no memory. The lock must be held. */
bool page_heap_alloc_range(struct page_heap *page_heap, struct span *span, size_t bytes,
                           size_t alignment);

/* Takes a range back, and the span with it: into the cache, or to the provider. What is kept may be
 * beyond its bound then. The lock must be held. */
void page_heap_free_range(struct page_heap *page_heap, struct span *span);

/* Frees every span at once, huge ones included. With `keep`, as much memory stays as if they had
 * been freed one by one; without, all of it goes back. Slabs and cells that lay in it must be
 * forgotten too. (page_heap_clear.c) */
void page_heap_clear(struct page_heap *page_heap, bool keep);

/* Makes a segment of memory that no provider gave, at page boundaries. False: no memory for its
 * descriptors. (page_heap_clear.c) */
bool page_heap_adopt(struct page_heap *page_heap, char *start, size_t bytes);

/* Walks all of it. NULL if every invariant holds, otherwise what does not. */
const char *page_heap_check(struct page_heap *page_heap);

/* Runs in bins (runs.c). */
void runs_init(struct runs *runs);
void runs_add(struct runs *runs, struct span *run);
void runs_remove(struct runs *runs, struct span *run);
struct span *runs_find(const struct runs *runs, size_t pages, size_t alignment);

/* Of the runs of about `most` pages and less, but at least `least`, a long one that `suits`, which
 * is told `most`; NULL if none is found soon. */
typedef bool run_predicate(const struct span *run, size_t most);
struct span *runs_find_long(const struct runs *runs, size_t most, size_t least,
                            run_predicate *suits);

static inline char *span_end(const struct span *span)
{
    return span->start + ((size_t)span->pages << PAGE_SHIFT);
}

/* All spans of a segment, from left to right. */
#define EACH_SPAN(each, segment) \
    for (struct span *each = (segment)->first; each != NULL; each = each->right)

static inline bool span_is_free(const struct span *span)
{
    return span->kind <= SPAN_CLEAN;
}

/* The spans that a span is one of; so every pointer leads to its heap. */
static inline struct page_heap *span_home(const struct span *span)
{
    return span->segment != NULL ? span->segment->page_heap : (struct page_heap *)span->owner;
}

#endif
