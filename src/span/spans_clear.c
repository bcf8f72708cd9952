/*
 * Freeing everything at once: a heap is cleared, or ends. And the other way round: a heap gets all
 * its memory at once.
 *
 * The idea: what is in a heap is found by its segments and the spans that tile them, not by its
 * objects; a slab of a hundred objects is one descriptor here.
 *
 * Cost: O(segments + spans), and a page map entry for each page.
 */
#include "platform/check.h"
#include "span/large.h"
#include "span/span_runs.h"

/* Gives all descriptors of a segment back but the first, which is returned; the page map forgets
 * what was there. */
static struct span *segment_empty(struct spans *spans, struct segment *segment)
{
    struct span *first = (struct span *)page_map_entry((uintptr_t)segment->start);
    for (char *at = span_end(first); at < segment_end(segment);) {
        struct span *span = (struct span *)page_map_entry((uintptr_t)at);
        CHECK(span->start == at);
        at = span_end(span);
        descriptor_give(spans, span);
    }
    page_map_fill_classes(segment->start, segment->pages, 0);
    page_map_fill_entries(segment->start, segment->pages, entry_freed(0));
    return first;
}

/* Makes a segment that was emptied one free run. */
static void segment_keep(struct spans *spans, struct segment *segment, struct span *run)
{
    *run = (struct span){.start = segment->start,
                         .segment = segment,
                         .pages = (uint32_t)segment->pages,
                         .kind = SPAN_DIRTY,
                         .units = run->units};
    segment->used_pages = 0;
    spans->empty_segments++;
    run_map(run);
    runs_add(&spans->dirty, run);
}

bool spans_adopt(struct spans *spans, char *start, size_t bytes)
{
    struct segment *segment = meta_take_from(spans->meta, sizeof(*segment));
    struct span *run = meta_take_from(spans->meta, sizeof(*run));
    if (segment == NULL || run == NULL || !page_map_reserve(start, bytes))
        return false; /* what was taken is lost: the heap cannot be made */
    *segment = (struct segment){.spans = spans, .start = start, .pages = bytes >> PAGE_SHIFT};
    run->units = 1;
    lock_take(&spans->lock);
    list_push(&spans->segments, &segment->link);
    spans->segment_pages += segment->pages;
    segment_keep(spans, segment, run);
    lock_release(&spans->lock);
    return true;
}

void spans_clear(struct spans *spans, size_t keep_pages)
{
    lock_take(&spans->lock);
    large_clear_locked(spans);
    spans_list_cached(spans);
    runs_init(&spans->dirty);
    runs_init(&spans->clean);
    GAUGE_SET(spans->used_pages, 0);
    GAUGE_SET(spans->large_count, 0);
    GAUGE_SET(spans->large_requested, 0);
    spans->empty_segments = 0;
    size_t kept = 0;
    for (struct list *node = spans->segments.next; node != &spans->segments;) {
        struct segment *segment = CONTAINER_OF(node, struct segment, link);
        size_t pages = segment->pages;
        node = node->next;
        struct span *run = segment_empty(spans, segment);
        bool drop = kept + pages > keep_pages;
        if (drop) {
            list_remove(&segment->link);
            drop = segment_free(spans->provider, spans->meta, segment);
            if (drop) {
                GAUGE_ADD(spans->segment_pages, -pages);
                descriptor_give(spans, run);
                continue;
            }
            list_push(&spans->segments, &segment->link); /* the provider refused */
        }
        kept += pages;
        segment_keep(spans, segment, run);
    }
    spans_see_demand(spans);
    lock_release(&spans->lock);
}
