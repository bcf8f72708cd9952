/*
 * Segments between the list, the cache and the provider. See segments.h.
 */
#include "pageheap/segments.h"

#include "meta/page_map.h"
#include "options/options.h"
#include "pageheap/run.h"
#include "platform/memory.h"
#include "platform/thread.h"
#include "provider/limit.h"
#include "provider/names.h"
#include "stats/stats.h"

/* Pages: a heap doubles by a segment until they are that long, so that large blocks of any length
 * fit into what others left, and so that there are few mappings. */
#define SEGMENT_PAGES_MOST (64 * MIB >> PAGE_SHIFT)

/* Pages: a smaller heap is one of few blocks. A segment that is to have huge pages from the start
 * is not shorter. */
#define SEGMENT_PAGES_SEVERAL (4 * MIB >> PAGE_SHIFT)

/* Nanoseconds (machine): making a page present takes longer than that, and addresses alone, which
 * take some microseconds however many they are, less. */
enum { PRESENT_LEAST = 50 };

/* Notes whether what was mapped since `begin` is in memory at once. */
static void note_present(struct page_heap *page_heap, uint64_t begin, size_t pages)
{
    page_heap->locked = page_heap->now_exact() - begin > pages * PRESENT_LEAST;
}

/* Maps some pages and unmaps them, to see the same of what comes next: the program may have called
 * mlockall since the last segment. */
static void look_present(struct page_heap *page_heap)
{
    const struct provider *provider = page_heap->provider;
    size_t bytes = SEGMENT_PAGES_SEVERAL << PAGE_SHIFT;
    uint64_t begin = page_heap->now_exact();
    void *start = provider->take(provider, bytes, os_page_size());
    if (start == NULL)
        return;
    note_present(page_heap, begin, SEGMENT_PAGES_SEVERAL);
    provider->give(provider, start, bytes);
}

/* Memory that is counted, or there at once, or that others may have as well, is not taken ahead. */
static bool may_take_ahead(struct page_heap *page_heap)
{
    if (page_heap->provider != &provider_os || limit_is_known())
        return false;
    if (page_heap->segment_pages > SEGMENT_PAGES_SEVERAL && !page_heap->locked)
        look_present(page_heap);
    return !page_heap->locked;
}

static size_t pages_wanted(struct page_heap *page_heap, size_t request)
{
    /* A segment is a share of what the heap has, so that the number of segments grows with its
     * logarithm. If the system has no room for so much, segments_grow asks for less. */
    size_t most = may_take_ahead(page_heap) ? SEGMENT_PAGES_MOST : SEGMENT_PAGES_SEVERAL;
    size_t has = page_heap->segment_pages, share = has / SLACK_SHARE;
    if (page_heap->locked)
        share /= SLACK_SHARE;
    size_t least = size_max(size_min(has, most), SEGMENT_PAGES_FIRST);
    if (options.huge_pages == HUGE_PAGES_ALWAYS)
        least = size_max(least, SEGMENT_PAGES_SEVERAL);
    /* A block that takes more than half of the first segment gets one of its own length: so a heap
     * of a few such blocks pays for no more. */
    bool alone = request > SEGMENT_PAGES_FIRST / 2 && has < SEGMENT_PAGES_SEVERAL;
    size_t wanted =
        size_max(alone ? share : size_max(least, share), bytes_to_pages(options.prefault));
    /* A whole number of huge pages: the kernel then begins the segment where one can be. */
    if (wanted > SEGMENT_PAGES_FIRST)
        wanted = align_up(wanted, OS_HUGE_PAGE >> PAGE_SHIFT);
    /* Where what is not used counts, nothing is left over by blocks like this one. */
    if (most == SEGMENT_PAGES_SEVERAL && wanted > request)
        wanted = align_up(wanted - wanted % request, bytes_to_pages(SEGMENT_LEAST));
    return wanted;
}

static size_t segment_bytes(const struct segment *segment)
{
    return segment->pages << PAGE_SHIFT;
}

/* ---- The runs of an empty segment, which are in no bin ---- */

/* Makes all of a segment one run of a kind. */
static struct span *unite(struct page_heap *page_heap, struct segment *segment, enum span_kind kind)
{
    struct span *run = segment->first;
    while (run->right != NULL)
        run_take_in(page_heap, run);
    run->kind = (uint8_t)kind;
    segment->longest = run->pages;
    return run;
}

