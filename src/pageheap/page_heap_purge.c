/*
 * What a heap keeps of its free pages, and what goes back to the system.
 *
 * No thread waits for this: all of it happens in calls of free, and in the slow paths of others. So
 * that memory has gone when a program falls idle, what is kept beyond the bound (retention.h) is
 * purged as it becomes free: first empty segments, the oldest first and each by one call, then the
 * longest runs. Down to half a base below the bound, so that it is not done at every free.
 *
 * Tried, and not better: to purge no more than what is too much, the end of a segment or run. What
 * is left of it fits fewer requests, so more of them took clean pages.
 */
#include "options/options.h"
#include "pageheap/page_heap_parts.h"
#include "platform/memory.h"
#include "stats/event.h"

/* What is kept without having been learned. */
static size_t base_pages(const struct page_heap *page_heap)
{
    return size_max(options.dirty >> PAGE_SHIFT, page_heap->used_pages / 8);
}

static size_t in_use_pages(const struct page_heap *page_heap)
{
    return page_heap->used_pages + page_heap->huge_pages;
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
enum purge_scope { WHOLE, PARTS };

/* The longest dirty run or, where there are huge pages, the longest with a whole one. */
static struct span *run_to_purge(struct page_heap *page_heap, enum purge_scope how)
{
    struct span *run = runs_find_long(&page_heap->dirty, UINT32_MAX, 0, run_is_whole);
    if (run == NULL && how == PARTS)
        run = runs_find_long(&page_heap->dirty, UINT32_MAX, 0, run_is_any);
    return run;
}

/* Before parts of huge pages are purged their segment must have none any more: the kernel would
 * sooner or later make whole ones of what is left, and the memory be back. It gets no huge pages
 * afterwards, even if they are asked for, as the purge leaves page tables behind; so it is unmapped
 * when it is empty. */
static void segment_split_huge(struct page_heap *page_heap, struct segment *segment)
{
    if (!segment->huge_pages)
        return;
    segment_want_huge(page_heap, segment, false);
    segment->huge_split = true;
}

/* What of a run is to be purged. */
static struct range run_purgeable(struct page_heap *page_heap, const struct span *run)
{
    struct range part = run_huge_part(run);
    if (run->segment->huge_pages && part.pages != 0)
        return part;
    segment_split_huge(page_heap, run->segment);
    return (struct range){run->start, run->pages};
}

void span_split_huge(struct page_heap *page_heap, const struct span *span)
{
    lock_acquire(&page_heap->lock);
    segment_split_huge(page_heap, span->segment);
    lock_release(&page_heap->lock);
}

/* Takes a part of a run out of the bins; NULL: no memory for its descriptor. */
static struct span *run_take_range(struct page_heap *page_heap, struct span *run,
                                   struct range range)
{
    if (range.pages == run->pages) {
        runs_remove(&page_heap->dirty, run);
        return run;
    }
    struct span *part = descriptor_alloc(page_heap);
    if (part == NULL)
        return NULL;
    part->former_bytes = 0;
    if (run_cut(page_heap, run, part, range.start, range.pages))
        return part;
    descriptor_free(page_heap, part);
    return NULL;
}

/* Both return how many pages were dirty; 0 if the system refused, or its pages are larger than what
 * there is, or there is no memory for a descriptor. */
static size_t purge_longest(struct page_heap *page_heap, enum purge_scope how)
{
    struct span *run = run_to_purge(page_heap, how);
    if (run == NULL ||
        (((uintptr_t)run->start | (uintptr_t)span_end(run)) & (os_page_size() - 1)) != 0)
        return 0;
    struct range range = run_purgeable(page_heap, run);
    struct span *part = run_take_range(page_heap, run, range);
    if (part == NULL)
        return 0;
    bool done =
        page_heap->provider->purge(page_heap->provider, range.start, range.pages << PAGE_SHIFT);
    if (done)
        part->kind = SPAN_CLEAN;
    run_settle(page_heap, part);
    return done ? range.pages : 0;
}

static size_t purge_oldest_segment(struct page_heap *page_heap)
{
    struct segment *segment = segment_cache_oldest_dirty(&page_heap->cache);
    size_t pages = segment->dirty_pages;
    if (!segment->huge_split && segment_purge(page_heap, segment))
        return pages;
    /* A provider that keeps the pages of what it handed out may take it back as a whole, and have
     * another heap that it is for. */
    segment_cache_remove(&page_heap->cache, segment);
    if (segment_drop(page_heap, segment))
        return pages;
    segment->dirty_pages = (uint32_t)segment->pages;
    segment_cache_put(&page_heap->cache, segment, page_heap->now());
    return segment->huge_split && segment_purge(page_heap, segment) ? pages : 0;
}

static size_t purge_down_to(struct page_heap *page_heap, size_t keep_pages, enum purge_scope how)
{
    size_t purged = 0;
    while (page_heap_kept_pages(page_heap) > keep_pages) {
        size_t pages = page_heap->cache.dirty_pages != 0 ? purge_oldest_segment(page_heap)
                                                         : purge_longest(page_heap, how);
        if (pages == 0)
            break;
        purged += pages;
    }
    return purged;
}

size_t page_heap_purge(struct page_heap *page_heap, size_t keep_pages)
{
    lock_acquire(&page_heap->lock);
    /* Segments first: what is unmapped whole need not be purged. */
    size_t gone = 0;
    if (keep_pages == 0) {
        for (struct list *node = page_heap->segments.next; node != &page_heap->segments;) {
            struct segment *segment = CONTAINER_OF(node, struct segment, link);
            node = node->next;
            if (segment->used_pages == 0)
                segment_retire(page_heap, segment);
        }
        gone = page_heap_shrink_cache(page_heap, true);
    }
    gone += purge_down_to(page_heap, keep_pages, PARTS);
    lock_release(&page_heap->lock);
    return gone << PAGE_SHIFT;
}

/* ---- The bound ---- */

/* Atomic because page_heap_tick_is_due reads without the lock; relaxed: it is a hint. */
static void set_tick_due(struct page_heap *page_heap, uint64_t due)
{
    if (UNLIKELY(options.purge_thread != 0) && due != UINT64_MAX && !page_heap->other)
        __atomic_store_n(&events.wanted.purge, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&page_heap->tick_due, due, __ATOMIC_RELAXED);
}

/* When there is something to do even if the program asks for nothing. */
static uint64_t next_tick(const struct page_heap *page_heap)
{
    uint64_t due = UINT64_MAX;
    size_t base = base_pages(page_heap), kept = page_heap_kept_pages(page_heap);
    if (kept > base && options.purge_delay != DELAY_NEVER)
        due = retention_due(&page_heap->retention, kept, base);
    const struct segment *oldest = segment_cache_oldest(&page_heap->cache);
    uint64_t age = options_nanoseconds(options.cache_age);
    if (oldest != NULL && age < UINT64_MAX - oldest->emptied && oldest->emptied + age < due)
        due = oldest->emptied + age;
    return due;
}

size_t page_heap_bound(const struct page_heap *page_heap)
{
    return retention_bound(&page_heap->retention, base_pages(page_heap), in_use_pages(page_heap));
}

void page_heap_keep_bound(struct page_heap *page_heap)
{
    page_heap_see(page_heap);
    size_t base = base_pages(page_heap);
    size_t kept = page_heap_kept_pages(page_heap);
    size_t bound = page_heap_bound(page_heap);
    if (kept > bound) {
        size_t purged = purge_down_to(page_heap, bound - size_min(bound, base / 2), WHOLE);
        /* What is left are parts of huge pages, and those that are free in part now may well be
         * free as a whole soon. Not so when there are that many. */
        if (page_heap_kept_pages(page_heap) > 2 * bound)
            purged += purge_down_to(page_heap, bound, PARTS);
        if (purged != 0)
            retention_released(&page_heap->retention, purged, page_heap->now());
        page_heap_see(page_heap);
    }
    if (kept > base || page_heap->cache.count != 0 || page_heap->tick_due != UINT64_MAX)
        set_tick_due(page_heap, next_tick(page_heap));
}

/* Parts of huge pages that stayed free through an epoch, in which at least `least` pages were kept,
 * go as well. */
static void purge_idle_parts(struct page_heap *page_heap, size_t least)
{
    size_t bound = page_heap_bound(page_heap);
    if (least <= bound || page_heap_kept_pages(page_heap) <= bound)
        return;
    size_t purged = purge_down_to(page_heap, bound, PARTS);
    if (purged != 0)
        retention_released(&page_heap->retention, purged, page_heap->now());
}

void page_heap_tick(struct page_heap *page_heap)
{
    lock_acquire(&page_heap->lock);
    uint64_t now = page_heap->now();
    if (page_heap->tick_due <= now) {
        size_t least = page_heap->retention.low;
        bool over = retention_tick(&page_heap->retention, page_heap_kept_pages(page_heap),
                                   base_pages(page_heap), in_use_pages(page_heap), now);
        page_heap_shrink_cache(page_heap, false);
        if (over)
            purge_idle_parts(page_heap, least);
        page_heap_keep_bound(page_heap);
        set_tick_due(page_heap, next_tick(page_heap));
    }
    lock_release(&page_heap->lock);
}
