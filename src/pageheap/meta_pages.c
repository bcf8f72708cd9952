/*
 * Free pages for descriptors and the table. See meta_pages.h.
 */
#include "pageheap/meta_pages.h"

#include "pageheap/run.h"

/* Pages: so many go at once, or half of them where runs are shorter, and so on. */
enum { META_PAGES = 16 };

/* Takes that many out of a clean run, but so many that `bytes` have room behind their descriptor.
 * NULL: there is no such run. */
static struct span *take_for_good(struct page_heap *page_heap, size_t bytes)
{
    size_t least = bytes_to_pages(bytes + META_LEAST), most = size_max(least, META_PAGES);
    size_t pages = most;
    struct span *run = runs_find(&page_heap->clean, pages, PAGE_BYTES);
    while (run == NULL && pages > least) {
        pages = size_max(pages / 2, least);
        run = runs_find(&page_heap->clean, pages, PAGE_BYTES);
    }
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
    struct meta *meta = page_heap->meta;
    struct span *taken = NULL;
    lock_acquire(&page_heap->lock);
    size_t table = page_heap->large.lacks, block = meta_lacks(meta);
    if (table != 0 && (taken = take_for_good(page_heap, table))) {
        page_heap->large.spare = (struct span **)(taken->start + META_LEAST);
        page_heap->large.lacks = 0;
    } else if (block != 0 && (taken = take_for_good(page_heap, 2 * block - META_LEAST))) {
        /* It begins at a multiple of its length, and none of 4 KiB has room in a page that begins
         * so: pages that do not serve would be asked for one after the other. */
        meta_use_pages(meta, taken->start + META_LEAST, span_end(taken));
    }
    lock_release(&page_heap->lock);
    return taken != NULL;
}
