/*
 * Taking segments from a provider and giving them back. See segment.h.
 */
#include "segment/segment.h"

#include "meta/meta.h"
#include "meta/page_map.h"
#include "platform/memory.h"

struct segment *segment_new(struct spans *spans, const struct provider *provider, struct meta *meta,
                            size_t pages)
{
    struct segment *segment = meta_take_from(meta, sizeof(*segment));
    if (segment == NULL)
        return NULL;
    size_t bytes = align_up(pages << PAGE_SHIFT, os_page_size());
    segment->start = provider->take(provider, bytes, os_page_size());
    if (segment->start == NULL) {
        meta_give_to(meta, segment, sizeof(*segment));
        return NULL;
    }
    segment->pages = bytes >> PAGE_SHIFT;
    segment->used_pages = 0;
    segment->spans = spans;
    list_init(&segment->link);
    if (!page_map_reserve(segment->start, bytes)) {
        segment_free(provider, meta, segment);
        return NULL;
    }
    return segment;
}

bool segment_free(const struct provider *provider, struct meta *meta, struct segment *segment)
{
    if (!provider->give(provider, segment->start, segment->pages << PAGE_SHIFT))
        return false;
    meta_give_to(meta, segment, sizeof(*segment));
    return true;
}
