/*
 * Freeing everything at once: a heap is cleared, or ends.
 *
 * The idea: what is in a heap is found by its segments and the spans that tile them, not by its
 * objects; a slab of a hundred objects is one descriptor here.
 *
 * Cost: O(segments + spans), and a page map entry for each page.
 */
#include "meta/page_map.h"
#include "platform/check.h"
#include "span/large.h"

/* Gives all descriptors of a segment back but the first, which is returned; the page map forgets
 * what was there. */
static struct span *segment_empty(struct spans *spans, struct segment *segment)
{
    struct span *first = (struct span *)page_map_entry((uintptr_t)segment->start);
    for (char *at = span_end(first); at < segment_end(segment);) {
        struct span *span = (struct span *)page_map_entry((uintptr_t)at);
        CHECK(span->start == at);
        at = span_end(span);
        meta_give_to(spans->meta, span, span->units * META_LEAST);
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
    page_map_set_entry(run->start, (uintptr_t)run);
    page_map_set_entry(span_end(run) - PAGE_BYTES, (uintptr_t)run);
    runs_add(&spans->dirty, run);
}

void spans_clear(struct spans *spans, size_t keep_pages)
{
    lock_take(&spans->lock);
    large_clear_locked(spans);
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
                meta_give_to(spans->meta, run, run->units * META_LEAST);
                continue;
            }
            list_push(&spans->segments, &segment->link); /* the provider refused */
        }
        kept += pages;
        segment_keep(spans, segment, run);
    }
    lock_release(&spans->lock);
}
