/*
 * The segments of a heap: where runs come from, and where they go when a segment is empty.
 *
 * A segment that leaves the list for the cache keeps its runs as they are, in the page map but in
 * no bin; so to put it back is to put its few runs back into the bins. A huge block that is freed
 * becomes a segment of one dirty run in the cache, and a whole cached segment can become a huge
 * block.
 */
#include "options/options.h"
#include "pageheap/page_heap_parts.h"
#include "platform/memory.h"
#include "provider/names.h"
#include "provider/provider.h"
#include "stats/stats.h"

/* A segment is at least this long, and an eighth of what the heap already has if that is more: the
 * number of mappings grows with the logarithm of the heap. */
#define SEGMENT_PAGES (4 * MIB >> PAGE_SHIFT)
/* The first ones are shorter, unless they are to have huge pages: a small program that locks all
 * its memory, or whose address space is limited, pays for all of it. So many pages hold a span of
 * cells and some slabs. */
#define SEGMENT_PAGES_FIRST ((MIB + 256 * KIB) >> PAGE_SHIFT)
/* For a block of this length there may be one that is no longer, so that a small heap of a few such
 * blocks takes no more than they do. */
#define SEGMENT_PAGES_ALONE (MIB >> PAGE_SHIFT)
#define SEGMENT_PAGES_MOST (GIB >> PAGE_SHIFT)
/* So that huge pages fit: the kernel then begins it where one can be. */
#define SEGMENT_PAGES_STEP (OS_HUGE_PAGE >> PAGE_SHIFT)
/* What is tried when there is not room for that. */
#define SEGMENT_PAGES_LEAST (64 * KIB >> PAGE_SHIFT)

static size_t segment_pages_wanted(const struct page_heap *page_heap, size_t request)
{
    size_t share = size_min(page_heap->segment_pages / 8, SEGMENT_PAGES_MOST);
    size_t least = size_min(SEGMENT_PAGES, size_max(SEGMENT_PAGES_FIRST, page_heap->segment_pages));
    if (options.huge_pages == HUGE_PAGES_ALWAYS)
        least = SEGMENT_PAGES;
    bool alone = request >= SEGMENT_PAGES_ALONE && page_heap->segment_pages < 2 * SEGMENT_PAGES;
    return alone ? share : size_max(least, share);
}

/* ---- The runs of an empty segment ---- */

static size_t segment_bytes(const struct segment *segment)
{
    return segment->pages << PAGE_SHIFT;
}

/* Makes all of a segment, whose runs are in no bin, one run of a kind. */
static struct span *segment_unite(struct page_heap *page_heap, struct segment *segment,
                                  enum span_kind kind)
{
    struct span *first = segment->first;
    while (first->right != NULL) {
        struct span *next = first->right;
        first->pages += next->pages;
        span_unlink(next);
        descriptor_free(page_heap, next);
    }
    first->kind = (uint8_t)kind;
    segment->longest = first->pages;
    return first;
}

void segment_summarize(struct segment *segment)
{
    segment->dirty_pages = 0;
    segment->longest = 0;
    EACH_SPAN(run, segment)
    {
        segment->dirty_pages += run->kind == SPAN_DIRTY ? run->pages : 0;
        segment->longest = (uint32_t)size_max(segment->longest, run->pages);
    }
}

bool segment_purge(struct page_heap *page_heap, struct segment *segment)
{
    char *start = NULL, *end = NULL;
    EACH_SPAN(run, segment)
    {
        if (run->kind != SPAN_DIRTY)
            continue;
        start = start == NULL ? run->start : start;
        end = span_end(run);
    }
    /* One call, over clean runs in between as well. A segment consists of whole pages of the
     * system. */
    start = (char *)align_down((uintptr_t)start, os_page_size());
    end = (char *)align_up((uintptr_t)end, os_page_size());
    if (!page_heap->provider->purge(page_heap->provider, start, (size_t)(end - start)))
        return false;
    segment_cache_cleaned(&page_heap->cache, segment);
    segment_unite(page_heap, segment, SPAN_CLEAN);
    return true;
}

/* ---- Between the list and the cache ---- */

void segment_list(struct page_heap *page_heap, struct segment *segment)
{
    list_push(&page_heap->segments, &segment->link);
    GAUGE_ADD(page_heap->segment_pages, segment->pages);
    page_heap_note_peak(page_heap);
    page_heap->empty_segments++;
    EACH_SPAN(run, segment)
    runs_add(runs_of(page_heap, run), run);
}

/* Says in smaps what a segment is now; see SNUG_NAMES. */
static void segment_name(const struct page_heap *page_heap, const struct segment *segment,
                         const char *name)
{
    if (page_heap->provider == &provider_os)
        mapping_name(segment->start, segment->pages << PAGE_SHIFT, name);
}

