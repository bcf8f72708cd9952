/*
 * Purging, and the cache of segments kept within its bounds. See page_heap_purge.h.
 */
#include "pageheap/page_heap_purge.h"

#include "options/options.h"
#include "pageheap/nearby.h"
#include "pageheap/recent.h"
#include "pageheap/run.h"
#include "pageheap/segments.h"
#include "pageheap/sparse.h"
#include "platform/memory.h"
#include "stats/event.h"

/* One part in: of the base, a purge goes on so far below the bound, so that the next frees need
 * none. More of it takes what is asked for next: a call costs what having four pages again does. */
enum { PURGE_STEP_SHARE = 8 };

/* Pages: longer runs go by age. Shorter ones serve few requests, and cost most of a call each. */
#define PURGE_BY_AGE (RETENTION_PURGE_LEAST >> PAGE_SHIFT)

/* relaxed, here and below: cells ask without the lock, and then it is a hint. */
size_t page_heap_base(const struct page_heap *page_heap)
{
    size_t used = __atomic_load_n(&page_heap->used_pages, __ATOMIC_RELAXED);
    size_t idle = __atomic_load_n(&page_heap->recent.pages, __ATOMIC_RELAXED) +
                  __atomic_load_n(&page_heap->cells_idle, __ATOMIC_RELAXED);
    return size_max(options.dirty >> PAGE_SHIFT, (used - size_min(used, idle)) / SLACK_SHARE);
}

/* Runs and cells share the base: who comes first has it, but half of it is for either. */
static size_t base_share(size_t base, size_t others)
{
    return base - size_min(base / 2, others);
}

static size_t base_pages(const struct page_heap *page_heap)
{
    return base_share(page_heap_base(page_heap), page_heap_used_kept(page_heap));
}

size_t page_heap_base_of_cells(const struct page_heap *page_heap, size_t kept)
{
    size_t all = page_heap_used_kept(page_heap);
    size_t runs = __atomic_load_n(&page_heap->dirty.pages, __ATOMIC_RELAXED) +
                  __atomic_load_n(&page_heap->recent.pages, __ATOMIC_RELAXED) +
                  __atomic_load_n(&page_heap->cache.dirty_pages, __ATOMIC_RELAXED);
    return base_share(page_heap_base(page_heap), all - size_min(all, kept) + runs);
}

void page_heap_note_cells(struct page_heap *page_heap, size_t kept, size_t idle, size_t loose)
{
    __atomic_fetch_add(&page_heap->cells_kept, kept, __ATOMIC_RELAXED);
    __atomic_fetch_add(&page_heap->cells_idle, idle, __ATOMIC_RELAXED);
    __atomic_fetch_add(&page_heap->cells_loose, loose, __ATOMIC_RELAXED);
}

void page_heap_note_lists(struct page_heap *page_heap, size_t kept)
{
    __atomic_fetch_add(&page_heap->lists_kept, kept, __ATOMIC_RELAXED);
}

/* ---- Purging ---- */

/* The part of a run that is made of whole pages of `bytes`; none: 0 pages. */
static size_t whole_part(const struct span *run, size_t bytes, char **start)
{
    *start = (char *)align_up((uintptr_t)run->start, bytes);
    char *end = (char *)align_down((uintptr_t)span_end(run), bytes);
    return *start < end ? (size_t)(end - *start) >> PAGE_SHIFT : 0;
}

/* The part of a run that is whole huge pages, and whole pages of the system, which may be larger
 * than ours. */
static size_t huge_part(const struct span *run, char **start)
{
    return whole_part(run, OS_HUGE_PAGE, start);
}

static size_t system_part(const struct span *run, char **start)
{
    return whole_part(run, os_page_size(), start);
}

/* Whether some of a run can go without parts of huge pages. */
static bool run_can_go(const struct span *run, size_t least)
{
    char *start;
    (void)least;
    return (run->segment->huge == HUGE_THERE ? huge_part(run, &start) : system_part(run, &start)) !=
           0;
}

/* Before parts of huge pages are purged their segment must have none any more: the kernel would
 * sooner or later make whole ones of what is left, and the memory be back. It gets no huge pages
 * afterwards, even if they are asked for, as the purge leaves page tables behind; so it is unmapped
 * when it is empty. */
