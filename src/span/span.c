/*
 * Taking, freeing, joining, growing and purging runs of pages. See span.h.
 *
 * What stands in the page map: every page of a span in use leads to its descriptor, so that a
 * pointer into its middle is recognised. Of a free run only the first and the last page do, which
 * is what joining needs; the pages between hold the size of what was freed there.
 */
#include "span/span.h"

#include <string.h>

#include "meta/meta.h"
#include "meta/page_map.h"
#include "options/options.h"
#include "platform/check.h"
#include "platform/memory.h"

/* A segment is at least this long, and an eighth of what the heap already has if that is more: the
 * number of mappings grows with the logarithm of the heap. */
#define SEGMENT_PAGES (4 * MIB >> PAGE_SHIFT)
#define SEGMENT_PAGES_MOST (GIB >> PAGE_SHIFT)
/* What is tried when there is not room for that. */
#define SEGMENT_PAGES_LEAST (64 * KIB >> PAGE_SHIFT)

void spans_init(struct spans *spans, const struct provider *provider)
{
    memset(spans, 0, sizeof(*spans));
    lock_init(&spans->lock, RANK_SPANS);
    spans->provider = provider;
    spans->meta = &meta_system;
    list_init(&spans->segments);
    list_init(&spans->huge);
    runs_init(&spans->dirty);
    runs_init(&spans->clean);
}

static struct runs *runs_of(struct spans *spans, const struct span *run)
{
    return run->kind == SPAN_DIRTY ? &spans->dirty : &spans->clean;
}

static struct span *descriptor_take(struct spans *spans)
{
    return meta_take_from(spans->meta, sizeof(struct span));
}

static void descriptor_give(struct spans *spans, struct span *span)
{
    meta_give_to(spans->meta, span, span->units * META_LEAST);
}

/* ---- Free runs in the page map and the bins ---- */

static void run_insert(struct spans *spans, struct span *run)
{
    page_map_set_entry(run->start, (uintptr_t)run);
    page_map_set_entry(span_end(run) - PAGE_BYTES, (uintptr_t)run);
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

/* Takes `neighbour` into `run`, which lies beside it. */
static void run_absorb(struct spans *spans, struct span *run, struct span *neighbour)
{
    runs_remove(runs_of(spans, neighbour), neighbour);
    page_map_set_entry(span_end(neighbour) - PAGE_BYTES, entry_freed(0));
    page_map_set_entry(neighbour->start, entry_freed(neighbour->former_bytes));
    if (neighbour->start < run->start) {
        page_map_set_entry(run->start, entry_freed(run->former_bytes));
        run->start = neighbour->start;
        run->former_bytes = neighbour->former_bytes;
    }
    run->pages += neighbour->pages;
    descriptor_give(spans, neighbour);
}

/* Puts a free run, which is in no bin, where it belongs. */
static void run_settle(struct spans *spans, struct span *run)
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
    GAUGE_RAISE(spans->mapped_peak, spans->segment_pages + spans->huge_pages);
    GAUGE_RAISE(spans->used_peak, spans->used_pages + spans->huge_pages);
}

static bool segment_add(struct spans *spans, size_t pages)
{
    struct span *run = descriptor_take(spans);
    if (run == NULL)
        return false;
    struct segment *segment = segment_new(spans, spans->provider, spans->meta, pages);
    if (segment == NULL) {
        meta_give_to(spans->meta, run, sizeof(*run));
        return false;
    }
    list_push(&spans->segments, &segment->link);
    GAUGE_ADD(spans->segment_pages, segment->pages);
    spans_note_peak(spans);
    spans->empty_segments++;
    *run = (struct span){.start = segment->start,
                         .segment = segment,
                         .pages = (uint32_t)segment->pages,
                         .kind = SPAN_CLEAN,
                         .units = 1};
    run_insert(spans, run);
    return true;
}

/* Adds a segment in which `pages` pages fit for sure. */
static bool spans_grow(struct spans *spans, size_t pages)
{
    size_t wanted = size_min(size_max(SEGMENT_PAGES, spans->segment_pages / 8), SEGMENT_PAGES_MOST);
    if (segment_add(spans, size_max(pages, align_up(wanted, SEGMENT_PAGES_LEAST))))
        return true;
    return segment_add(spans, align_up(pages, SEGMENT_PAGES_LEAST));
}

