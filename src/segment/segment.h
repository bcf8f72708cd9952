/*
 * Segments: the ranges that a heap takes from its provider, some MiB each, and cuts into spans.
 *
 * A segment needs no particular size or alignment, so any range of memory can be one. The page map
 * has its leaves before a segment is used, so that nothing later can fail for their lack.
 */
#ifndef SNUG_SEGMENT_SEGMENT_H
#define SNUG_SEGMENT_SEGMENT_H

#include "base/list.h"
#include "meta/meta.h"
#include "provider/provider.h"

struct spans;

struct segment {
    struct list link;    /* in the heap's list of segments */
    struct spans *spans; /* that it belongs to */
    char *start;
    size_t pages;
    size_t used_pages; /* <= pages: those that belong to slabs and large objects */
};

/* A segment of `pages`, all zero, with its descriptor from `meta`; or NULL. */
struct segment *segment_new(struct spans *spans, const struct provider *provider, struct meta *meta,
                            size_t pages);

/* Gives a segment back. False: the provider refused, and the segment is as before. */
bool segment_free(const struct provider *provider, struct meta *meta, struct segment *segment);

static inline char *segment_end(const struct segment *segment)
{
    return segment->start + (segment->pages << PAGE_SHIFT);
}

#endif
