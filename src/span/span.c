/*
 * Taking, freeing, joining and growing runs of pages. See span.h.
 *
 * What stands in the page map: every page of a slab and of a span of cells leads to its descriptor,
 * so that a pointer into its middle is recognised; when it is freed, they hold the size of what was
 * there. Of large blocks nothing does, unless the heap is compact.
 */
#include "span/span.h"

#include <string.h>

#include "platform/check.h"
#include "platform/thread.h"
#include "span/span_runs.h"

void spans_init(struct spans *spans, const struct provider *provider)
{
    memset(spans, 0, sizeof(*spans));
    lock_init(&spans->lock, RANK_SPANS);
    spans->provider = provider;
    spans->meta = &meta_system;
    spans->now = os_clock;
    spans->tick_due = UINT64_MAX;
    spans->large_most = LARGE_MOST;
    list_init(&spans->segments);
    segment_cache_init(&spans->cache);
    runs_init(&spans->dirty);
    runs_init(&spans->clean);
}

/* ---- Segments ---- */

static const struct segment *segment_around(const struct list *segments, uintptr_t address)
{
    LIST_EACH(node, segments)
    {
        const struct segment *segment = CONTAINER_OF(node, struct segment, link);
        if (address - (uintptr_t)segment->start < segment->pages << PAGE_SHIFT)
            return segment;
    }
    return NULL;
}

struct span *span_around(const struct spans *spans, uintptr_t address)
{
    const struct segment *segment = segment_around(&spans->segments, address);
    if (segment == NULL)
        segment = segment_around(&spans->cache.list, address);
    if (segment == NULL)
        return NULL;
    struct span *span = segment->first;
    while (address >= (uintptr_t)span_end(span))
        span = span->right;
    return span;
}

static void segment_use(struct spans *spans, struct segment *segment, size_t pages)
{
    if (segment->used_pages == 0)
        spans->empty_segments--;
    segment->used_pages += (uint32_t)pages;
    GAUGE_ADD(spans->used_pages, pages);
    spans_note_peak(spans);
}

static void segment_unuse(struct spans *spans, struct segment *segment, size_t pages)
{
    segment->used_pages -= (uint32_t)pages;
    GAUGE_ADD(spans->used_pages, -pages);
    if (segment->used_pages == 0)
        spans->empty_segments++;
}

/* ---- Taking ---- */

/* Makes `span` the descriptor of `pages` at the first multiple of `alignment` in a run. */
static bool span_cut(struct spans *spans, struct found found, struct span *span,
                     enum span_kind kind, size_t pages, size_t alignment)
{
    char *start = (char *)align_up((uintptr_t)found.run->start, alignment);
    struct segment *segment = found.run->segment;
    size_t dirty = found.dirty_end > start ? (size_t)(found.dirty_end - start) : 0;
    bool in_table = kind == SPAN_LARGE && !spans->compact;
    if ((in_table && !large_table_reserve(&spans->large, spans->meta)) ||
        !run_cut(spans, found.run, span, start, pages))
        return false;
    segment_use(spans, segment, pages);
    span->kind = (uint8_t)kind;
    span->class = 0;
    span->zero = dirty == 0;
    span->owner = NULL;
    if (kind == SPAN_LARGE) {
        span->requested = 0;
        span->dirty_bytes = size_min(dirty, pages << PAGE_SHIFT);
    } else {
        list_init(&span->link);
        spans->shared_pages += pages;
    }
    if (in_table)
        large_table_add(&spans->large, span);
    else
        page_map_fill_entries(start, pages, (uintptr_t)span);
    if (start < spans->fresh_end && spans->fresh < span_end(span))
        spans->fresh = span_end(span);
    return true;
}

typedef struct found run_finder(struct spans *spans, size_t pages, size_t alignment);

static bool take_by(run_finder *find, struct spans *spans, struct span *span, enum span_kind kind,
                    size_t pages, size_t alignment)
{
    lock_take(&spans->lock);
    struct found found = find(spans, pages, alignment);
    bool done = found.run != NULL && span_cut(spans, found, span, kind, pages, alignment);
    if (done)
        spans_took(spans, found.fresh, found.fresh != 0);
    lock_release(&spans->lock);
    return done;
}

bool span_take(struct spans *spans, struct span *span, enum span_kind kind, size_t pages,
               size_t alignment)
{
    return take_by(run_find, spans, span, kind, pages, alignment);
}

bool span_take_packed(struct spans *spans, struct span *span, enum span_kind kind, size_t pages,
                      size_t alignment)
{
    return take_by(run_find_packed, spans, span, kind, pages, alignment);
}

bool span_take_kept(struct spans *spans, struct span *span, enum span_kind kind, size_t pages)
{
    return take_by(run_find_kept, spans, span, kind, pages, PAGE_BYTES);
}

bool span_extend(struct spans *spans, struct span *span, size_t pages)
{
    size_t more = pages - span->pages;
    lock_take(&spans->lock);
    struct span *next = run_beside(span, true);
    bool clean = next != NULL && next->kind == SPAN_CLEAN;
    bool done = next != NULL && next->pages >= more;
    if (done) {
        if (spans->compact)
            page_map_fill_entries(span_end(span), more, (uintptr_t)span);
        run_shorten(spans, next, more, true);
        segment_use(spans, span->segment, more);
        span->pages = (uint32_t)pages;
        spans_took(spans, more, clean);
    }
    lock_release(&spans->lock);
    return done;
}

/* ---- Freeing ---- */

/* Frees pages that nothing leads to any more. */
static void span_free_pages(struct spans *spans, struct span *span, size_t object_bytes)
{
    struct segment *segment = span->segment;
    span->kind = SPAN_DIRTY;
    span->former_bytes = object_bytes;
    segment_unuse(spans, segment, span->pages);
    run_settle(spans, span);
    /* One empty segment stays in the list, so that a program that goes up and down across its edge
     * does not move it to the cache and back at each turn. */
    if (segment->used_pages == 0 && spans->empty_segments > 1)
        segment_retire(spans, segment);
    spans_keep_bound(spans);
}

void span_free_locked(struct spans *spans, struct span *span, size_t object_bytes)
{
    if (span->kind != SPAN_LARGE)
        spans->shared_pages -= span->pages;
    if (span->kind == SPAN_LARGE && !spans->compact) {
        large_table_remove(&spans->large, span);
        spans_note_freed(spans, span->start, object_bytes);
    } else {
        page_map_fill_entries(span->start, span->pages, entry_freed(object_bytes));
    }
    span_free_pages(spans, span, object_bytes);
}

void span_give(struct spans *spans, struct span *span, size_t object_bytes)
{
    lock_take(&spans->lock);
    span_free_locked(spans, span, object_bytes);
    lock_release(&spans->lock);
}

bool span_shrink(struct spans *spans, struct span *span, size_t pages)
{
    struct span *rest = descriptor_take(spans);
    if (rest == NULL)
        return false;
    lock_take(&spans->lock);
    rest->segment = span->segment;
    rest->start = span->start + (pages << PAGE_SHIFT);
    rest->pages = span->pages - (uint32_t)pages;
    span_link_right(span, rest);
    span->pages = (uint32_t)pages;
    if (spans->compact)
        page_map_fill_entries(rest->start, rest->pages, entry_freed(0));
    span_free_pages(spans, rest, 0);
    lock_release(&spans->lock);
    return true;
}
