/*
 * What the short way of large blocks leaves. See large_recent.h.
 */
#include "pageheap/large_recent.h"

void large_request_other(struct page_heap *page_heap, struct span *span, size_t bytes)
{
    large_sizes_change(&page_heap->sizes, span->requested, bytes);
    span->requested = bytes;
    margin_make(page_heap, span, false);
}

COLD void *large_alloc_written(struct page_heap *page_heap, struct span *span, size_t bytes)
{
    struct misuse misuse = waiting_misuse(span);
    large_request_recent(page_heap, span, bytes);
    char *start = span->start;
    lock_release(&page_heap->lock);
    COUNT(large_taken_bytes, bytes);
    misuse_report("malloc", &misuse);
    return start;
}
