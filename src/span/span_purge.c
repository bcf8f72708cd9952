/*
 * What a heap keeps of its free pages, and what goes back to the system.
 *
 * No thread waits for this: all of it happens in calls of free, and in the slow paths of others. So
 * that memory has gone when a program falls idle, what is kept beyond the bound (demand.h) is
 * purged as it becomes free: first empty segments, the oldest first and each by one call, then the
 * longest runs. Down to half a base below the bound, so that it is not done at every free.
 *
 * Tried, and not better: to purge no more than what is too much, the end of a segment or run. What
 * is left of it fits fewer requests, so more of them took clean pages.
 */
#include "options/options.h"
#include "platform/memory.h"
#include "span/span_runs.h"
#include "stats/event.h"

/* What is kept without having been learned. */
static size_t base_pages(const struct spans *spans)
{
    return size_max(options.dirty >> PAGE_SHIFT, spans->used_pages / 8);
}

static size_t in_use_pages(const struct spans *spans)
{
    return spans->used_pages + spans->huge_pages;
}

/* ---- Purging ---- */

/* A range of whole pages. */
struct range {
    char *start;
    size_t pages;
};

/* The whole huge pages in a run. */
static struct range run_huge_part(const struct span *run)
{
    char *start = (char *)align_up((uintptr_t)run->start, OS_HUGE_PAGE);
    char *end = (char *)align_down((uintptr_t)span_end(run), OS_HUGE_PAGE);
    return (struct range){start, start < end ? (size_t)(end - start) >> PAGE_SHIFT : 0};
}

static bool run_is_whole(const struct span *run, size_t most)
{
    (void)most;
    return !run->segment->huge_pages || run_huge_part(run).pages != 0;
}

static bool run_is_any(const struct span *run, size_t most)
{
    (void)run, (void)most;
    return true;
}

/* Which runs may be purged: parts of huge pages, too, or only whole ones. */
enum thoroughness { WHOLE, PARTS };

/* The longest dirty run or, where there are huge pages, the longest with a whole one. */
static struct span *run_to_purge(struct spans *spans, enum thoroughness how)
{
    struct span *run = runs_find_long(&spans->dirty, UINT32_MAX, 0, run_is_whole);
    if (run == NULL && how == PARTS)
        run = runs_find_long(&spans->dirty, UINT32_MAX, 0, run_is_any);
    return run;
}

/* Before parts of huge pages are purged their segment must have none any more: the kernel would
 * sooner or later make whole ones of what is left, and the memory be back. It gets no huge pages
 * afterwards, even if they are asked for, as the purge leaves page tables behind; so it is unmapped
 * when it is empty. */
static void segment_loosen(struct spans *spans, struct segment *segment)
{
    if (!segment->huge_pages)
        return;
    segment_want_huge(spans, segment, false);
    segment->loosened = true;
}

/* What of a run is to be purged. */
static struct range run_purgeable(struct spans *spans, const struct span *run)
{
    struct range part = run_huge_part(run);
    if (run->segment->huge_pages && part.pages != 0)
        return part;
    segment_loosen(spans, run->segment);
    return (struct range){run->start, run->pages};
}

void span_loosen(struct spans *spans, const struct span *span)
{
    lock_take(&spans->lock);
    segment_loosen(spans, span->segment);
    lock_release(&spans->lock);
}

/* Takes a part of a run out of the bins; NULL: no memory for its descriptor. */
static struct span *run_take_range(struct spans *spans, struct span *run, struct range range)
{
    if (range.pages == run->pages) {
        runs_remove(&spans->dirty, run);
        return run;
    }
    struct span *part = descriptor_take(spans);
    if (part == NULL)
        return NULL;
    part->former_bytes = 0;
    if (run_cut(spans, run, part, range.start, range.pages))
        return part;
    descriptor_give(spans, part);
    return NULL;
}

/* Both return how many pages were dirty; 0 if the system refused, or its pages are larger than what
 * there is, or there is no memory for a descriptor. */
static size_t purge_longest(struct spans *spans, enum thoroughness how)
{
    struct span *run = run_to_purge(spans, how);
    if (run == NULL ||
        (((uintptr_t)run->start | (uintptr_t)span_end(run)) & (os_page_size() - 1)) != 0)
        return 0;
    struct range range = run_purgeable(spans, run);
    struct span *part = run_take_range(spans, run, range);
    if (part == NULL)
        return 0;
    bool done = spans->provider->purge(spans->provider, range.start, range.pages << PAGE_SHIFT);
    if (done)
        part->kind = SPAN_CLEAN;
    run_settle(spans, part);
    return done ? range.pages : 0;
}

