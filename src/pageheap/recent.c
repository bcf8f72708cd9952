/*
 * The blocks that were freed last. See recent.h.
 */
#include "pageheap/recent.h"

#include "pageheap/run.h"
#include "pageheap/segments.h"
#include "pageheap/sparse.h"

bool span_join(struct page_heap *page_heap, struct span *span, enum span_kind kind,
               size_t object_bytes)
{
    struct segment *segment = span->segment;
    segment_count_out(page_heap, segment, span->pages);
    GAUGE_ADD(page_heap->used_pages, -(size_t)span->pages);
    page_heap_note_use(page_heap);
    span->kind = (uint8_t)kind;
    span->former_bytes = object_bytes;
    run_settle(page_heap, span);
    /* The only empty one stays in the list, or a program that goes up and down across its edge
     * would move it to the cache and back at each turn. */
    bool stays = page_heap->empty_segments == 1 && !page_heap->refused;
    if (segment->used_pages != 0 || stays)
        return false;
    segments_retire(page_heap, segment);
    return true;
}

bool recent_join_span(struct page_heap *page_heap, struct span *span)
{
    sparse_look(page_heap, span);
    large_table_remove(&page_heap->large, span);
    large_sizes_change(&page_heap->sizes, span->requested, 0);
    size_t bytes = span->requested; /* joined, it is a link */
    page_heap_note_freed(page_heap, span->start, bytes);
    return span_join(page_heap, span, SPAN_DIRTY, bytes);
}

bool recent_join(struct page_heap *page_heap)
{
    bool retired = false;
    while (page_heap->recent.count != 0)
        retired |= recent_join_span(page_heap, recent_take_out(&page_heap->recent, 0));
    return retired;
}