const void *spans_prepare(struct spans *spans)
{
    lock_take(&spans->lock);
    bool done = spans_grow(spans, 1);
    lock_release(&spans->lock);
    return done ? CONTAINER_OF(spans->segments.next, struct segment, link)->start : NULL;
}

/* Gives an empty segment back: all runs in it, then itself. */
static bool segment_drop(struct spans *spans, struct segment *segment)
{
    char *end = segment_end(segment);
    for (char *at = segment->start; at < end;) {
        struct span *run = (struct span *)page_map_entry((uintptr_t)at);
        runs_remove(runs_of(spans, run), run);
        at = span_end(run);
    }
    size_t pages = segment->pages;
    char *start = segment->start;
    struct span *kept = (struct span *)page_map_entry((uintptr_t)start);
    for (char *at = span_end(kept); at < end;) {
        struct span *run = (struct span *)page_map_entry((uintptr_t)at);
        at = span_end(run);
        descriptor_give(spans, run);
    }
    list_remove(&segment->link);
    /* Before it is unmapped: another thread may be given the same addresses at once. */
    page_map_fill_entries(start, pages, entry_freed(0));
    if (segment_free(spans->provider, spans->meta, segment)) {
        descriptor_give(spans, kept);
        GAUGE_ADD(spans->segment_pages, -pages);
        spans->empty_segments--;
        return true;
    }
    /* The system refused. All of it goes on as one run, dirty to be safe. */
    list_push(&spans->segments, &segment->link);
    kept->pages = (uint32_t)pages;
    kept->kind = SPAN_DIRTY;
    run_insert(spans, kept);
    return false;
}

static void segment_use(struct spans *spans, struct segment *segment, size_t pages)
{
    if (segment->used_pages == 0)
        spans->empty_segments--;
    segment->used_pages += pages;
    GAUGE_ADD(spans->used_pages, pages);
    spans_note_peak(spans);
}

static void segment_unuse(struct spans *spans, struct segment *segment, size_t pages)
{
    segment->used_pages -= pages;
    GAUGE_ADD(spans->used_pages, -pages);
    if (segment->used_pages == 0)
        spans->empty_segments++;
}

/* ---- Taking ---- */

/* Cuts `pages` pages at `start` out of `run`. The run's descriptor goes on for what is left. */
static bool run_cut(struct spans *spans, struct span *run, char *start, size_t pages)
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

static struct span *run_find(struct spans *spans, size_t pages, size_t alignment)
{
    struct span *run = runs_find(&spans->dirty, pages, alignment);
    if (run == NULL)
        run = runs_find(&spans->clean, pages, alignment);
    if (run == NULL && spans_grow(spans, pages + (alignment >> PAGE_SHIFT) - 1))
        run = runs_find(&spans->clean, pages, alignment);
    return run;
}

bool span_take(struct spans *spans, struct span *span, enum span_kind kind, size_t pages,
               size_t alignment)
{
    lock_take(&spans->lock);
    struct span *run = run_find(spans, pages, alignment);
    if (run == NULL)
        goto fail;
    char *start = (char *)align_up((uintptr_t)run->start, alignment);
    struct segment *segment = run->segment;
    bool zero = run->kind == SPAN_CLEAN;
    if (!run_cut(spans, run, start, pages))
        goto fail;
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
    lock_release(&spans->lock);
    return true;
fail:
    lock_release(&spans->lock);
    return false;
}

bool span_extend(struct spans *spans, struct span *span, size_t pages)
{
    size_t more = pages - span->pages;
    lock_take(&spans->lock);
    struct span *next = run_at(span->segment, span_end(span), SPAN_DIRTY);
    if (next == NULL)
        next = run_at(span->segment, span_end(span), SPAN_CLEAN);
    bool done = next != NULL && next->pages >= more && run_cut(spans, next, next->start, more);
    if (done) {
        page_map_fill_entries(span_end(span), more, (uintptr_t)span);
        segment_use(spans, span->segment, more);
        span->pages = (uint32_t)pages;
    }
    lock_release(&spans->lock);
    return done;
}

/* ---- Freeing ---- */

static size_t dirty_limit(const struct spans *spans)
{
    return size_max(options.dirty >> PAGE_SHIFT, spans->used_pages / 8);
}

