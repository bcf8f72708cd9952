/*
 * Spans of which every page will be touched: slabs, which fill in order, and spans of small cells.
 *
 * The idea: where such a span would begin a huge page's range of clean memory, the whole range is
 * made present at once, by a huge page if those are cheap (huge_price.h). What is not taken now is
 * dirty memory from then on, and so the first that is used next; no other kind of request is ever
 * the reason for a huge page. So a program that touches one byte in a thousand has none, and one
 * that fills its memory has hardly any faults.
 *
 * The kernel is told to use a huge page for that range, and then that it should not make others:
 * what is purged later stays away.
 *
 * Cost: at most one huge page is present ahead of its use, and not before slabs and cells take
 * PACKED_SHARE times as much. A huge page takes a third of the time of the faults that it saves.
 */
#include "options/options.h"
#include "pageheap/page_heap_parts.h"
#include "platform/memory.h"

#define HUGE_PAGES_PAGES (OS_HUGE_PAGE >> PAGE_SHIFT)

/* So many times a huge page must be in use already: it is at most a sixteenth more. */
enum { PACKED_SHARE = 16 };

/* What is made present in small pages, to see what they cost: enough that the system call itself
 * does not count. */
enum { SMALL_SAMPLE_PAGES = 16 };

static bool may_buy(const struct page_heap *page_heap)
{
    return options.huge_pages == HUGE_PAGES_AUTO && page_heap->provider->populate != NULL &&
           page_heap->shared_pages / PACKED_SHARE >= HUGE_PAGES_PAGES &&
           page_heap_kept_pages(page_heap) + HUGE_PAGES_PAGES <= page_heap_bound(page_heap);
}

/* Makes part of a clean run present, as a dirty run. Returns the nanoseconds that took; 0: it was
 * not done. */
static uint64_t run_populate(struct page_heap *page_heap, struct span *run, char *start,
                             size_t pages, bool huge)
{
    const struct provider *provider = page_heap->provider;
    struct span *part = descriptor_alloc(page_heap);
    if (part == NULL)
        return 0;
    uint64_t elapsed = provider->populate(provider, start, pages << PAGE_SHIFT, huge);
    if (elapsed == 0 || !run_cut(page_heap, run, part, start, pages)) {
        provider->purge(provider, start, pages << PAGE_SHIFT); /* there may be some of it */
        descriptor_free(page_heap, part);
        return 0;
    }
    part->kind = SPAN_DIRTY;
    part->former_bytes = 0;
    run_settle(page_heap, part);
    return elapsed;
}

static bool buy_small(struct page_heap *page_heap, struct span *run, char *start, size_t pages)
{
    uint64_t elapsed = run_populate(page_heap, run, start, pages, false);
    if (elapsed != 0)
        huge_price_note_small(&page_heap->huge_price, pages, elapsed);
    return elapsed != 0;
}

static bool buy_huge(struct page_heap *page_heap, struct span *run, char *start)
{
    struct segment *segment = run->segment;
    /* Elsewhere page tables may be left over, which keep a huge page out: that says nothing about
     * their price. */
    bool tells = start >= page_heap->fresh && start < page_heap->fresh_end;
    uint64_t elapsed = run_populate(page_heap, run, start, HUGE_PAGES_PAGES, true);
    if (elapsed == 0) { /* there is no memory: as dear as can be */
        huge_price_note_huge(&page_heap->huge_price, HUGE_PAGES_PAGES, UINT64_MAX);
        return false;
    }
    if (!tells || huge_price_note_huge(&page_heap->huge_price, HUGE_PAGES_PAGES, elapsed))
        segment_has_huge(segment, true);
    return true;
}

/* Whether something is present now where a span of `pages` at `start`, in a clean run, would be.
 * When it is time to measure small pages, the range at hand goes without a huge one: where each is
 * bought there is no other place for that. */
static bool buy_ahead(struct page_heap *page_heap, struct span *run, char *start, size_t pages)
{
    char *huge = (char *)align_up((uintptr_t)start, OS_HUGE_PAGE);
    if (huge_price_is_stale(&page_heap->huge_price)) {
        size_t sample = size_max(pages, SMALL_SAMPLE_PAGES);
        char *end = start + (sample << PAGE_SHIFT);
        return end <= huge && end <= span_end(run) && buy_small(page_heap, run, start, sample);
    }
    return huge < start + (pages << PAGE_SHIFT) && huge + OS_HUGE_PAGE <= span_end(run) &&
           huge_price_try(&page_heap->huge_price) && buy_huge(page_heap, run, huge);
}

struct found run_find_packed(struct page_heap *page_heap, size_t pages, size_t alignment)
{
    struct found found = run_find(page_heap, pages, alignment);
    if (found.run == NULL || found.run->kind != SPAN_CLEAN || !may_buy(page_heap))
        return found;
    char *start = (char *)align_up((uintptr_t)found.run->start, alignment);
    size_t kept = page_heap_kept_pages(page_heap);
    if (!buy_ahead(page_heap, found.run, start, pages))
        return found;
    struct found bought = run_find(page_heap, pages, alignment);
    bought.fresh += page_heap_kept_pages(page_heap) - kept;
    return bought;
}