static void segment_split_huge(struct page_heap *page_heap, struct segment *segment)
{
    if (segment->huge != HUGE_THERE)
        return;
    segment_ask_huge(page_heap, segment, false);
    segment_set_huge(segment, HUGE_SPLIT);
}

void span_split_huge(struct page_heap *page_heap, const struct span *span)
{
    lock_acquire(&page_heap->lock);
    segment_split_huge(page_heap, span->segment);
    lock_release(&page_heap->lock);
}

/* ---- Apart from the page heap ---- */

/* Bytes (machine): less is given back in some 50 us, which whoever wants the lock may wait. */
#define APART_LEAST (1 * MIB)

/* Bytes (machine): of a batch; no more runs are added then. The kernel keeps a process's mappings
 * from its other threads during a call. */
#define BATCH_LEAST (2 * MIB)

/* Call when so many pages were taken out, and go back to the system next: lets go of the lock
 * meanwhile, so that others need not wait for the system. One thread does so at a time; of several
 * the others keep the lock, as where it is little. Returns whether lock_again is to take it. */
static bool unlock_apart(struct page_heap *page_heap, size_t pages)
{
    if (pages < APART_LEAST >> PAGE_SHIFT || !lock_try(&page_heap->purge_lock))
        return false;
    page_heap->apart = true;
    lock_release(&page_heap->lock);
    return true;
}

static void lock_again(struct page_heap *page_heap, bool apart)
{
    if (!apart)
        return;
    lock_acquire(&page_heap->lock);
    page_heap->apart = false;
    lock_release(&page_heap->purge_lock);
}

bool page_heap_wait_apart(struct page_heap *page_heap)
{
    if (!page_heap->apart)
        return false;
    lock_release(&page_heap->lock);
    lock_acquire(&page_heap->purge_lock);
    lock_release(&page_heap->purge_lock);
    lock_acquire(&page_heap->lock);
    return true;
}

/* ---- Together ---- */

/* Tells what went. */
static void note_went(struct page_heap *page_heap)
{
    if (page_heap->went != 0)
        retention_released(&page_heap->retention, page_heap->went, page_heap->now());
    page_heap->went = 0;
}

/* Dirty runs that go together, in no bin meanwhile. */
struct purge_batch {
    size_t count;
    size_t pages; /* == sum of their pages */
    struct span *parts[OS_RANGES_MOST];
    struct iovec ranges[OS_RANGES_MOST];
};

static void batch_add(struct page_heap *page_heap, struct purge_batch *batch, struct span *part)
{
    run_begin_busy(page_heap, part);
    batch->parts[batch->count] = part;
    batch->ranges[batch->count++] = (struct iovec){part->start, span_bytes(part)};
    batch->pages += part->pages;
}

/* Ends a part that went, or did not. Others may have freed all of the rest of its segment
 * meanwhile. */
static void part_end(struct page_heap *page_heap, struct span *part, bool gone)
{
    struct segment *segment = part->segment;
    run_end_busy(page_heap, part, gone ? SPAN_CLEAN : SPAN_DIRTY);
    if (UNLIKELY(segment->used_pages == 0 && page_heap->empty_segments > 1))
        segments_retire(page_heap, segment);
}

/* Returns the pages that went; fewer than all: the provider refused. */
static size_t batch_purge(struct page_heap *page_heap, struct purge_batch *batch)
{
    size_t purged = 0;
    bool apart = unlock_apart(page_heap, batch->pages);
    uint64_t gone = provider_purge_ranges(page_heap->provider, batch->ranges, batch->count);
    lock_again(page_heap, apart);
    for (size_t i = 0; i < batch->count; i++) {
        bool went = gone >> i & 1;
        purged += went ? batch->parts[i]->pages : 0;
        part_end(page_heap, batch->parts[i], went);
    }
    page_heap->purge_refused = purged == 0;
    page_heap->went += purged;
    return purged;
}

enum give { GIVE_PAGES, GIVE_WHOLE, GIVE_WHOLE_LOCKED };

/* Gives a segment of the cache back, or its pages; with the lock held if the caller cannot let it
 * go. False: the provider refused. */
