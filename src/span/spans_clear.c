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
#include "platform/check.h"
#include "span/large.h"
#include "span/span_runs.h"
#include "stats/stats.h"

/* Makes a span, and what follows it up to the next clean run, one dirty run, which is in no bin. */
static void run_of_all(struct spans *spans, struct span *first)
{
    size_t pages = first->pages;
    while (first->right != NULL && first->right->kind != SPAN_CLEAN) {
        struct span *next = first->right;
        pages += next->pages;
        span_unlink(next);
        descriptor_give(spans, next);
    }
    page_map_fill_classes(first->start, pages, 0);
    page_map_fill_entries(first->start, pages, entry_freed(0));
    first->kind = SPAN_DIRTY;
    first->former_bytes = 0;
    first->pages = (uint32_t)pages;
    list_init(&first->link);
}

static void segment_empty(struct spans *spans, struct segment *segment)
{
    EACH_SPAN(span, segment)
    if (span->kind != SPAN_CLEAN)
        run_of_all(spans, span);
    segment->used_pages = 0;
    segment_summarize(segment);
}

bool spans_adopt(struct spans *spans, char *start, size_t bytes)
{
    struct segment *segment = meta_take_from(spans->meta, sizeof(*segment));
    struct span *run = meta_take_from(spans->meta, sizeof(*run));
    if (segment == NULL || run == NULL || !page_map_reserve(start, bytes))
        return false; /* what was taken is lost: the heap cannot be made */
    *segment = (struct segment){.spans = spans, .start = start, .pages = bytes >> PAGE_SHIFT};
    *run = (struct span){.start = start,
                         .segment = segment,
                         .pages = (uint32_t)segment->pages,
                         .kind = SPAN_DIRTY,
                         .units = 1};
    lock_take(&spans->lock);
    span_link_only(run);
    segment_list(spans, segment);
    lock_release(&spans->lock);
    return true;
}

/* Puts an emptied segment where it belongs: into the list if that has none yet, into the cache, or
 * back to the provider if more would be kept with it than `bound`, in dirty pages. */
static void segment_place(struct spans *spans, struct segment *segment, bool keep, size_t bound)
{
    size_t dirty = segment->dirty_pages;
    if (!keep || spans_kept_pages(spans) + dirty > bound) {
        if (segment_drop(spans, segment)) {
            demand_purged(&spans->demand, dirty, spans->now());
            return;
        }
        segment->dirty_pages = dirty == 0 ? 0 : (uint32_t)segment->pages;
    }
    if (spans->empty_segments == 0) {
        segment_list(spans, segment);
    } else {
        segment_cache_put(&spans->cache, segment, spans->now());
        COUNT(segments_cached, 1);
    }
}

void spans_clear(struct spans *spans, bool keep)
{
    lock_take(&spans->lock);
    GAUGE_SET(spans->used_pages, 0);
    spans->shared_pages = 0;
    large_clear_locked(spans);
    large_table_clear(&spans->large);
    spans_list_cached(spans);
    runs_init(&spans->dirty);
    runs_init(&spans->clean);
    GAUGE_SET(spans->large_count, 0);
    GAUGE_SET(spans->large_requested, 0);
    spans->empty_segments = 0;
    size_t bound = spans_bound(spans);
    for (struct list *node = spans->segments.next; node != &spans->segments;) {
        struct segment *segment = CONTAINER_OF(node, struct segment, link);
        node = node->next;
        list_remove(&segment->link);
        GAUGE_ADD(spans->segment_pages, -segment->pages);
        segment_empty(spans, segment);
        segment_place(spans, segment, keep, bound);
    }
    if (keep) {
        spans_shrink_cache(spans, false);
        spans_keep_bound(spans);
    }
    lock_release(&spans->lock);
}