static void cache_segment(struct page_heap *page_heap, struct segment *segment)
{
    segment_cache_put(&page_heap->cache, segment, page_heap->now());
    segment_name(page_heap, segment, "snug cache");
    COUNT(segments_cached, 1);
    page_heap_shrink_cache(page_heap, false);
}

static void count_reused(const struct page_heap *page_heap, const struct segment *segment)
{
    segment_name(page_heap, segment, "snug heap");
    COUNT(segments_reused, 1);
}

void segment_retire(struct page_heap *page_heap, struct segment *segment)
{
    EACH_SPAN(run, segment)
    runs_remove(runs_of(page_heap, run), run);
    list_remove(&segment->link);
    GAUGE_ADD(page_heap->segment_pages, -segment->pages);
    page_heap->empty_segments--;
    segment_summarize(segment);
    /* The page tables that a purge in parts leaves behind would keep huge pages out of it. */
    if (segment->huge_split && segment->dirty_pages == 0 && segment_drop(page_heap, segment))
        return;
    cache_segment(page_heap, segment);
}

void page_heap_list_cached(struct page_heap *page_heap)
{
    for (;;) {
        struct segment *segment = segment_cache_oldest(&page_heap->cache);
        if (segment == NULL)
            return;
        segment_cache_remove(&page_heap->cache, segment);
        list_push(&page_heap->segments, &segment->link);
        GAUGE_ADD(page_heap->segment_pages, segment->pages);
    }
}

/* ---- To and from the provider ---- */

void segment_want_huge(struct page_heap *page_heap, struct segment *segment, bool huge)
{
    const struct provider *provider = page_heap->provider;
    if (provider->want_huge == NULL)
        return;
    bool has = provider->want_huge(provider, segment->start, segment_bytes(segment), huge);
    segment_has_huge(segment, has);
    segment->undeclined = false;
}

/* `shared`: it is for many blocks. A program may touch little of a large one. */
static bool segment_add(struct page_heap *page_heap, size_t pages, bool shared)
{
    struct span *run = descriptor_alloc(page_heap);
    if (run == NULL)
        return false;
    struct segment *segment = segment_new(page_heap, page_heap->provider, page_heap->meta, pages);
    if (segment == NULL) {
        descriptor_free(page_heap, run);
        return false;
    }
    *run = (struct span){.start = segment->start,
                         .segment = segment,
                         .pages = (uint32_t)segment->pages,
                         .kind = page_heap->provider->unclean ? SPAN_DIRTY : SPAN_CLEAN,
                         .units = run->units};
    span_link_only(run);
    const struct provider *provider = page_heap->provider;
    if (shared)
        segment_want_huge(page_heap, segment, true);
    if (provider->prepare != NULL)
        provider->prepare(provider, segment->start, segment_bytes(segment));
    segment_list(page_heap, segment);
    page_heap->fresh = segment->start;
    page_heap->fresh_end = segment_end(segment);
    return true;
}

bool segment_drop(struct page_heap *page_heap, struct segment *segment)
{
    struct span *run =
        segment_unite(page_heap, segment, segment->dirty_pages == 0 ? SPAN_CLEAN : SPAN_DIRTY);
    /* Before it is unmapped: another thread may be given the same addresses at once. */
    page_map_set_entry(run->start, entry_freed(run->former_bytes));
    if (!segment_free(page_heap->provider, page_heap->meta, segment))
        return false;
    descriptor_free(page_heap, run);
    return true;
}

size_t page_heap_shrink_cache(struct page_heap *page_heap, bool all)
{
    struct segment_cache *cache = &page_heap->cache;
    size_t pages = size_max(options.cache_bytes >> PAGE_SHIFT, page_heap->retention.wanted);
    struct segment_cache_bounds bounds = {options.cache_segments, pages,
                                          options_nanoseconds(options.cache_age)};
    if (options.purge_delay == DELAY_NEVER)
        bounds.pages = SIZE_MAX;
    uint64_t now = page_heap->now();
    size_t gone = 0;
    for (;;) {
        struct segment *segment =
            all ? segment_cache_oldest(cache) : segment_cache_surplus(cache, &bounds, now);
        if (segment == NULL)
            return gone;
        size_t dirty = segment->dirty_pages, length = segment->pages;
        segment_cache_remove(cache, segment);
        if (segment_drop(page_heap, segment)) {
            gone += length;
            if (dirty != 0 && !all)
                retention_released(&page_heap->retention, dirty, now);
            continue;
        }
        /* The provider cannot, too many mappings for one. Then the pages go, later, as others do,
         * and the addresses serve again. */
        segment->dirty_pages = dirty == 0 ? 0 : (uint32_t)segment->pages;
        segment_cache_put(cache, segment, now);
        return gone;
    }
}

