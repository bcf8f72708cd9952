/*
 * Taking, freeing, joining and growing runs of pages. See span.h.
 *
 * What stands in the page map: every page of a span in use leads to its descriptor, so that a
 * pointer into its middle is recognised. Of a free run only the first and the last page do, which
 * is what joining needs; the pages between hold the size of what was freed there.
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
    list_init(&spans->huge);
    runs_init(&spans->dirty);
    runs_init(&spans->clean);
}

/* ---- Free runs in the page map and the bins ---- */

static void run_insert(struct spans *spans, struct span *run)
{
    run_map(run);
    runs_add(runs_of(spans, run), run);
}

/* The free run of `kind` that the page at `address` belongs to, if it is in `segment`. */
static struct span *run_at(const struct segment *segment, const char *address, int kind)
{
    if (address < segment->start || address >= segment_end(segment))
        return NULL;
    uintptr_t entry = page_map_entry((uintptr_t)address);
    if (!entry_is_span(entry))
        return NULL;
    struct span *run = (struct span *)entry;
    return run->kind == kind ? run : NULL;
}

/* The free run of any kind on the right of a run, or on its left. */
static struct span *run_beside(const struct span *run, bool right)
{
    const char *address = right ? span_end(run) : run->start - PAGE_BYTES;
    struct span *dirty = run_at(run->segment, address, SPAN_DIRTY);
    return dirty != NULL ? dirty : run_at(run->segment, address, SPAN_CLEAN);
}

/* Takes `neighbour` into `run`, which lies beside it. */
static void run_absorb(struct spans *spans, struct span *run, struct span *neighbour)
{
    runs_remove(runs_of(spans, neighbour), neighbour);
    run_unmap(neighbour);
    if (neighbour->start < run->start) {
        page_map_set_entry(run->start, entry_freed(run->former_bytes));
        run->start = neighbour->start;
        run->former_bytes = neighbour->former_bytes;
    }
    run->pages += neighbour->pages;
    descriptor_give(spans, neighbour);
}

