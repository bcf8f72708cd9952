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

/* ---- Free runs ---- */

static bool is_free_of_kind(const struct span *span, int kind)
{
    return span != NULL && span->kind == kind;
}

/* The free run of any kind on the right of a span, or on its left. */
static struct span *run_beside(const struct span *span, bool right)
{
    struct span *beside = right ? span->right : span->left;
    return beside != NULL && span_is_free(beside) ? beside : NULL;
}

/* Takes `neighbour` into `run`, which lies beside it. */
static void run_absorb(struct spans *spans, struct span *run, struct span *neighbour)
{
    runs_remove(runs_of(spans, neighbour), neighbour);
    if (neighbour == run->left) {
        run->start = neighbour->start;
        run->former_bytes = neighbour->former_bytes;
    }
    run->pages += neighbour->pages;
    span_unlink(neighbour);
    descriptor_give(spans, neighbour);
}

void run_settle(struct spans *spans, struct span *run)
{
    if (is_free_of_kind(run->left, run->kind))
        run_absorb(spans, run, run->left);
    if (is_free_of_kind(run->right, run->kind))
        run_absorb(spans, run, run->right);
    runs_add(runs_of(spans, run), run);
}

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

/* ---- Segments ---- */

void spans_note_peak(struct spans *spans)
{
    GAUGE_RAISE(spans->mapped_peak, spans->segment_pages + spans->cache.pages + spans->huge_pages);
    GAUGE_RAISE(spans->used_peak, spans->used_pages + spans->huge_pages);
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

bool run_cut(struct spans *spans, struct span *run, struct span *span, char *start, size_t pages)
{
    size_t front = (size_t)(start - run->start) >> PAGE_SHIFT;
    size_t back = run->pages - front - pages;
    struct span *rest = run;
    if (front != 0 && back != 0) {
        rest = descriptor_take(spans);
        if (rest == NULL)
            return false;
    }
    struct runs *runs = runs_of(spans, run);
    runs_remove(runs, run);
    span->segment = run->segment;
    span->start = start;
    span->pages = (uint32_t)pages;
    span->kind = run->kind;
    if (front != 0) {
        span_link_right(run, span);
        run->pages = (uint32_t)front;
        runs_add(runs, run);
    } else {
        span_link_left(run, span);
    }
    if (back != 0) {
        if (rest != run) {
            rest->segment = run->segment;
            rest->kind = run->kind;
            span_link_right(span, rest);
        }
        rest->start = start + (pages << PAGE_SHIFT);
        rest->pages = (uint32_t)back;
        rest->former_bytes = 0;
        runs_add(runs, rest);
    }
    if (front == 0 && back == 0) {
        span_unlink(run);
        descriptor_give(spans, run);
    }
    return true;
}

/* Takes `pages` pages from that end of a free run at which a neighbour is to become longer. */
static void run_shorten(struct spans *spans, struct span *run, size_t pages, bool at_start)
{
    struct runs *runs = runs_of(spans, run);
    runs_remove(runs, run);
    run->pages -= (uint32_t)pages;
    if (at_start) {
        run->start += pages << PAGE_SHIFT;
        run->former_bytes = 0;
    }
    if (run->pages != 0) {
        runs_add(runs, run);
        return;
    }
    span_unlink(run);
    descriptor_give(spans, run);
}

/* How many runs beside each other are looked at. */
enum { CHAIN_MOST = 16 };

/* Whether a run is part of `pages` free pages in a row, dirty or clean. */
static bool run_can_widen(const struct span *run, size_t pages)
{
    size_t found = run->pages;
    const struct span *next = run_beside(run, true);
    for (int i = 0; i < CHAIN_MOST && next != NULL && found < pages; i++) {
        found += next->pages;
        next = run_beside(next, true);
    }
    next = run_beside(run, false);
    for (int i = 0; i < CHAIN_MOST && next != NULL && found < pages; i++) {
        found += next->pages;
        next = run_beside(next, false);
    }
    return run->pages < pages && found >= pages;
}

/* Makes a dirty run `pages` long by what is free beside it. The pages that were clean count as
 * dirty until the caller takes all, at once. */
static struct found run_widen(struct spans *spans, struct span *run, size_t pages)
{
    size_t fresh = 0;
    const char *dirty_end = span_end(run);
    runs_remove(&spans->dirty, run);
    while (run->pages < pages) {
        struct span *next = run_beside(run, true);
        bool right = next != NULL;
        if (!right)
            next = run_beside(run, false);
        size_t more = size_min(next->pages, pages - run->pages);
        char *start = right ? next->start : run->start - (more << PAGE_SHIFT);
        if (next->kind == SPAN_CLEAN)
            fresh += more;
        else if (right)
            dirty_end = start + (more << PAGE_SHIFT);
        run_shorten(spans, next, more, right);
        run->start = right ? run->start : start;
        run->pages += (uint32_t)more;
    }
    runs_add(&spans->dirty, run);
    return (struct found){run, fresh, dirty_end};
}

/* Shorter requests take what is clean: there would be too many of them to search for each. */
enum { WIDEN_LEAST = 32 };

/* And it is not worth it for a dirty part of less than one in so many. */
enum { WIDEN_PART = 32 };

/* A run as a whole, dirty or clean. */
static struct found found_run(struct span *run, size_t pages)
{
    if (run == NULL)
        return (struct found){NULL, 0, NULL};
    bool clean = run->kind == SPAN_CLEAN;
    return (struct found){run, clean ? pages : 0, clean ? run->start : span_end(run)};
}

/* A run that memory is paid for already: a dirty one, or one in the cache, or one with a dirty
 * part. */
static struct found run_find_kept(struct spans *spans, size_t pages, size_t alignment)
{
    struct span *run = runs_find(&spans->dirty, pages, alignment);
    if (run == NULL && spans->cache.dirty_pages != 0 &&
        spans_grow_dirty(spans, pages + (alignment >> PAGE_SHIFT) - 1))
        run = runs_find(&spans->dirty, pages, alignment);
    if (run != NULL || alignment > PAGE_BYTES || pages < WIDEN_LEAST)
        return found_run(run, pages);
    run = runs_find_long(&spans->dirty, pages, pages / WIDEN_PART, run_can_widen);
    return run != NULL ? run_widen(spans, run, pages) : found_run(NULL, 0);
}

struct found run_find(struct spans *spans, size_t pages, size_t alignment)
{
    struct found found = run_find_kept(spans, pages, alignment);
    if (found.run != NULL)
        return found;
    struct span *run = runs_find(&spans->clean, pages, alignment);
    if (run == NULL && spans_grow(spans, pages + (alignment >> PAGE_SHIFT) - 1))
        run = runs_find(&spans->clean, pages, alignment);
    if (run == NULL) /* of a provider whose memory is not zero */
        run = runs_find(&spans->dirty, pages, alignment);
    return found_run(run, pages);
}

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
