/*
 * Looking for a run. See run_find.h.
 */
#include "pageheap/run_find.h"

#include "pageheap/page_heap_purge.h"
#include "pageheap/segments.h"
#include "pageheap/sparse.h"

/* One part in: so much of a request must be dirty, and a page at least, to be worth a search for
 * what is beside it. Short requests, of which there are many, make none. */
enum { WIDEN_PART = 32 };

/* A run as a whole, dirty or clean. */
static struct found found_run(struct span *run, size_t pages)
{
    if (run == NULL)
        return (struct found){NULL, 0, NULL};
    bool clean = run->kind == SPAN_CLEAN;
    return (struct found){run, clean ? pages : 0, clean ? run->start : span_end(run)};
}

/* In so many pages, `pages` fit at a multiple of `alignment` wherever they begin. */
static size_t with_alignment(size_t pages, size_t alignment)
{
    return pages + (alignment >> PAGE_SHIFT) - 1;
}

/* Not short blocks that stay empty (sparse.h): they begin where others began, and what others left
 * in between goes with each purge that widening would spare. In long ones it is little. */
static bool may_widen(const struct page_heap *page_heap, size_t pages, size_t alignment)
{
    return pages >= WIDEN_PART && (alignment == PAGE_BYTES || alignment >= OS_HUGE_PAGE ||
                                   page_heap->sparse_seen < SPARSE_SEEN);
}

struct span *run_find_dirty(struct page_heap *page_heap, size_t pages, size_t alignment)
{
    struct span *run = runs_find(&page_heap->dirty, pages, alignment);
    if (run == NULL && page_heap->cache.dirty_pages != 0 &&
        segments_grow(page_heap, with_alignment(pages, alignment), true))
        run = runs_find(&page_heap->dirty, pages, alignment);
    return run;
}

struct found run_find_kept(struct page_heap *page_heap, size_t pages, size_t alignment)
{
    struct span *run = run_find_dirty(page_heap, pages, alignment);
    if (run != NULL || !may_widen(page_heap, pages, alignment))
        return found_run(run, pages);
    run = runs_find_long(&page_heap->dirty, with_alignment(pages, alignment), pages / WIDEN_PART,
                         run_can_widen);
    return run != NULL ? run_widen(page_heap, run, pages, alignment) : found_run(NULL, 0);
}

/* The provider may lack just the memory that waits in the cache, in pieces too small for this. */
static bool grow(struct page_heap *page_heap, size_t pages)
{
    return segments_grow(page_heap, pages, false) ||
           (page_heap_release_cache(page_heap, pages << PAGE_SHIFT) &&
            segments_grow(page_heap, pages, false));
}

struct found run_find(struct page_heap *page_heap, size_t pages, size_t alignment)
{
    struct found found = run_find_kept(page_heap, pages, alignment);
    if (found.run != NULL)
        return found;
    struct span *run = runs_find(&page_heap->clean, pages, alignment);
    if (run == NULL && grow(page_heap, with_alignment(pages, alignment)))
        run = runs_find(&page_heap->clean, pages, alignment);
    if (run == NULL) /* of a provider whose memory is not zero */
        run = runs_find(&page_heap->dirty, pages, alignment);
    return found_run(run, pages);
}