static bool cached_give(struct page_heap *page_heap, struct segment *segment, enum give what)
{
    bool whole = what != GIVE_PAGES;
    size_t huge = segment->huge == HUGE_THERE ? segment->pages : 0;
    segment_cache_remove(&page_heap->cache, segment);
    bool apart = what != GIVE_WHOLE_LOCKED && unlock_apart(page_heap, segment->pages);
    size_t there = segment->dirty_pages;
    if (what == GIVE_WHOLE && segment->pages > options.cache_bytes >> PAGE_SHIFT)
        there = sparse_pages_there(page_heap, segment->start, segment->pages, there);
    bool done = whole ? segments_drop(page_heap, segment) : segments_purge(page_heap, segment);
    lock_again(page_heap, apart);
    if (done) {
        huge_ahead_fewer(page_heap, huge);
        page_heap->went += there;
    }
    if (!whole)
        segment_cache_put_back(&page_heap->cache, segment);
    else if (!done) /* as the newest: others are tried before it is again */
        segment_cache_put(&page_heap->cache, segment, page_heap->now());
    return done;
}

/* ---- What goes next ---- */

/* The dirty run that goes next: the one that was free for the longest time, since what no request
 * took so far, the next will not take either; of short ones the longest. `split`: parts of huge
 * pages may go, too. */
static struct span *find_next(const struct page_heap *page_heap, bool split)
{
    struct span *run = runs_find_oldest(&page_heap->dirty, PURGE_BY_AGE, run_can_go);
    if (run == NULL)
        run = runs_find_long(&page_heap->dirty, UINT32_MAX, 0, run_can_go);
    if (run == NULL && split)
        run = runs_find_long(&page_heap->dirty, UINT32_MAX, 0, NULL);
    return run;
}

/* Takes that out of its bin or, where there are huge pages, the whole ones of it. NULL: there is
 * none, or the system's pages are larger than it, or there is no memory for a descriptor. */
static struct span *take_next(struct page_heap *page_heap, bool split)
{
    struct span *run = find_next(page_heap, split);
    char *start;
    if (run == NULL || system_part(run, &start) == 0)
        return NULL;
    size_t pages = huge_part(run, &start);
    if (run->segment->huge != HUGE_THERE || pages == 0) {
        segment_split_huge(page_heap, run->segment);
        pages = system_part(run, &start);
    }
    return run_part(page_heap, run, start, pages);
}

/* Purges runs, up to a batch of them, until `keep_pages` are kept. This and the next return how
 * many pages were dirty; 0 if the system refused, or nothing can go. */
static size_t purge_runs(struct page_heap *page_heap, size_t keep_pages, bool split)
{
    struct purge_batch batch;
    batch.count = batch.pages = 0;
    size_t most = page_heap->purge_refused ? 1 : OS_RANGES_MOST;
    while (page_heap_kept_pages(page_heap) > keep_pages && batch.count < most &&
           batch.pages < BATCH_LEAST >> PAGE_SHIFT) {
        struct span *part = take_next(page_heap, split);
        if (part == NULL)
            break;
        batch_add(page_heap, &batch, part);
    }
    return batch.count != 0 ? batch_purge(page_heap, &batch) : 0;
}

static size_t purge_cached(struct page_heap *page_heap, struct segment *segment)
{
    size_t pages = segment->dirty_pages;
    bool split = segment->huge == HUGE_SPLIT;
    /* A provider that keeps the pages of what it handed out may take it back as a whole, and have
     * another heap that it is for. */
    bool done = cached_give(page_heap, segment, split ? GIVE_WHOLE : GIVE_PAGES) ||
                cached_give(page_heap, segment, split ? GIVE_PAGES : GIVE_WHOLE);
    return done ? pages : 0;
}

/* The cache's oldest segment with dirty pages, if it goes before all runs: the oldest of them that
 * is long enough to go by age was freed into since that was emptied, or there is none. Else NULL.
 */
static struct segment *next_cached(const struct page_heap *page_heap)
{
    struct segment *segment = segment_cache_oldest_dirty(&page_heap->cache);
    if (segment == NULL)
        return NULL;
    const struct span *run = runs_find_oldest(&page_heap->dirty, PURGE_BY_AGE, run_can_go);
    bool first = run == NULL || (int16_t)(run->freed - segment->freed) >= 0; /* modulo 2^16 */
    return first ? segment : NULL;
}

