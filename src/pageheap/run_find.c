/*
 * In which run a span is to lie: dirty memory first, the newest of the cache's segments, a dirty
 * part that can be made long enough; then clean memory, and a segment more. See span.h.
 */
#include "pageheap/page_heap_parts.h"

/* Shorter requests take what is clean: there would be too many of them to search for each. */
enum { WIDEN_LEAST = 32 };

/* And it is not worth it for a dirty part of less than one in so many. */
enum { WIDEN_PART = 32 };

/* A run as a whole, dirty or clean. */
static struct found found_run(struct span *run, size_t pages)
{
    if (run == NULL)
        return (struct found){NULL, 0, NULL};
    bool clean = run->kind == SPAN_CLEAN;
    return (struct found){run, clean ? pages : 0, clean ? run->start : span_end(run)};
}

struct found run_find_kept(struct page_heap *page_heap, size_t pages, size_t alignment)
{
    struct span *run = runs_find(&page_heap->dirty, pages, alignment);
    if (run == NULL && page_heap->cache.dirty_pages != 0 &&
        page_heap_grow_dirty(page_heap, pages + (alignment >> PAGE_SHIFT) - 1))
        run = runs_find(&page_heap->dirty, pages, alignment);
    if (run != NULL || alignment > PAGE_BYTES || pages < WIDEN_LEAST)
        return found_run(run, pages);
    run = runs_find_long(&page_heap->dirty, pages, pages / WIDEN_PART, run_can_widen);
    return run != NULL ? run_widen(page_heap, run, pages) : found_run(NULL, 0);
}

struct found run_find(struct page_heap *page_heap, size_t pages, size_t alignment)
{
    struct found found = run_find_kept(page_heap, pages, alignment);
    if (found.run != NULL)
        return found;
    struct span *run = runs_find(&page_heap->clean, pages, alignment);
    if (run == NULL && page_heap_grow(page_heap, pages + (alignment >> PAGE_SHIFT) - 1))
        run = runs_find(&page_heap->clean, pages, alignment);
    if (run == NULL) /* of a provider whose memory is not zero */
        run = runs_find(&page_heap->dirty, pages, alignment);
    return found_run(run, pages);
}