static size_t purge_oldest_segment(struct spans *spans)
{
    struct segment *segment = segment_cache_oldest_dirty(&spans->cache);
    size_t pages = segment->dirty_pages;
    if (!segment->loosened && segment_purge(spans, segment))
        return pages;
    /* A provider that keeps the pages of what it handed out may take it back as a whole, and have
     * another heap that it is for. */
    segment_cache_remove(&spans->cache, segment);
    if (segment_drop(spans, segment))
        return pages;
    segment->dirty_pages = (uint32_t)segment->pages;
    segment_cache_put(&spans->cache, segment, spans->now());
    return segment->loosened && segment_purge(spans, segment) ? pages : 0;
}

static size_t purge_down_to(struct spans *spans, size_t keep_pages, enum thoroughness how)
{
    size_t purged = 0;
    while (spans_kept_pages(spans) > keep_pages) {
        size_t pages =
            spans->cache.dirty_pages != 0 ? purge_oldest_segment(spans) : purge_longest(spans, how);
        if (pages == 0)
            break;
        purged += pages;
    }
    return purged;
}

size_t spans_purge(struct spans *spans, size_t keep_pages)
{
    lock_take(&spans->lock);
    /* Segments first: what is unmapped whole need not be purged. */
    size_t gone = 0;
    if (keep_pages == 0) {
        for (struct list *node = spans->segments.next; node != &spans->segments;) {
            struct segment *segment = CONTAINER_OF(node, struct segment, link);
            node = node->next;
            if (segment->used_pages == 0)
                segment_retire(spans, segment);
        }
        gone = spans_shrink_cache(spans, true);
    }
    gone += purge_down_to(spans, keep_pages, PARTS);
    lock_release(&spans->lock);
    return gone << PAGE_SHIFT;
}

/* ---- The bound ---- */

/* Atomic because spans_tick_is_due reads without the lock; relaxed: it is a hint. */
static void set_tick_due(struct spans *spans, uint64_t due)
{
    if (UNLIKELY(options.purge_thread != 0) && due != UINT64_MAX && !spans->other)
        __atomic_store_n(&events.wanted.purge, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&spans->tick_due, due, __ATOMIC_RELAXED);
}

/* When there is something to do even if the program asks for nothing. */
static uint64_t next_tick(const struct spans *spans)
{
    uint64_t due = UINT64_MAX;
    size_t base = base_pages(spans), kept = spans_kept_pages(spans);
    if (kept > base && options.purge_delay != DELAY_NEVER)
        due = demand_due(&spans->demand, kept, base);
    const struct segment *oldest = segment_cache_oldest(&spans->cache);
    uint64_t age = options_nanoseconds(options.cache_age);
    if (oldest != NULL && age < UINT64_MAX - oldest->emptied && oldest->emptied + age < due)
        due = oldest->emptied + age;
    return due;
}

size_t spans_bound(const struct spans *spans)
{
    return demand_bound(&spans->demand, base_pages(spans), in_use_pages(spans));
}

void spans_keep_bound(struct spans *spans)
{
    spans_see_demand(spans);
    size_t base = base_pages(spans);
    size_t kept = spans_kept_pages(spans);
    size_t bound = spans_bound(spans);
    if (kept > bound) {
        size_t purged = purge_down_to(spans, bound - size_min(bound, base / 2), WHOLE);
        /* What is left are parts of huge pages, and those that are free in part now may well be
         * free as a whole soon. Not so when there are that many. */
        if (spans_kept_pages(spans) > 2 * bound)
            purged += purge_down_to(spans, bound, PARTS);
        if (purged != 0)
            demand_purged(&spans->demand, purged, spans->now());
        spans_see_demand(spans);
    }
    if (kept > base || spans->cache.count != 0 || spans->tick_due != UINT64_MAX)
        set_tick_due(spans, next_tick(spans));
}

/* Parts of huge pages that stayed free through an epoch, in which at least `least` pages were kept,
 * go as well. */
static void purge_idle_parts(struct spans *spans, size_t least)
{
    size_t bound = spans_bound(spans);
    if (least <= bound || spans_kept_pages(spans) <= bound)
        return;
    size_t purged = purge_down_to(spans, bound, PARTS);
    if (purged != 0)
        demand_purged(&spans->demand, purged, spans->now());
}

void spans_tick(struct spans *spans)
{
    lock_take(&spans->lock);
    uint64_t now = spans->now();
    if (spans->tick_due <= now) {
        size_t least = spans->demand.low;
        bool over = demand_tick(&spans->demand, spans_kept_pages(spans), base_pages(spans),
                                in_use_pages(spans), now);
        spans_shrink_cache(spans, false);
        if (over)
            purge_idle_parts(spans, least);
        spans_keep_bound(spans);
        set_tick_due(spans, next_tick(spans));
    }
    lock_release(&spans->lock);
}
