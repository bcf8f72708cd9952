/*
 * Walking all spans of a heap: every invariant of span.h and segment_cache.h, or the first that
 * does not hold.
 */
#include "platform/check.h"
#include "span/span_runs.h"

static const char *segment_check(const struct segment *segment, size_t pages[3])
{
    size_t used = 0;
    int previous = -1;
    for (char *at = segment->start; at < segment_end(segment);) {
        uintptr_t entry = page_map_entry((uintptr_t)at);
        if (!entry_is_span(entry))
            return check_found(at, "a page of a segment belongs to no span");
        const struct span *span = (const struct span *)entry;
        if (span->start != at || span->segment != segment || span->pages == 0)
            return check_found(at, "spans do not tile their segment");
        if (page_map_entry((uintptr_t)span_end(span) - PAGE_BYTES) != entry)
            return check_found(at, "a span's last page leads elsewhere");
        if (span_is_free(span) && span->kind == previous)
            return check_found(at, "two free runs of a kind side by side");
        previous = span->kind;
        pages[span_is_free(span) ? span->kind : 2] += span->pages;
        if (!span_is_free(span))
            used += span->pages;
        at = span_end(span);
    }
    return used == segment->used_pages ? NULL : "a segment's count of used pages is wrong";
}

/* What the segments in the cache say of themselves. */
static const char *cache_check(const struct segment_cache *cache)
{
    const char *wrong = segment_cache_check(cache);
    LIST_EACH(node, &cache->list)
    {
        const struct segment *segment = CONTAINER_OF(node, struct segment, link);
        size_t pages[3] = {0, 0, 0};
        if (wrong == NULL)
            wrong = segment_check(segment, pages);
        if (wrong == NULL && pages[SPAN_DIRTY] != segment->dirty_pages)
            wrong = "a segment's count of dirty pages is wrong";
    }
    return wrong;
}

const char *spans_check(struct spans *spans)
{
    lock_take(&spans->lock);
    size_t pages[3] = {0, 0, 0};
    const char *wrong = NULL;
    size_t empty = 0;
    LIST_EACH(node, &spans->segments)
    {
        const struct segment *segment = CONTAINER_OF(node, struct segment, link);
        empty += segment->used_pages == 0;
        if (wrong == NULL)
            wrong = segment_check(segment, pages);
    }
    if (wrong == NULL && (pages[SPAN_DIRTY] != spans->dirty.pages ||
                          pages[SPAN_CLEAN] != spans->clean.pages || pages[2] != spans->used_pages))
        wrong = "the page counts of the runs are wrong";
    if (wrong == NULL && pages[0] + pages[1] + pages[2] != spans->segment_pages)
        wrong = "used + dirty + clean pages are not those of the segments";
    if (wrong == NULL && empty != spans->empty_segments)
        wrong = "the count of empty segments is wrong";
    if (wrong == NULL)
        wrong = cache_check(&spans->cache);
    lock_release(&spans->lock);
    return wrong;
}
