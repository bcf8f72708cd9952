/*
 * Buying huge pages. See huge_pages.h.
 */
#include "pageheap/huge_pages.h"

#include "options/options.h"
#include "pageheap/page_heap_purge.h"
#include "pageheap/run_find.h"
#include "pageheap/segments.h"
#include "platform/memory.h"

#define HUGE_PAGES_PAGES (OS_HUGE_PAGE >> PAGE_SHIFT)

/* Pages (machine): made present as small ones to see their price, so many that the system call does
 * not count. */
enum { SMALL_SAMPLE_PAGES = 16 };

/* Pages of slabs and cells that are touched, however little the program writes. */
static size_t filled_pages(const struct page_heap *page_heap)
{
    /* relaxed: cells say it without the lock, and then it is a hint */
    size_t loose = __atomic_load_n(&page_heap->cells_loose, __ATOMIC_RELAXED);
    return page_heap->shared_pages - size_min(page_heap->shared_pages, loose);
}

/* Whether slabs and packed cells have enough for one more huge page ahead of its use. What was
 * bought before waits as dirty memory, and others may take it: it counts as filled when slabs or
 * packed cells took as much dirty memory where huge pages are, or when a segment with some went
 * back as a whole. A purge of parts may be of other memory, and does not count. */
static bool may_be_ahead(const struct page_heap *page_heap)
{
    return page_heap->huge_ahead + HUGE_PAGES_PAGES <= filled_pages(page_heap) / ONE_OF_MANY;
}

static bool may_buy(struct page_heap *page_heap)
{
    return options.huge_pages == HUGE_PAGES_AUTO && page_heap->provider->populate != NULL &&
           may_be_ahead(page_heap) &&
           page_heap_kept_pages(page_heap) + page_heap->busy_pages + HUGE_PAGES_PAGES <=
               page_heap_bound(page_heap);
}

/* Makes part of a clean run present, as a dirty run. Returns the nanoseconds that took; 0: it was
 * not done. The lock is not held meanwhile; afterwards any run may be another. */
static uint64_t run_populate(struct page_heap *page_heap, struct span *run, char *start,
                             size_t pages, bool huge)
{
    const struct provider *provider = page_heap->provider;
    struct span *part = run_part(page_heap, run, start, pages);
    if (part == NULL)
        return 0;
    run_begin_busy(page_heap, part);
    lock_release(&page_heap->lock);
    uint64_t elapsed = provider->populate(provider, start, pages << PAGE_SHIFT, huge);
    if (elapsed == 0)
        provider->purge(provider, start, pages << PAGE_SHIFT); /* there may be some of it */
    lock_acquire(&page_heap->lock);
    run_end_busy(page_heap, part, elapsed != 0 ? SPAN_DIRTY : SPAN_CLEAN);
    return elapsed;
}

/* This and the next return the pages that were bought. */
static size_t buy_small(struct page_heap *page_heap, struct span *run, char *start, size_t pages)
{
    uint64_t elapsed = run_populate(page_heap, run, start, pages, false);
    if (elapsed == 0)
        return 0;
    huge_price_note_small(&page_heap->huge_price, pages, elapsed);
    return pages;
}

static size_t buy_huge(struct page_heap *page_heap, struct span *run, char *start)
{
    struct segment *segment = run->segment;
    bool fresh = start >= page_heap->fresh && start < page_heap->fresh_end;
    page_heap->huge_ahead += HUGE_PAGES_PAGES;
    uint64_t elapsed = run_populate(page_heap, run, start, HUGE_PAGES_PAGES, true);
    /* Left over page tables may keep a huge page out, which says nothing about their price. A
     * refusal for lack of memory counts as the dearest price. */
    bool tells = elapsed == 0 || fresh;
    uint64_t price = elapsed == 0 ? UINT64_MAX : elapsed;
    bool cheap = !tells || huge_price_note_huge(&page_heap->huge_price, HUGE_PAGES_PAGES, price);
    if (cheap)
        segment_set_huge(segment, HUGE_THERE);
    if (elapsed != 0)
        return HUGE_PAGES_PAGES;
    huge_ahead_fewer(page_heap, HUGE_PAGES_PAGES);
    return 0;
}

/* Makes something present where a span of `pages` at `start`, in a clean run, would be, if there is
 * occasion to, and says how many pages it was. True: it was tried, and the runs there are others
 * now. When it is time to measure small pages, the range at hand goes without a huge one: where
 * each is bought there is no other place for that. */
static bool buy_ahead(struct page_heap *page_heap, struct span *run, char *start, size_t pages,
                      size_t *bought)
{
    char *huge = (char *)align_up((uintptr_t)start, OS_HUGE_PAGE);
    if (huge_price_is_stale(&page_heap->huge_price)) {
        size_t sample = bytes_to_pages(
            align_up(size_max(pages, SMALL_SAMPLE_PAGES) << PAGE_SHIFT, os_page_size()));
        char *end = start + (sample << PAGE_SHIFT);
        if (end > huge || end > span_end(run) || (uintptr_t)start % os_page_size() != 0)
            return false;
        *bought = buy_small(page_heap, run, start, sample);
        return true;
    }
    if (huge >= start + (pages << PAGE_SHIFT) || huge + OS_HUGE_PAGE > span_end(run) ||
        !huge_price_try(&page_heap->huge_price))
        return false;
    *bought = buy_huge(page_heap, run, huge);
    return true;
}

/* Finds a run, and says how many of its pages were bought for it. */
static struct found find_or_buy(struct page_heap *page_heap, size_t pages, size_t alignment,
                                size_t *bought)
{
    struct found found = run_find(page_heap, pages, alignment);
    if (found.run == NULL || found.run->kind != SPAN_CLEAN || !may_buy(page_heap))
        return found;
    char *start = (char *)align_up((uintptr_t)found.run->start, alignment);
    return buy_ahead(page_heap, found.run, start, pages, bought)
               ? run_find(page_heap, pages, alignment)
               : found;
}

struct found run_find_packed(struct page_heap *page_heap, size_t pages, size_t alignment)
{
    size_t bought = 0;
    struct found found = find_or_buy(page_heap, pages, alignment, &bought);
    if (found.run != NULL && found.run->segment->huge == HUGE_THERE)
        huge_ahead_fewer(page_heap, pages - found.fresh);
    found.fresh += bought;
    return found;
}
