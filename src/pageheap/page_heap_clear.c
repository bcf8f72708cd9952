/*
 * Freeing everything at once: a heap is cleared, or ends.
 *
 * The idea: what is in a heap is found by its segments and the spans that tile them, not by its
 * objects; a slab of a hundred objects is one descriptor here. What was never touched is still
 * known to be zero afterwards, and what is kept is what frees one by one would keep: what goes
 * back to the system has to be faulted in again, which costs ten times all that is done here.
 *
 * Cost: O(segments + spans), and a page map entry for each page.
 */
#include <string.h>

#include "meta/page_map.h"
#include "pageheap/large.h"
#include "pageheap/page_heap.h"
#include "pageheap/run.h"
#include "pageheap/segments.h"

/* Makes a span, and what follows it up to the next clean run, one dirty run, which is in no bin. */
static void run_of_all(struct page_heap *page_heap, struct span *first)
{
    while (first->right != NULL && first->right->kind != SPAN_CLEAN)
        run_take_in(page_heap, first);
    page_map_fill_classes(first->start, first->pages, 0);
    page_map_fill_entries(first->start, first->pages, entry_freed(0));
    first->kind = SPAN_DIRTY;
    first->former_bytes = 0;
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

/* Puts an emptied segment where it belongs: into the list if that has none yet, into the cache, or
 * back to the provider if more would be kept with it than `bound`, in dirty pages. */
static void segment_place(struct page_heap *page_heap, struct segment *segment, bool keep,
                          size_t bound)
{
    size_t dirty = segment->dirty_pages;
    bool stays = keep && page_heap_kept_pages(page_heap) + dirty <= bound;
    if (!stays && segments_drop(page_heap, segment)) {
        retention_released(&page_heap->retention, dirty, page_heap->now());
    } else if (!keep) { /* the heap ends: it loses addresses, but no memory */
        if (dirty != 0)
            segments_purge(page_heap, segment);
    } else if (page_heap->empty_segments == 0) {
        segments_add(page_heap, segment);
    } else {
        segments_cache(page_heap, segment);
    }
}

/* Moves all segments of the cache to the list, their runs into no bin. */
static void list_cached(struct page_heap *page_heap)
{
    struct segment *segment;
    while ((segment = segment_cache_oldest(&page_heap->cache)) != NULL) {
        segment_cache_remove(&page_heap->cache, segment);
        list_push(&page_heap->segments, &segment->link);
        GAUGE_ADD(page_heap->segment_pages, segment->pages);
    }
}

void page_heap_clear(struct page_heap *page_heap, bool keep)
{
    lock_acquire(&page_heap->lock);
    GAUGE_SET(page_heap->used_pages, 0);
    GAUGE_SET(page_heap->recent.count, 0);
    GAUGE_SET(page_heap->recent.pages, 0);
    page_heap->shared_pages = 0;
    page_heap->cells_kept = 0;
    page_heap->cells_idle = 0;
    page_heap->cells_loose = 0;
    page_heap->huge_ahead = 0;
    large_clear_locked(page_heap);
    large_table_clear(&page_heap->large);
    page_heap_note_use(page_heap);
    list_cached(page_heap);
    runs_init(&page_heap->dirty);
    runs_init(&page_heap->clean);
    memset(&page_heap->sizes, 0, sizeof(page_heap->sizes));
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
        page_heap_shrink_cache(page_heap);
        page_heap_keep_bound(page_heap);
    } else {
        page_heap_end_ticks(page_heap);
    }
    lock_release(&page_heap->lock);
}
