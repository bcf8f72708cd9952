/*
 * Walking all spans of a page heap: every invariant of span.h, page_heap_state.h and
 * segment_cache.h, or the first that does not hold.
 */
#include "meta/page_map.h"
#include "pageheap/nearby.h"
#include "pageheap/page_heap.h"
#include "platform/check.h"

/* Checks that a span in use is found by its address. */
static const char *span_check(const struct span *span)
{
    const struct page_heap *page_heap = span->segment->page_heap;
    if ((span->kind == SPAN_LARGE || span->kind == SPAN_RECENT) && !page_heap->compact)
        return large_table_find(&page_heap->large, span->start) == span
                   ? NULL
                   : check_found(span->start, "a large block is not in the table");
    bool leads = span_is_used(span) || span->kind == SPAN_RECENT;
    /* The last page of a slab is checked as well: no object can be the buffer of another heap. */
    size_t last = !leads ? 0 : span->kind == SPAN_SLAB ? span->pages : 1;
    for (size_t i = 0; i < last; i += size_max(span->pages - 1, 1))
        if (page_map_entry((uintptr_t)span->start + (i << PAGE_SHIFT)) != (uintptr_t)span)
            return check_found(span->start, "a page of a span leads elsewhere");
    return NULL;
}

/* Layout: of counts of pages. Those of what is not in use stand at its kind; */
enum {
    PAGES_USED = SPAN_BUSY + 1, /* those of all that is no run, */
    PAGES_SHARED,               /* and of these, those of slabs and spans of cells; */
    BYTES_LARGE,                /* and the bytes that were asked for in large and recent blocks */
    PAGE_COUNTS
};

static const char *segment_check(const struct segment *segment, size_t pages[PAGE_COUNTS])
{
    size_t used = 0;
    const struct span *left = NULL;
    char *at = segment->start;
    EACH_SPAN(span, segment) {
        if (span->start != at || span->segment != segment || span->pages == 0 || span->left != left)
            return check_found(at, "spans do not tile their segment");
        const char *wrong = span_check(span);
        if (wrong != NULL)
            return wrong;
        if (span_is_free(span) && left != NULL && span->kind == left->kind)
            return check_found(at, "two free runs of a kind side by side");
        if (!span_is_used(span))
            pages[span->kind] += span->pages;
        if (!span_is_free(span))
            used += span->pages;
        if (span->kind == SPAN_SLAB || span->kind == SPAN_CELLS)
            pages[PAGES_SHARED] += span->pages;
        if (span->kind == SPAN_LARGE || span->kind == SPAN_RECENT)
            pages[BYTES_LARGE] += span->requested;
        at = span_end(span);
        left = span;
    }
    if (at != segment_end(segment))
        return check_found(at, "spans do not tile their segment");
    pages[PAGES_USED] += used;
    return used == segment->used_pages ? NULL : "a segment's count of used pages is wrong";
}

/* What the segments in the cache say of themselves. */
static const char *cache_check(const struct segment_cache *cache)
{
    const char *wrong = segment_cache_check(cache);
    LIST_EACH(node, &cache->list) {
        const struct segment *segment = CONTAINER_OF(node, struct segment, link);
        size_t pages[PAGE_COUNTS] = {0};
        if (wrong == NULL)
            wrong = segment_check(segment, pages);
        if (wrong == NULL && pages[SPAN_DIRTY] != segment->dirty_pages)
            wrong = "a segment's count of dirty pages is wrong";
    }
    return wrong;
}

/* Checks that the blocks freed last are those in the list. `pages`: as the segments have them. */
static const char *recent_check(const struct recent *recent, size_t pages)
{
    size_t sum = 0;
    if (recent->count > RECENT_MOST)
        return "there are more recent blocks than there may be";
    for (unsigned i = 0; i < recent->count; i++) {
        if (recent->spans[i]->kind != SPAN_RECENT)
            return check_found(recent->spans[i]->start, "a recent block is in use");
        if (recent->spans[i]->requested != recent->requested[i])
            return check_found(recent->spans[i]->start, "a recent block has another size");
        sum += recent->spans[i]->pages;
    }
    return sum == recent->pages && sum == pages ? NULL : "the pages of recent blocks are wrong";
}

