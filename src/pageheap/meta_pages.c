/*
 * Free pages for descriptors and the table. See meta_pages.h.
 */
#include "pageheap/meta_pages.h"

#include "pageheap/run.h"

/* Pages: so many go at once, or half of them where runs are shorter, and so on. */
enum { META_PAGES = 16 };

/* Takes that many out of a clean run, but `least` at least. NULL: there is no such run. */
static struct span *take_for_good(struct page_heap *page_heap, size_t least)
{
    size_t most = size_max(least, META_PAGES);
    struct span *run = NULL;
    for (size_t pages = most; run == NULL && pages >= least; pages /= 2)
        run = runs_find(&page_heap->clean, pages, PAGE_BYTES);
    if (run == NULL)
        return NULL;
    struct span *taken = (struct span *)run->start;
    taken->units = 1;
    run_cut(page_heap, run, taken, run->start, size_min(run->pages, most));
    run_begin_busy(page_heap, taken);
    return taken;
}

bool page_heap_feed_meta(struct page_heap *page_heap)
{
    struct span *taken = NULL;
    lock_acquire(&page_heap->lock);
    size_t lacks = page_heap->large.lacks;
    if (lacks != 0 && (taken = take_for_good(page_heap, bytes_to_pages(lacks + META_LEAST)))) {
        page_heap->large.spare = (struct span **)(taken->start + META_LEAST);
        page_heap->large.lacks = 0;
    } else if (meta_is_refused(page_heap->meta) && (taken = take_for_good(page_heap, 1))) {
        meta_use_pages(page_heap->meta, taken->start + META_LEAST, span_end(taken));
    }
    lock_release(&page_heap->lock);
    return taken != NULL;
}