/* For a request of so many pages. */
static bool segment_reuse(struct page_heap *page_heap, struct segment *segment, size_t pages)
{
    if (segment == NULL)
        return false;
    count_reused(page_heap, segment);
    /* As if it were new: perhaps it had to do without, or was one block. */
    if (segment->undeclined || (!segment->huge_pages && pages <= segment->pages / 2))
        segment_want_huge(page_heap, segment, options.huge_pages == HUGE_PAGES_ALWAYS);
    segment_list(page_heap, segment);
    return true;
}

bool page_heap_grow_dirty(struct page_heap *page_heap, size_t pages)
{
    return segment_reuse(page_heap, segment_cache_take_dirty(&page_heap->cache, pages), pages);
}

bool page_heap_grow(struct page_heap *page_heap, size_t pages)
{
    if (segment_reuse(page_heap, segment_cache_take(&page_heap->cache, pages), pages))
        return true;
    size_t wanted = segment_pages_wanted(page_heap, pages);
    wanted = size_max(wanted, bytes_to_pages(options.prefault));
    if (wanted > SEGMENT_PAGES_FIRST)
        wanted = align_up(wanted, SEGMENT_PAGES_STEP);
    if (segment_add(page_heap, size_max(pages, wanted), pages <= wanted))
        return true;
    if (segment_add(page_heap, align_up(pages, SEGMENT_PAGES_LEAST), false))
        return true;
    /* Perhaps what waits in the cache, in pieces too small for this, is what is missing. */
    return page_heap->cache.count != 0 && (page_heap_shrink_cache(page_heap, true), true) &&
           segment_add(page_heap, align_up(pages, SEGMENT_PAGES_LEAST), false);
}

void page_heap_prepare(struct page_heap *page_heap)
{
    lock_acquire(&page_heap->lock);
    page_heap_grow(page_heap, 1);
    lock_release(&page_heap->lock);
}

/* ---- Whole ranges ---- */

/* Makes a cached segment that was taken out the range that `span` describes. */
static void segment_to_range(struct page_heap *page_heap, struct segment *segment,
                             struct span *span)
{
    bool zero = segment->dirty_pages == 0;
    descriptor_free(page_heap, segment_unite(page_heap, segment, SPAN_CLEAN));
    *span = (struct span){.start = segment->start,
                          .owner = page_heap,
                          .pages = (uint32_t)segment->pages,
                          .kind = SPAN_HUGE,
                          .zero = zero,
                          .units = span->units};
    segment_forget(page_heap->meta, segment);
}

static bool range_from_provider(struct page_heap *page_heap, struct span *span, size_t bytes,
                                size_t alignment)
{
    char *start = provider_take_block(page_heap->provider, bytes, alignment);
    if (start == NULL && page_heap->cache.count != 0 &&
        provider_might_take(page_heap->provider, bytes, page_heap->cache.pages << PAGE_SHIFT)) {
        page_heap_shrink_cache(page_heap, true);
        start = provider_take_block(page_heap->provider, bytes, alignment);
    }
    if (start == NULL)
        return false;
    *span = (struct span){.start = start,
                          .owner = page_heap,
                          .pages = (uint32_t)(bytes >> PAGE_SHIFT),
                          .kind = SPAN_HUGE,
                          .zero = !page_heap->provider->unclean,
                          .units = span->units};
    return true;
}

bool page_heap_alloc_range(struct page_heap *page_heap, struct span *span, size_t bytes,
                           size_t alignment)
{
    size_t pages = bytes >> PAGE_SHIFT;
    struct segment *segment =
        segment_cache_take_whole(&page_heap->cache, pages, pages + pages / 8, alignment);
    if (segment == NULL)
        return range_from_provider(page_heap, span, bytes, alignment);
    count_reused(page_heap, segment);
    segment_to_range(page_heap, segment, span);
    return true;
}

void page_heap_free_range(struct page_heap *page_heap, struct span *span)
{
    char *start = span->start;
    size_t pages = span->pages;
    struct segment *segment = segment_of_range(page_heap, page_heap->meta, start, pages);
    if (segment == NULL) {
        if (!page_heap->provider->give(page_heap->provider, start, pages << PAGE_SHIFT))
            page_heap->provider->purge(page_heap->provider, start, pages << PAGE_SHIFT);
        descriptor_free(page_heap, span);
        return;
    }
    segment->undeclined = page_heap->provider->take_block != NULL;
    span->kind = SPAN_DIRTY;
    span->segment = segment;
    span->former_bytes = pages << PAGE_SHIFT;
    span_link_only(span);
    segment_summarize(segment);
    cache_segment(page_heap, segment);
}