/* Checks what is known or waits near processors. */
static const char *nearby_check(struct page_heap *page_heap, struct nearby *nearby)
{
    const struct recent *recent = &nearby->recent;
    size_t sum = 0;
    for (unsigned i = 0; i < recent->count; i++) {
        const struct span *span = recent->spans[i];
        if (nearby_of(span) != nearby || span->requested != recent->requested[i])
            return check_found(span->start, "a block that waits near a processor is none there");
        sum += span->pages;
    }
    for (unsigned i = 0; i < 1u << NEARBY_KNOWN_LOG; i++) {
        const struct span *span = nearby->known[i];
        if (span != NULL && (nearby_of(span) != nearby || nearby_has(nearby, span) ||
                             large_table_find(&page_heap->large, span->start) != span))
            return check_found(span->start, "a block that a processor knows is not live");
    }
    return sum == recent->pages ? NULL : "the pages that wait near a processor are wrong";
}

static const char *nearby_check_all(struct page_heap *page_heap)
{
    const char *wrong = NULL;
    for (size_t i = 0; i < nearby_count(page_heap) && wrong == NULL; i++) {
        lock_acquire(&page_heap->nearby[i].lock);
        wrong = nearby_check(page_heap, &page_heap->nearby[i]);
        lock_release(&page_heap->nearby[i].lock);
    }
    return wrong;
}

/* Checks that the rows of large blocks add up. `bytes`: of those in the segments. */
static const char *sizes_check(const struct page_heap *page_heap, size_t bytes)
{
    size_t huge = 0, rows = 0;
    for (const struct span *span = page_heap->huge; span != NULL; span = span->right)
        huge += span->requested;
    for (size_t row = 0; row < LARGE_ROWS; row++)
        rows += page_heap->sizes.bytes[row];
    return huge == page_heap->huge_requested && rows == huge + bytes
               ? NULL
               : "the rows of large blocks are wrong";
}

const char *page_heap_check(struct page_heap *page_heap)
{
    lock_acquire(&page_heap->lock);
    size_t pages[PAGE_COUNTS] = {0};
    const char *wrong = NULL;
    size_t empty = 0;
    LIST_EACH(node, &page_heap->segments) {
        const struct segment *segment = CONTAINER_OF(node, struct segment, link);
        empty += segment->used_pages == 0;
        if (wrong == NULL)
            wrong = segment_check(segment, pages);
    }
    if (wrong == NULL && (pages[SPAN_DIRTY] != page_heap->dirty.pages ||
                          pages[SPAN_CLEAN] != page_heap->clean.pages ||
                          pages[PAGES_USED] - pages[SPAN_BUSY] != page_heap->used_pages))
        wrong = "the page counts of the runs are wrong";
    if (wrong == NULL && pages[SPAN_BUSY] != page_heap->busy_pages)
        wrong = "the count of pages that are being made present is wrong";
    if (wrong == NULL)
        wrong = recent_check(&page_heap->recent, pages[SPAN_RECENT]);
    if (wrong == NULL &&
        pages[SPAN_DIRTY] + pages[SPAN_CLEAN] + pages[PAGES_USED] != page_heap->segment_pages)
        wrong = "used + dirty + clean pages are not those of the segments";
    if (wrong == NULL && pages[PAGES_SHARED] != page_heap->shared_pages)
        wrong = "the count of pages for slabs and cells is wrong";
    if (wrong == NULL && empty != page_heap->empty_segments)
        wrong = "the count of empty segments is wrong";
    if (wrong == NULL)
        wrong = nearby_check_all(page_heap);
    if (wrong == NULL)
        wrong = sizes_check(page_heap, pages[BYTES_LARGE]);
    if (wrong == NULL)
        wrong = cache_check(&page_heap->cache);
    lock_release(&page_heap->lock);
    return wrong;
}
