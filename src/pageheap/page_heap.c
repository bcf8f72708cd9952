/*
 * Taking and freeing spans: the one place where the parts of the page heap and the decision what is
 * kept come together. See page_heap.h.
 */
#include "pageheap/page_heap.h"

#include <string.h>

#include "meta/page_map.h"
#include "pageheap/huge_pages.h"
#include "pageheap/nearby.h"
#include "pageheap/recent.h"
#include "pageheap/run_find.h"
#include "pageheap/segments.h"
#include "platform/clock.h"

void page_heap_init(struct page_heap *page_heap, const struct provider *provider)
{
    memset(page_heap, 0, sizeof(*page_heap));
    lock_init(&page_heap->lock, RANK_PAGE_HEAP);
    lock_init(&page_heap->purge_lock, RANK_PURGE);
    page_heap->provider = provider;
    page_heap->meta = &meta_system;
    page_heap->now = os_clock;
    page_heap->now_exact = os_clock_exact;
    page_heap->tick_due = UINT64_MAX;
    page_heap->arenas_due = UINT64_MAX;
    retention_init(&page_heap->retention, RETENTION_PAGE_PRICE);
    page_heap->large_most = LARGE_MOST;
    list_init(&page_heap->segments);
    segment_cache_init(&page_heap->cache);
    runs_init(&page_heap->dirty);
    runs_init(&page_heap->clean);
}

void page_heap_prepare(struct page_heap *page_heap)
{
    lock_acquire(&page_heap->lock);
    segments_grow(page_heap, 1, false);
    lock_release(&page_heap->lock);
}

COLD bool page_heap_adopt(struct page_heap *page_heap, char *start, size_t bytes)
{
    struct span *run = descriptor_alloc(page_heap);
    struct segment *segment =
        run != NULL ? segment_of_range(page_heap, page_heap->meta, start, bytes >> PAGE_SHIFT)
                    : NULL;
    if (segment == NULL)
        return false; /* what was taken is lost: the heap cannot be made */
    lock_acquire(&page_heap->lock);
    span_link_only(run, segment, SPAN_DIRTY);
    segments_add(page_heap, segment);
    lock_release(&page_heap->lock);
    return true;
}

/* ---- Segments ---- */

static const struct segment *segment_around(const struct list *segments, uintptr_t address)
{
    LIST_EACH(node, segments) {
        const struct segment *segment = CONTAINER_OF(node, struct segment, link);
        if (address - (uintptr_t)segment->start < segment->pages << PAGE_SHIFT)
            return segment;
    }
    return NULL;
}

struct span *span_around(const struct page_heap *page_heap, uintptr_t address)
{
    const struct segment *segment = segment_around(&page_heap->segments, address);
    if (segment == NULL)
        segment = segment_around(&page_heap->cache.list, address);
    if (segment == NULL)
        return NULL;
    struct span *span = segment->first;
    while (address >= (uintptr_t)span_end(span))
        span = span->right;
    return span;
}

/* Bytes (machine): a copy at the peak touches some 200 KiB of code and tables, which a smaller
 * program would notice. */
#define PEAK_LEAST (4 * MIB)

struct pages_in_use pages_in_use = {.wanted = PEAK_LEAST >> PAGE_SHIFT};

static void segment_use(struct page_heap *page_heap, struct segment *segment, size_t pages)
{
    segment_count_in(page_heap, segment, (uint32_t)pages);
    GAUGE_ADD(page_heap->used_pages, pages);
    page_heap_note_peak(page_heap);
    peak_compare(page_heap);
}

/* ---- Allocating ---- */

/* Makes `span` the descriptor of `pages` at the first multiple of `alignment` in a run, or at the
 * last from which there is room. */
static bool span_cut(struct page_heap *page_heap, struct found found, bool at_end,
                     struct span *span, enum span_kind kind, size_t pages, size_t alignment)
{
    char *start =
        at_end
            ? (char *)align_down((uintptr_t)span_end(found.run) - (pages << PAGE_SHIFT), alignment)
            : (char *)align_up((uintptr_t)found.run->start, alignment);
    struct segment *segment = found.run->segment;
    size_t dirty = found.dirty_end > start ? (size_t)(found.dirty_end - start) : 0;
    bool in_table = kind == SPAN_LARGE && !page_heap->compact;
    if (kind == SPAN_LARGE)
        __builtin_prefetch(start + span->requested); /* where the margin begins (large_margin.h) */
    if ((in_table && !large_table_reserve(&page_heap->large, page_heap->meta)) ||
        !run_cut(page_heap, found.run, span, start, pages))
        return false;
    segment_use(page_heap, segment, pages);
    span->kind = (uint8_t)kind;
    span->class = 0;
    span->zero = dirty == 0;
    span->owner = NULL;
    if (kind == SPAN_LARGE) {
        large_sizes_count(&page_heap->sizes, span->requested, 1);
        span->dirty_bytes = size_min(dirty, span_bytes(span));
    } else {
        list_init(&span->link);
        page_heap->shared_pages += pages;
    }
    if (in_table)
        large_table_add(&page_heap->large, span);
    else
        page_map_fill_entries(start, pages, (uintptr_t)span);
    if (start < page_heap->fresh_end && page_heap->fresh < span_end(span))
        page_heap->fresh = span_end(span);
    return true;
}