static size_t purge_down_to(struct page_heap *page_heap, size_t keep_pages, bool split)
{
    size_t purged = 0;
    while (page_heap_kept_pages(page_heap) > keep_pages) {
        struct segment *cached = next_cached(page_heap);
        size_t pages = cached != NULL ? purge_cached(page_heap, cached)
                                      : purge_runs(page_heap, keep_pages, split);
        if (pages == 0)
            break;
        purged += pages;
    }
    return purged;
}

/* ---- The cache of segments ---- */

COLD size_t page_heap_release_cache(struct page_heap *page_heap, size_t refused)
{
    size_t gone = 0;
    struct segment *oldest;
    if (page_heap->cache.count == 0 ||
        !provider_might_take(page_heap->provider, refused, page_heap->cache.pages << PAGE_SHIFT))
        return 0;
    while ((oldest = segment_cache_oldest(&page_heap->cache)) != NULL) {
        size_t pages = oldest->pages;
        if (!cached_give(page_heap, oldest, GIVE_WHOLE_LOCKED))
            break;
        gone += pages;
    }
    page_heap->went = 0; /* they had to go, which tells nothing; so it is below */
    return gone;
}

void page_heap_shrink_cache(struct page_heap *page_heap)
{
    size_t pages = size_max(options.cache_bytes >> PAGE_SHIFT, page_heap->retention.wanted);
    struct segment_cache_bounds bounds = {options.cache_segments, pages,
                                          options_nanoseconds(options.cache_age)};
    if (options.purge_delay == DELAY_NEVER)
        bounds.pages = SIZE_MAX;
    if (page_heap->refused)
        bounds.count = bounds.pages = 0;
    uint64_t now = page_heap->now();
    struct segment *surplus;
    while ((surplus = segment_cache_surplus(&page_heap->cache, &bounds, now)) != NULL) {
        /* If the provider cannot, too many mappings for one, the pages go, later, as others do, and
         * the addresses serve again. */
        if (!cached_give(page_heap, surplus, GIVE_WHOLE))
            return;
        note_went(page_heap);
    }
}

struct span *page_heap_join_recent(struct page_heap *page_heap, char **at)
{
    struct span *own = at != NULL && page_heap->own_turns != 0 ? recent_take_own(page_heap) : NULL;
    bool retired = recent_join(page_heap) | nearby_join_here(page_heap);
    if (own != NULL) { /* the last, or the run may not stay what it is */
        *at = own->start;
        own = recent_join_span(page_heap, own);
        retired |= own == NULL;
    }
    if (!retired)
        return own;
    page_heap_shrink_cache(page_heap);
    return NULL;
}

void page_heap_join_waiting(struct page_heap *page_heap)
{
    bool retired = recent_join(page_heap);
    if (nearby_join(page_heap) || retired)
        page_heap_shrink_cache(page_heap);
}

COLD size_t page_heap_purge(struct page_heap *page_heap, size_t keep_pages)
{
    /* What another thread gives back at this moment has gone then: who needs memory waits for it.
     */
    lock_acquire(&page_heap->purge_lock);
    lock_release(&page_heap->purge_lock);
    lock_acquire(&page_heap->lock);
    page_heap_join_waiting(page_heap);
    /* Segments first: what is unmapped whole need not be purged. */
    size_t gone = 0;
    if (keep_pages == 0) {
        for (struct list *node = page_heap->segments.next; node != &page_heap->segments;) {
            struct segment *segment = CONTAINER_OF(node, struct segment, link);
            node = node->next;
            if (segment->used_pages == 0)
                segments_retire(page_heap, segment);
        }
        gone = page_heap_release_cache(page_heap, 0);
    }
    gone += purge_down_to(page_heap, keep_pages, true);
    page_heap->went = 0;
    lock_release(&page_heap->lock);
    return gone << PAGE_SHIFT;
}

/* ---- The bound ---- */

/* Atomic because page_heap_tick_is_due reads without the lock; relaxed: it is a hint. */
static void set_tick_due(struct page_heap *page_heap, uint64_t due)
{
    int change = (due != UINT64_MAX) - (page_heap->tick_due != UINT64_MAX);
    if (UNLIKELY(change != 0)) /* relaxed: who polls too early ticks a little later */
        __atomic_fetch_add(&events.wanted.ticking, (uint16_t)change, __ATOMIC_RELAXED);
    __atomic_store_n(&page_heap->tick_due, due, __ATOMIC_RELAXED);
}

