/*
 * The short way of large blocks: taking one that was freed last (recent.h), and freeing one so that
 * it waits. The rest is done in large_recent.c and large.c.
 *
 * Cost: one lock, a look through RECENT_MOST blocks at most.
 */
#ifndef SNUG_PAGEHEAP_LARGE_RECENT_H
#define SNUG_PAGEHEAP_LARGE_RECENT_H

#include "pageheap/large_margin.h"
#include "pageheap/nearby.h"
#include "pageheap/page_heap_purge.h"
#include "pageheap/recent.h"
#include "stats/stats.h"

/* Makes a block that was taken back, and had another length, one of so many bytes. */
void large_request_other(struct page_heap *page_heap, struct span *span, size_t bytes);

/* The same of any length. */
static inline void large_request_recent(struct page_heap *page_heap, struct span *span,
                                        size_t bytes)
{
    if (UNLIKELY(span->requested != bytes))
        large_request_other(page_heap, span, bytes);
    page_heap_see(page_heap);
}

/* The rest of large_alloc_recent where the block was written to while it waited: releases the lock,
 * and reports that. */
void *large_alloc_written(struct page_heap *page_heap, struct span *span, size_t bytes);

/* The same of a block that waits near the processor; NULL if there is none. No lock is held. */
void *large_alloc_near(struct page_heap *page_heap, size_t bytes, size_t alignment);

/* The same of those that wait in the page heap; the lock must be held. NULL: there is none, and the
 * lock is still held. */
void *large_alloc_locked(struct page_heap *page_heap, size_t bytes, size_t alignment);

/* A block of exactly as many pages as `bytes` take, at a multiple of `alignment`, that was freed
 * last. Where there are threads one that waits near the processor comes first. NULL: there is none,
 * and the lock is held now. */
static ALWAYS_INLINE void *large_alloc_recent(struct page_heap *page_heap, size_t bytes,
                                              size_t alignment)
{
    if (!lock_acquire_alone(&page_heap->lock)) {
        if (nearby_there(page_heap)) {
            void *near = large_alloc_near(page_heap, bytes, alignment);
            if (near != NULL)
                return near;
        }
        lock_acquire_shared(&page_heap->lock);
        if (UNLIKELY(nearby_is_wanted(page_heap)))
            return large_alloc_locked(page_heap, bytes, alignment);
    }
    struct span *span = recent_get(page_heap, bytes_to_pages(bytes), alignment);
    if (UNLIKELY(span == NULL))
        return NULL;
    peak_compare(page_heap);
    if (UNLIKELY(!waiting_is_sound(span)))
        return large_alloc_written(page_heap, span, bytes);
    large_request_recent(page_heap, span, bytes);
    lock_release(&page_heap->lock);
    COUNT(large_taken_bytes, bytes);
    if (span->start == NULL) /* callers then ask once only */
        __builtin_unreachable();
    return span->start; /* it is the caller's now, and stays so */
}

/* The same, where that is asked for seldom. */
void *large_alloc_waiting(struct page_heap *page_heap, size_t bytes, size_t alignment);

/* Frees a large block of a heap that is not compact, so that it waits. The lock must be held. */
static ALWAYS_INLINE void large_put_recent(struct page_heap *page_heap, struct span *span)
{
    waiting_seal(span);
    if (UNLIKELY(recent_put(page_heap, span)))
        page_heap_shrink_cache(page_heap);
    if (UNLIKELY(page_heap->refused))
        page_heap_join_recent(page_heap, NULL);
    page_heap_note_put(page_heap);
}

/* Frees the block at `address`, so that it waits. False, and nothing is changed: it is none of this
 * heap's, or one that cannot wait, or is not found at once, or was written past its end. */
static ALWAYS_INLINE bool large_free_recent(struct page_heap *page_heap, uintptr_t address)
{
    if (!lock_acquire_alone(&page_heap->lock)) {
        if (nearby_there(page_heap) && nearby_put(page_heap, address))
            return true;
        lock_acquire_shared(&page_heap->lock);
        recent_note_home(page_heap);
    }
    struct span *span = large_table_at_home(&page_heap->large, (const char *)address);
    bool done = span != NULL && span->start == (const char *)address && span->kind == SPAN_LARGE &&
                block_is_live(span, true) && margin_is_sound(page_heap, span);
    if (UNLIKELY(!done)) {
        lock_release(&page_heap->lock);
        return false;
    }
    large_put_recent(page_heap, span);
    lock_release(&page_heap->lock);
    return true;
}

#endif