void segment_summarize(struct segment *segment)
{
    segment->dirty_pages = 0;
    segment->longest = 0;
    EACH_SPAN(run, segment) {
        segment->dirty_pages += run->kind == SPAN_DIRTY ? run->pages : 0;
        segment->longest = (uint32_t)size_max(segment->longest, run->pages);
    }
}

bool segments_purge(struct page_heap *page_heap, struct segment *segment)
{
    char *start = NULL, *end = NULL;
    EACH_SPAN(run, segment) {
        if (run->kind != SPAN_DIRTY)
            continue;
        start = start == NULL ? run->start : start;
        end = span_end(run);
    }
    /* One call purges clean runs in between as well. A segment consists of whole pages of the
     * system. */
    start = (char *)align_down((uintptr_t)start, os_page_size());
    end = (char *)align_up((uintptr_t)end, os_page_size());
    if (!page_heap->provider->purge(page_heap->provider, start, (size_t)(end - start)))
        return false;
    unite(page_heap, segment, SPAN_CLEAN);
    segment->dirty_pages = 0;
    return true;
}

/* ---- Between the list and the cache ---- */

void segments_add(struct page_heap *page_heap, struct segment *segment)
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
        mapping_name(segment->start, segment_bytes(segment), name);
}

void segments_cache(struct page_heap *page_heap, struct segment *segment)
{
    segment->freed = page_heap->dirty.frees;
    segment_cache_put(&page_heap->cache, segment, page_heap->now());
    segment_name(page_heap, segment, "snug cache");
    COUNT(segments_cached, 1);
}

static void count_reused(const struct page_heap *page_heap, const struct segment *segment)
{
    segment_name(page_heap, segment, "snug heap");
    COUNT(segments_reused, 1);
}

void segments_retire(struct page_heap *page_heap, struct segment *segment)
{
    EACH_SPAN(run, segment)
        runs_remove(runs_of(page_heap, run), run);
    list_remove(&segment->link);
    GAUGE_ADD(page_heap->segment_pages, -segment->pages);
    page_heap->empty_segments--;
    segment_summarize(segment);
    /* The page tables that a purge in parts leaves behind would keep huge pages out of it. */
    if (segment->huge != HUGE_SPLIT || segment->dirty_pages != 0 ||
        !segments_drop(page_heap, segment))
        segments_cache(page_heap, segment);
}

/* ---- To and from the provider ---- */

void segment_ask_huge(const struct page_heap *page_heap, struct segment *segment, bool huge)
{
    const struct provider *provider = page_heap->provider;
    bool there = provider->want_huge != NULL &&
                 provider->want_huge(provider, segment->start, segment_bytes(segment), huge);
    segment_set_huge(segment, there ? HUGE_THERE : HUGE_NONE);
}

/* `shared`: it is for many blocks. A program may touch little of a large one. */
static bool segment_take(struct page_heap *page_heap, size_t pages, bool shared)
{
    const struct provider *provider = page_heap->provider;
    struct span *run = descriptor_alloc(page_heap);
    if (run == NULL)
        return false;
    uint64_t begin = page_heap->now_exact();
    struct segment *segment = segment_new(page_heap, provider, page_heap->meta, pages);
    if (pages >= SEGMENT_PAGES_SEVERAL)
        note_present(page_heap, begin, pages);
    if (segment == NULL) {
        descriptor_free(page_heap, run);
        return false;
    }
    span_link_only(run, segment, provider->unclean ? SPAN_DIRTY : SPAN_CLEAN);
    if (shared)
        segment_ask_huge(page_heap, segment, true);
    if (provider->prepare != NULL)
        provider->prepare(provider, segment->start, segment_bytes(segment));
    segments_add(page_heap, segment);
    page_heap->fresh = segment->start;
    page_heap->fresh_end = segment_end(segment);
    return true;
}