void page_heap_end_ticks(struct page_heap *page_heap)
{
    page_heap->arenas_due = UINT64_MAX;
    set_tick_due(page_heap, UINT64_MAX);
}

/* The next time at which something is to do even if the program asks for nothing. */
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
    return due < page_heap->arenas_due ? due : page_heap->arenas_due;
}

size_t page_heap_bound(struct page_heap *page_heap)
{
    return retention_bound(&page_heap->retention, base_pages(page_heap),
                           page_heap_in_use_pages(page_heap));
}

/* What the bound depends on, but for the peak, which only grows between ticks, and what cells have
 * idle: an eighth of that is of the base, and it is seen at the next tick. */
static ALWAYS_INLINE struct settled settled_now(const struct page_heap *page_heap)
{
    return (struct settled){
        .kept = page_heap_kept_pages(page_heap),
        .in_use = page_heap_in_use_pages(page_heap),
        .used_kept = page_heap_used_kept(page_heap),
        .wanted = page_heap->retention.wanted,
    };
}

void page_heap_keep_bound(struct page_heap *page_heap)
{
    page_heap_see(page_heap);
    size_t base = base_pages(page_heap), bound = page_heap_bound(page_heap);
    size_t kept = page_heap_kept_pages(page_heap);
    page_heap->settled = settled_now(page_heap);
    if (kept > bound) {
        page_heap->settled.kept = SIZE_MAX;
        page_heap_join_waiting(page_heap);
        purge_down_to(page_heap, bound - size_min(bound, base / PURGE_STEP_SHARE), false);
        /* The rest are parts of huge pages, whose other parts may be free soon. They go when they
         * are many. */
        if (page_heap_kept_pages(page_heap) > KEPT_WITH_PARTS_MOST * bound)
            purge_down_to(page_heap, bound, true);
        note_went(page_heap);
        page_heap_see(page_heap);
    }
    if (kept > base || page_heap->cache.count != 0 || page_heap->tick_due != UINT64_MAX)
        set_tick_due(page_heap, next_tick(page_heap));
}

void page_heap_keep_bound_if_new(struct page_heap *page_heap)
{
    struct settled now = settled_now(page_heap), *settled = &page_heap->settled;
    if (now.kept != settled->kept || now.in_use != settled->in_use ||
        now.used_kept != settled->used_kept || now.wanted != settled->wanted)
        page_heap_keep_bound(page_heap);
}

/* Parts of huge pages that stayed free through an epoch, in which at least `least` pages were kept,
 * go as well. */
static void purge_idle_parts(struct page_heap *page_heap, size_t least)
{
    size_t bound = page_heap_bound(page_heap);
    if (least <= bound || page_heap_kept_pages(page_heap) <= bound)
        return;
    purge_down_to(page_heap, bound, true);
    note_went(page_heap);
}

void page_heap_ask_tick(struct page_heap *page_heap, uint64_t due)
{
    /* relaxed: mostly one comes sooner; if it was just there, the next look asks again */
    if (due >= __atomic_load_n(&page_heap->tick_due, __ATOMIC_RELAXED))
        return;
    lock_acquire(&page_heap->lock);
    if (due < page_heap->arenas_due)
        page_heap->arenas_due = due;
    if (due < page_heap->tick_due)
        set_tick_due(page_heap, due);
    lock_release(&page_heap->lock);
}

bool page_heap_tick(struct page_heap *page_heap)
{
    lock_acquire(&page_heap->lock);
    uint64_t now = page_heap->now();
    bool due = page_heap->tick_due <= now;
    if (due) {
        page_heap->arenas_due = UINT64_MAX; /* their turn is next, and they say when again */
        size_t idle, base = base_pages(page_heap);
        page_heap_join_waiting(page_heap);
        bool over = retention_tick(&page_heap->retention, page_heap_kept_pages(page_heap), base,
                                   page_heap_in_use_pages(page_heap), now, &idle);
        page_heap_shrink_cache(page_heap);
        if (over)
            purge_idle_parts(page_heap, base + idle);
        page_heap_keep_bound(page_heap);
        set_tick_due(page_heap, next_tick(page_heap));
    }
    lock_release(&page_heap->lock);
    return due;
}
