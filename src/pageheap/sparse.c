/*
 * Looking at blocks that are freed. See sparse.h.
 */
#include "pageheap/sparse.h"

/* Pages (machine): of the middle of a block, so many are looked at, or all. */
enum { SPARSE_WINDOW = 64 };

/* Blocks: so many pass for each look in a row that found what others left. */
enum { SPARSE_WAIT = 4 };

/* What is to be noted after a look at a block, of what was noted before. */
static size_t look(const struct span *span, size_t seen)
{
    size_t pages = size_min(span->pages, SPARSE_WINDOW);
    const char *middle = span->start + ((span->pages - pages) / 2 << PAGE_SHIFT);
    size_t there = os_resident_bytes(middle, pages << PAGE_SHIFT) >> PAGE_SHIFT;
    if (there > pages / SLACK_SHARE)
        return 0;
    /* Nobody left anything, but it is no full block either. */
    return there == 0 && seen < SPARSE_SEEN ? seen : size_min(seen + 1, SPARSE_LONG);
}

void sparse_look(struct page_heap *page_heap, const struct span *span)
{
    /* Where there are huge pages a page is there with its neighbours. */
    if (!page_heap_may_ask(page_heap) || page_heap->scarce || span->segment->huge != HUGE_NONE ||
        !backoff_try(&page_heap->sparse_asked))
        return;
    size_t was = page_heap->sparse_seen, seen = look(span, was);
    /* relaxed: see sparse_alignment */
    __atomic_store_n(&page_heap->sparse_seen, (uint8_t)seen, __ATOMIC_RELAXED);
    if (was == SPARSE_LONG && seen == 0) /* what was missed meanwhile was mostly not there */
        retention_forget(&page_heap->retention);
    backoff_note(&page_heap->sparse_asked, seen != 0);
    if (seen != 0) /* the longer that was so, the less an answer tells */
        page_heap->sparse_asked.wait = SPARSE_WAIT * (uint32_t)seen;
}

size_t sparse_pages_there(const struct page_heap *page_heap, const void *start, size_t pages,
                          size_t dirty)
{
    if (page_heap->provider != &provider_os)
        return dirty;
    return size_min(os_resident_bytes(start, pages << PAGE_SHIFT) >> PAGE_SHIFT, dirty);
}