void run_settle(struct spans *spans, struct span *run)
{
    struct span *left = run_at(run->segment, run->start - PAGE_BYTES, run->kind);
    if (left != NULL)
        run_absorb(spans, run, left);
    struct span *right = run_at(run->segment, span_end(run), run->kind);
    if (right != NULL)
        run_absorb(spans, run, right);
    run_insert(spans, run);
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

bool run_cut(struct spans *spans, struct span *run, char *start, size_t pages)
{
    size_t front = (size_t)(start - run->start) >> PAGE_SHIFT;
    size_t back = run->pages - front - pages;
    struct span *rest = run;
    if (front != 0 && back != 0) {
        rest = descriptor_take(spans);
        if (rest == NULL)
            return false;
    }
    runs_remove(runs_of(spans, run), run);
    struct span old = *run;
    if (front != 0) {
        run->pages = (uint32_t)front;
        run_insert(spans, run);
    }
    if (back != 0) {
        uint8_t units = rest == run ? old.units : 1;
        *rest = old;
        rest->units = units;
        rest->start = start + (pages << PAGE_SHIFT);
        rest->pages = (uint32_t)back;
        rest->former_bytes = 0;
        run_insert(spans, rest);
    }
    if (front == 0 && back == 0)
        descriptor_give(spans, run);
    return true;
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

/* Makes a dirty run `pages` long by what is free beside it. Returns how many of them were clean;
 * they count as dirty until the caller takes them all, at once. */
static size_t run_widen(struct spans *spans, struct span *run, size_t pages)
{
    size_t fresh = 0;
    runs_remove(&spans->dirty, run);
    while (run->pages < pages) {
        struct span *next = run_beside(run, true);
        bool right = next != NULL;
        if (!right)
            next = run_beside(run, false);
        size_t more = size_min(next->pages, pages - run->pages);
        fresh += next->kind == SPAN_CLEAN ? more : 0;
        char *start = right ? next->start : run->start - (more << PAGE_SHIFT);
        /* From its end: that needs no descriptor, and does not fail. */
        run_cut(spans, next, start, more);
        run->start = right ? run->start : start;
        run->pages += (uint32_t)more;
    }
    run_insert(spans, run);
    return fresh;
}

/* Shorter requests take what is clean: there would be too many of them to search for each. */
enum { WIDEN_LEAST = 32 };

/* And it is not worth it for a dirty part of less than one in so many. */
enum { WIDEN_PART = 32 };

/* A run that memory is paid for already: a dirty one, or one in the cache, or one with a dirty
 * part; `*fresh` pages of it are clean. */
static struct span *run_find_kept(struct spans *spans, size_t pages, size_t alignment,
                                  size_t *fresh)
{
    *fresh = 0;
    struct span *run = runs_find(&spans->dirty, pages, alignment);
    if (run == NULL && spans->cache.dirty_pages != 0 &&
        spans_grow_dirty(spans, pages + (alignment >> PAGE_SHIFT) - 1))
        run = runs_find(&spans->dirty, pages, alignment);
    if (run != NULL || alignment > PAGE_BYTES || pages < WIDEN_LEAST)
        return run;
    run = runs_find_long(&spans->dirty, pages, pages / WIDEN_PART, run_can_widen);
    if (run != NULL)
        *fresh = run_widen(spans, run, pages);
    return run;
}

static struct span *run_find(struct spans *spans, size_t pages, size_t alignment, size_t *fresh)
{
    struct span *run = run_find_kept(spans, pages, alignment, fresh);
    if (run != NULL)
        return run;
    *fresh = pages;
    run = runs_find(&spans->clean, pages, alignment);
    if (run != NULL || !spans_grow(spans, pages + (alignment >> PAGE_SHIFT) - 1))
        return run;
    run = runs_find(&spans->clean, pages, alignment);
    if (run != NULL)
        return run;
    *fresh = 0; /* of a provider whose memory is not zero */
    return runs_find(&spans->dirty, pages, alignment);
}

/* Makes `span` the descriptor of `pages` at the first multiple of `alignment` in `run`. */
static bool span_cut(struct spans *spans, struct span *run, struct span *span, enum span_kind kind,
                     size_t pages, size_t alignment)
{
    char *start = (char *)align_up((uintptr_t)run->start, alignment);
    struct segment *segment = run->segment;
    bool zero = run->kind == SPAN_CLEAN;
    if (!run_cut(spans, run, start, pages))
        return false;
    segment_use(spans, segment, pages);
    list_init(&span->link);
    span->start = start;
    span->segment = segment;
    span->owner = NULL;
    span->pages = (uint32_t)pages;
    span->kind = (uint8_t)kind;
    span->class = 0;
    span->zero = zero;
    page_map_fill_entries(start, pages, (uintptr_t)span);
    return true;
}

typedef struct span *run_finder(struct spans *spans, size_t pages, size_t alignment, size_t *fresh);

static bool take_by(run_finder *find, struct spans *spans, struct span *span, enum span_kind kind,
                    size_t pages, size_t alignment)
{
    lock_take(&spans->lock);
    size_t fresh;
    struct span *run = find(spans, pages, alignment, &fresh);
    bool done = run != NULL && span_cut(spans, run, span, kind, pages, alignment);
    if (done)
        spans_took(spans, fresh, fresh != 0);
    lock_release(&spans->lock);
    return done;
}

bool span_take(struct spans *spans, struct span *span, enum span_kind kind, size_t pages,
               size_t alignment)
{
    return take_by(run_find, spans, span, kind, pages, alignment);
}

bool span_take_kept(struct spans *spans, struct span *span, enum span_kind kind, size_t pages)
{
    return take_by(run_find_kept, spans, span, kind, pages, PAGE_BYTES);
}

bool span_extend(struct spans *spans, struct span *span, size_t pages)
{
    size_t more = pages - span->pages;
    lock_take(&spans->lock);
    struct span *next = run_at(span->segment, span_end(span), SPAN_DIRTY);
    if (next == NULL)
        next = run_at(span->segment, span_end(span), SPAN_CLEAN);
    bool clean = next != NULL && next->kind == SPAN_CLEAN;
    bool done = next != NULL && next->pages >= more && run_cut(spans, next, next->start, more);
    if (done) {
        page_map_fill_entries(span_end(span), more, (uintptr_t)span);
        segment_use(spans, span->segment, more);
        span->pages = (uint32_t)pages;
        spans_took(spans, more, clean);
    }
    lock_release(&spans->lock);
    return done;
}

/* ---- Freeing ---- */

void span_free_locked(struct spans *spans, struct span *span, size_t object_bytes)
{
    struct segment *segment = span->segment;
    page_map_fill_entries(span->start, span->pages, entry_freed(object_bytes));
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
    *rest = *span;
    rest->units = 1;
    rest->start = span->start + (pages << PAGE_SHIFT);
    rest->pages = span->pages - (uint32_t)pages;
    span->pages = (uint32_t)pages;
    span_free_locked(spans, rest, 0);
    lock_release(&spans->lock);
    return true;
}
