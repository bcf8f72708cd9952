/*
 * Freeing everything at once: a heap is cleared, or ends. And the other way round: a heap gets all
 * its memory at once.
 *
 * The idea: what is in a heap is found by its segments and the spans that tile them, not by its
 * objects; a slab of a hundred objects is one descriptor here. What was never touched is still
 * known to be zero afterwards, and what is kept is what frees one by one would keep: what goes
 * back to the system has to be faulted in again, which costs ten times all that is done here.
 *
 * Cost: O(segments + spans), and a page map entry for each page.
 */
#include "pageheap/large.h"
#include "pageheap/page_heap_parts.h"
#include "platform/check.h"
#include "stats/stats.h"

/* Makes a span, and what follows it up to the next clean run, one dirty run, which is in no bin. */
static void run_of_all(struct page_heap *page_heap, struct span *first)
{
    size_t pages = first->pages;
    while (first->right != NULL && first->right->kind != SPAN_CLEAN) {
        struct span *next = first->right;
        pages += next->pages;
        span_unlink(next);
        descriptor_free(page_heap, next);
    }
    page_map_fill_classes(first->start, pages, 0);
    page_map_fill_entries(first->start, pages, entry_freed(0));
    first->kind = SPAN_DIRTY;
    first->former_bytes = 0;
    first->pages = (uint32_t)pages;
    list_init(&first->link);
}

static void segment_empty(struct page_heap *page_heap, struct segment *segment)
{
    EACH_SPAN(span, segment)
    if (span->kind != SPAN_CLEAN)
        run_of_all(page_heap, span);
    segment->used_pages = 0;
    segment_summarize(segment);
}

bool page_heap_adopt(struct page_heap *page_heap, char *start, size_t bytes)
{
    struct segment *segment = meta_alloc_from(page_heap->meta, sizeof(*segment));
    struct span *run = meta_alloc_from(page_heap->meta, sizeof(*run));
    if (segment == NULL || run == NULL || !page_map_reserve(start, bytes))
        return false; /* what was taken is lost: the heap cannot be made */
    *segment =
        (struct segment){.page_heap = page_heap, .start = start, .pages = bytes >> PAGE_SHIFT};
    *run = (struct span){.start = start,
                         .segment = segment,
                         .pages = (uint32_t)segment->pages,
                         .kind = SPAN_DIRTY,
                         .units = 1};
    lock_acquire(&page_heap->lock);
    span_link_only(run);
    segment_list(page_heap, segment);
    lock_release(&page_heap->lock);
    return true;
}

/* Puts an emptied segment where it belongs: into the list if that has none yet, into the cache, or
 * back to the provider if more would be kept with it than `bound`, in dirty pages. */
static void segment_place(struct page_heap *page_heap, struct segment *segment, bool keep,
                          size_t bound)
{
    size_t dirty = segment->dirty_pages;
    if (!keep || page_heap_kept_pages(page_heap) + dirty > bound) {
        if (segment_drop(page_heap, segment)) {
            retention_released(&page_heap->retention, dirty, page_heap->now());
            return;
        }
        segment->dirty_pages = dirty == 0 ? 0 : (uint32_t)segment->pages;
    }
    if (page_heap->empty_segments == 0) {
        segment_list(page_heap, segment);
    } else {
        segment_cache_put(&page_heap->cache, segment, page_heap->now());
        COUNT(segments_cached, 1);
    }
}

void page_heap_clear(struct page_heap *page_heap, bool keep)
{
    lock_acquire(&page_heap->lock);
    GAUGE_SET(page_heap->used_pages, 0);
    page_heap->shared_pages = 0;
    large_clear_locked(page_heap);
    large_table_clear(&page_heap->large);
    page_heap_list_cached(page_heap);
    runs_init(&page_heap->dirty);
    runs_init(&page_heap->clean);
    GAUGE_SET(page_heap->large_count, 0);
    GAUGE_SET(page_heap->large_requested, 0);
    page_heap->empty_segments = 0;
    size_t bound = page_heap_bound(page_heap);
    for (struct list *node = page_heap->segments.next; node != &page_heap->segments;) {
        struct segment *segment = CONTAINER_OF(node, struct segment, link);
        node = node->next;
        list_remove(&segment->link);
        GAUGE_ADD(page_heap->segment_pages, -segment->pages);
        segment_empty(page_heap, segment);
        segment_place(page_heap, segment, keep, bound);
    }
    if (keep) {
        page_heap_shrink_cache(page_heap, false);
        page_heap_keep_bound(page_heap);
    }
    lock_release(&page_heap->lock);
}
