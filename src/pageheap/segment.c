/*
 * Taking segments from a provider and giving them back. See segment.h.
 */
#include "pageheap/segment.h"

#include "meta/page_map.h"
#include "platform/memory.h"

struct segment *segment_of_range(struct page_heap *page_heap, struct meta *meta, char *start,
                                 size_t pages)
{
    if (!page_map_reserve(start, pages << PAGE_SHIFT))
        return NULL;
    struct segment *segment = meta_alloc_from(meta, sizeof(*segment));
    if (segment != NULL) {
        *segment = (struct segment){.page_heap = page_heap, .start = start, .pages = pages};
        list_init(&segment->link);
    }
    return segment;
}

struct segment *segment_new(struct page_heap *page_heap, const struct provider *provider,
                            struct meta *meta, size_t pages)
{
    size_t bytes = align_up(pages << PAGE_SHIFT, os_page_size());
    char *start = provider->take(provider, bytes, os_page_size());
    if (start == NULL)
        return NULL;
    struct segment *segment = segment_of_range(page_heap, meta, start, bytes >> PAGE_SHIFT);
    if (segment == NULL)
        provider->give(provider, start, bytes);
    return segment;
}

bool segment_free(const struct provider *provider, struct meta *meta, struct segment *segment)
{
    if (!provider->give(provider, segment->start, segment->pages << PAGE_SHIFT))
        return false;
    segment_forget(meta, segment);
    return true;
}

void segment_forget(struct meta *meta, struct segment *segment)
{
    meta_free_to(meta, segment, sizeof(*segment));
}