/* Purges one run. False: the system's pages are larger than it, or the system refuses. */
static bool run_purge(struct spans *spans, struct span *run)
{
    size_t bytes = (size_t)run->pages << PAGE_SHIFT;
    if (((uintptr_t)run->start | bytes) & (os_page_size() - 1))
        return false;
    runs_remove(&spans->dirty, run);
    bool done = spans->provider->purge(spans->provider, run->start, bytes);
    if (done)
        run->kind = SPAN_CLEAN;
    run_settle(spans, run);
    return done;
}

static size_t purge_down_to(struct spans *spans, size_t keep_pages)
{
    size_t purged = 0;
    while (spans->dirty.pages > keep_pages) {
        struct span *run = runs_longest(&spans->dirty);
        size_t pages = run->pages;
        if (!run_purge(spans, run))
            break;
        purged += pages;
    }
    return purged;
}

void span_free_locked(struct spans *spans, struct span *span, size_t object_bytes)
{
    struct segment *segment = span->segment;
    page_map_fill_entries(span->start, span->pages, entry_freed(object_bytes));
    span->kind = SPAN_DIRTY;
    span->former_bytes = object_bytes;
    segment_unuse(spans, segment, span->pages);
    run_settle(spans, span);
    /* One empty segment is kept, so that a program that goes up and down across its edge does not
     * map and unmap at each turn. */
    if (segment->used_pages == 0 && spans->empty_segments > 1)
        segment_drop(spans, segment);
    if (spans->dirty.pages > dirty_limit(spans))
        purge_down_to(spans, dirty_limit(spans) / 2);
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

size_t spans_purge(struct spans *spans, size_t keep_pages)
{
    lock_take(&spans->lock);
    size_t purged = purge_down_to(spans, keep_pages);
    for (struct list *node = spans->segments.next; node != &spans->segments;) {
        struct segment *segment = CONTAINER_OF(node, struct segment, link);
        node = node->next;
        if (segment->used_pages == 0 && keep_pages == 0 && segment_drop(spans, segment))
            purged++;
    }
    lock_release(&spans->lock);
    return purged << PAGE_SHIFT;
}

/* ---- Checking ---- */

static const char *segment_check(const struct segment *segment, size_t pages[3])
{
    size_t used = 0;
    int previous = -1;
    for (char *at = segment->start; at < segment_end(segment);) {
        uintptr_t entry = page_map_entry((uintptr_t)at);
        if (!entry_is_span(entry))
            return "a page of a segment belongs to no span";
        const struct span *span = (const struct span *)entry;
        if (span->start != at || span->segment != segment || span->pages == 0)
            return "spans do not tile their segment";
        if (page_map_entry((uintptr_t)span_end(span) - PAGE_BYTES) != entry)
            return "a span's last page leads elsewhere";
        if (span_is_free(span) && span->kind == previous)
            return "two free runs of a kind side by side";
        previous = span->kind;
        pages[span_is_free(span) ? span->kind : 2] += span->pages;
        if (!span_is_free(span))
            used += span->pages;
        at = span_end(span);
    }
    return used == segment->used_pages ? NULL : "a segment's count of used pages is wrong";
}

const char *spans_check(struct spans *spans)
{
    lock_take(&spans->lock);
    size_t pages[3] = {0, 0, 0};
    const char *wrong = NULL;
    size_t empty = 0;
    LIST_EACH(node, &spans->segments)
    {
        const struct segment *segment = CONTAINER_OF(node, struct segment, link);
        empty += segment->used_pages == 0;
        if (wrong == NULL)
            wrong = segment_check(segment, pages);
    }
    if (wrong == NULL && (pages[SPAN_DIRTY] != spans->dirty.pages ||
                          pages[SPAN_CLEAN] != spans->clean.pages || pages[2] != spans->used_pages))
        wrong = "the page counts of the runs are wrong";
    if (wrong == NULL && pages[0] + pages[1] + pages[2] != spans->segment_pages)
        wrong = "used + dirty + clean pages are not those of the segments";
    if (wrong == NULL && empty != spans->empty_segments)
        wrong = "the count of empty segments is wrong";
    lock_release(&spans->lock);
    return wrong;
}
