/*
 * What a heap keeps of its free pages, and what goes back to the system.
 *
 * No thread waits for this: all of it happens in calls of free, and in the slow paths of others. So
 * that memory has gone when a program falls idle, what is kept beyond the bound (demand.h) is
 * purged as it becomes free: first empty segments, the oldest first and each by one call, then the
 * longest runs. Down to half a base below the bound, so that it is not done at every free.
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

/* Purges one run. False: the system's pages are larger than it, or the system refuses. */
static bool run_purge(struct spans *spans, struct span *run)
{
    size_t bytes = (size_t)run->pages << PAGE_SHIFT;
    if (((uintptr_t)run->start | bytes) & (os_page_size() - 1))
        return false;
    struct segment *segment = run->segment;
    if (segment->huge_pages) {
        /* Or the system would sooner or later make whole ones of what is left, and the memory be
         * back. */
        spans->provider->loosen(spans->provider, segment->start, segment->pages << PAGE_SHIFT);
        segment->huge_pages = false;
    }
    runs_remove(&spans->dirty, run);
    bool done = spans->provider->purge(spans->provider, run->start, bytes);
    if (done)
        run->kind = SPAN_CLEAN;
    run_settle(spans, run);
    return done;
}

/* Both return how many pages were dirty; 0 if the system refused. */
static size_t purge_longest(struct spans *spans)
{
    struct span *run = runs_longest(&spans->dirty);
    size_t pages = run->pages;
    return run_purge(spans, run) ? pages : 0;
}

static size_t purge_oldest_segment(struct spans *spans)
{
    struct segment *segment = segment_cache_oldest_dirty(&spans->cache);
    size_t pages = segment->dirty_pages;
    if (segment_purge(spans, segment))
        return pages;
    /* A provider that keeps the pages of what it handed out may take it back as a whole, and have
     * another heap that it is for. */
    segment_cache_remove(&spans->cache, segment);
    if (segment_drop(spans, segment))
        return pages;
    segment->dirty_pages = (uint32_t)segment->pages;
    segment_cache_put(&spans->cache, segment, spans->now());
    return 0;
}

static size_t purge_down_to(struct spans *spans, size_t keep_pages)
{
    size_t purged = 0;
    while (spans_kept_pages(spans) > keep_pages) {
        size_t pages =
            spans->cache.dirty_pages != 0 ? purge_oldest_segment(spans) : purge_longest(spans);
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
    gone += purge_down_to(spans, keep_pages);
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
        size_t purged = purge_down_to(spans, bound - size_min(bound, base / 2));
        if (purged != 0)
            demand_purged(&spans->demand, purged, spans->now());
        spans_see_demand(spans);
    }
    if (kept > base || spans->cache.count != 0 || spans->tick_due != UINT64_MAX)
        set_tick_due(spans, next_tick(spans));
}

void spans_tick(struct spans *spans)
{
    lock_take(&spans->lock);
    uint64_t now = spans->now();
    if (spans->tick_due <= now) {
        demand_tick(&spans->demand, spans_kept_pages(spans), base_pages(spans), in_use_pages(spans),
                    now);
        spans_shrink_cache(spans, false);
        spans_keep_bound(spans);
        set_tick_due(spans, next_tick(spans));
    }
    lock_release(&spans->lock);
}