typedef struct found run_finder(struct page_heap *page_heap, size_t pages, size_t alignment);

/* A large block lies at that end of what its processor freed last which is nearer to that block.
 * The lock must be held. */
static bool alloc_locked(run_finder *find, struct page_heap *page_heap, struct span *span,
                         enum span_kind kind, size_t pages, size_t alignment)
{
    char *at;
    struct span *own = page_heap_join_recent(page_heap, kind == SPAN_LARGE ? &at : NULL);
    struct found found;
    bool at_end = false;
    if (own == NULL || !run_fits(own, pages, alignment)) {
        found = find(page_heap, pages, alignment);
    } else {
        found = (struct found){own, 0, span_end(own)};
        at_end = (size_t)(at - own->start) > (own->pages - pages) << PAGE_SHIFT >> 1;
    }
    while (UNLIKELY(found.run == NULL) && page_heap_wait_apart(page_heap))
        found = find(page_heap, pages, alignment);
    bool done =
        found.run != NULL && span_cut(page_heap, found, at_end, span, kind, pages, alignment);
    if (done)
        page_heap_note_alloc(page_heap, found.fresh, found.fresh != 0);
    return done;
}

static bool alloc_by(run_finder *find, struct page_heap *page_heap, struct span *span,
                     enum span_kind kind, size_t pages, size_t alignment)
{
    lock_acquire(&page_heap->lock);
    bool done = alloc_locked(find, page_heap, span, kind, pages, alignment);
    lock_release(&page_heap->lock);
    return done;
}

bool span_alloc(struct page_heap *page_heap, struct span *span, enum span_kind kind, size_t pages,
                size_t alignment)
{
    return alloc_by(run_find, page_heap, span, kind, pages, alignment);
}

bool span_alloc_packed(struct page_heap *page_heap, struct span *span, enum span_kind kind,
                       size_t pages, size_t alignment)
{
    return alloc_by(run_find_packed, page_heap, span, kind, pages, alignment);
}

bool span_alloc_large(struct page_heap *page_heap, struct span *span, size_t pages,
                      size_t alignment, bool kept)
{
    return alloc_locked(kept ? run_find_kept : run_find, page_heap, span, SPAN_LARGE, pages,
                        alignment);
}

bool span_extend(struct page_heap *page_heap, struct span *span, size_t pages)
{
    size_t more = pages - span->pages;
    lock_acquire(&page_heap->lock);
    page_heap_join_recent(page_heap, NULL);
    struct span *next = run_beside(span, true);
    bool clean = next != NULL && next->kind == SPAN_CLEAN;
    bool done = next != NULL && next->pages >= more;
    if (done) {
        if (page_heap->compact)
            page_map_fill_entries(span_end(span), more, (uintptr_t)span);
        run_shorten(page_heap, next, more, true);
        segment_use(page_heap, span->segment, more);
        span->pages = (uint32_t)pages;
        if (!clean)
            span->dirty_bytes = span_bytes(span);
        page_heap_note_alloc(page_heap, more, clean);
    }
    lock_release(&page_heap->lock);
    return done;
}

/* ---- Freeing ---- */

/* Frees pages that nothing leads to any more, and lets go what is too much then. */
static void span_free_pages(struct page_heap *page_heap, struct span *span, enum span_kind kind,
                            size_t object_bytes)
{
    if (span_join(page_heap, span, kind, object_bytes) == NULL)
        page_heap_shrink_cache(page_heap);
    page_heap_keep_bound(page_heap);
}

void span_free_locked(struct page_heap *page_heap, struct span *span, enum span_kind kind,
                      size_t object_bytes)
{
    if (span->kind != SPAN_LARGE)
        page_heap->shared_pages -= span->pages;
    else
        large_sizes_count(&page_heap->sizes, span->requested, (size_t)-1);
    if (span->kind == SPAN_LARGE && !page_heap->compact) {
        large_table_remove(&page_heap->large, span);
        page_heap_note_freed(page_heap, span->start, object_bytes);
    } else {
        page_map_fill_entries(span->start, span->pages, entry_freed(object_bytes));
    }
    span_free_pages(page_heap, span, kind, object_bytes);
}

void span_free(struct page_heap *page_heap, struct span *span, size_t object_bytes)
{
    lock_acquire(&page_heap->lock);
    span_free_locked(page_heap, span, SPAN_DIRTY, object_bytes);
    lock_release(&page_heap->lock);
}

bool span_shrink(struct page_heap *page_heap, struct span *span, size_t pages)
{
    struct span *rest = descriptor_alloc(page_heap);
    if (rest == NULL)
        return false;
    lock_acquire(&page_heap->lock);
    rest->segment = span->segment;
    rest->start = span->start + (pages << PAGE_SHIFT);
    rest->pages = span->pages - (uint32_t)pages;
    span_link_right(span, rest);
    span->pages = (uint32_t)pages;
    if (page_heap->compact)
        page_map_fill_entries(rest->start, rest->pages, entry_freed(0));
    span_free_pages(page_heap, rest, SPAN_DIRTY, 0);
    lock_release(&page_heap->lock);
    return true;
}
