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

/* Ends taking a block back, and releases the lock. */
static void *take_back(struct page_heap *page_heap, struct span *span, size_t bytes)
{
    if (!waiting_is_sound(span))
        return large_alloc_written(page_heap, span, bytes);
    large_request_recent(page_heap, span, bytes);
    lock_release(&page_heap->lock);
    COUNT(large_taken_bytes, bytes);
    return span->start;
}

void *large_alloc_locked(struct page_heap *page_heap, size_t bytes, size_t alignment)
{
    struct span *span = recent_get(page_heap, bytes_to_pages(bytes), alignment);
    if (span == NULL)
        return NULL;
    peak_compare(page_heap);
    if (nearby_is_wanted(page_heap))
        nearby_note(page_heap, span);
    return take_back(page_heap, span, bytes);
}

void *large_alloc_near(struct page_heap *page_heap, size_t bytes, size_t alignment)
{
    struct span *span = nearby_take(page_heap, bytes_to_pages(bytes), alignment);
    if (span == NULL)
        return NULL;
    if (UNLIKELY(span->requested != bytes) || UNLIKELY(!waiting_is_sound(span))) {
        lock_acquire(&page_heap->lock);
        return take_back(page_heap, span, bytes);
    }
    COUNT(large_taken_bytes, bytes);
    return span->start;
}

void *large_alloc_waiting(struct page_heap *page_heap, size_t bytes, size_t alignment)
{
    void *near = nearby_there(page_heap) ? large_alloc_near(page_heap, bytes, alignment) : NULL;
    if (near != NULL)
        return near;
    lock_acquire(&page_heap->lock);
    return large_alloc_locked(page_heap, bytes, alignment);
}