bool segments_drop(struct page_heap *page_heap, struct segment *segment)
{
    bool clean = segment->dirty_pages == 0;
    struct span *run = unite(page_heap, segment, clean ? SPAN_CLEAN : SPAN_DIRTY);
    /* This comes before the unmapping: another thread may be given the same addresses at once. */
    page_map_set_entry(run->start, entry_freed(run->former_bytes));
    if (!segment_free(page_heap->provider, page_heap->meta, segment)) {
        segment_summarize(segment);
        return false;
    }
    descriptor_free(page_heap, run);
    return true;
}

/* Puts a segment from the cache into use, for a request of so many pages. */
static bool reuse(struct page_heap *page_heap, struct segment *segment, size_t pages)
{
    if (segment == NULL)
        return false;
    count_reused(page_heap, segment);
    /* The segment is treated as if it were new: it may have been without huge pages, or one
     * block. */
    bool always = options.huge_pages == HUGE_PAGES_ALWAYS;
    bool shared = pages <= segment->pages / 2;
    if (segment->huge == HUGE_BY_SYSTEM || (always && shared && segment->huge != HUGE_THERE))
        segment_ask_huge(page_heap, segment, always);
    segments_add(page_heap, segment);
    return true;
}

/* The same, and notes if the provider refuses: addresses are scarce then. */
static bool segment_take_or_note(struct page_heap *page_heap, size_t pages, bool shared)
{
    bool done = segment_take(page_heap, pages, shared);
    if (!done) {
        page_heap->scarce = true;
        /* relaxed: see sparse_alignment */
        __atomic_store_n(&page_heap->sparse_seen, (uint8_t)0, __ATOMIC_RELAXED);
    }
    return done;
}

bool segments_grow(struct page_heap *page_heap, size_t pages, bool dirty_only)
{
    if (reuse(page_heap, segment_cache_take(&page_heap->cache, pages, dirty_only), pages))
        return true;
    if (dirty_only || page_heap_is_dry(page_heap))
        return false;
    /* If the provider has not that much, half of it, and so on; if it had nothing, no more is asked
     * for than is needed. */
    size_t wanted = page_heap->refused ? 0 : pages_wanted(page_heap, pages);
    size_t least = bytes_to_pages(SEGMENT_LEAST);
    bool grown = false;
    for (; !grown && wanted > pages; wanted = align_down(wanted / 2, least))
        grown = segment_take_or_note(page_heap, wanted, true);
    grown = grown || segment_take_or_note(page_heap, align_up(pages, least), false);
    page_heap->refused = !grown;
    return grown;
}

/* ---- Whole ranges ---- */

/* Makes a cached segment that was taken out a range. */
static void segment_to_range(struct page_heap *page_heap, struct segment *segment)
{
    count_reused(page_heap, segment);
    descriptor_free(page_heap, unite(page_heap, segment, SPAN_CLEAN));
    segment_forget(page_heap->meta, segment);
}

bool segments_alloc_range(struct page_heap *page_heap, struct span *span, size_t bytes,
                          size_t alignment)
{
    size_t pages = bytes >> PAGE_SHIFT;
    struct segment *segment =
        segment_cache_take_whole(&page_heap->cache, pages, pages + pages / SLACK_SHARE, alignment);
    *span = (struct span){.owner = page_heap, .kind = SPAN_HUGE, .units = span->units};
    if (segment != NULL) {
        span->start = segment->start;
        span->pages = (uint32_t)segment->pages;
        span->zero = segment->dirty_pages == 0;
        segment_to_range(page_heap, segment);
    } else {
        span->start = provider_take_block(page_heap->provider, bytes, alignment);
        span->pages = (uint32_t)pages;
        span->zero = !page_heap->provider->unclean;
    }
    return span->start != NULL;
}

void segments_free_range(struct page_heap *page_heap, struct span *span)
{
    const struct provider *provider = page_heap->provider;
    struct segment *segment =
        segment_of_range(page_heap, page_heap->meta, span->start, span->pages);
    if (segment == NULL) {
        if (!provider->give(provider, span->start, span_bytes(span)))
            provider->purge(provider, span->start, span_bytes(span));
        descriptor_free(page_heap, span);
        return;
    }
    segment->huge = provider->take_block != NULL ? HUGE_BY_SYSTEM : HUGE_NONE;
    span_link_only(span, segment, SPAN_DIRTY);
    span->former_bytes = span_bytes(span);
    segment_summarize(segment);
    segments_cache(page_heap, segment);
}
