/*
 * Where another process finds what it may look at: one constant structure, to which a note in the
 * ELF file leads (name "snug", type 1, contents: the distance from there to the anchor). Notes are
 * mapped with the program and survive stripping and static linking, so all that is needed to look
 * into a running program is the right to read its memory; no file of it, and nothing that it does.
 *
 * `layout` is a fingerprint of the structures that are looked at. A tool that was built with others
 * must not guess.
 */
#ifndef SNUG_REPORT_ANCHOR_H
#define SNUG_REPORT_ANCHOR_H

#include "heap/heap.h"
#include "options/options.h"
#include "platform/memory.h"
#include "stats/event.h"
#include "stats/stats.h"

#define ANCHOR_MAGIC "snug-heap"

struct anchor {
    char magic[12];
    uint32_t layout;
    char version[16];
    const struct heap *heap;
    const struct counters *counters;
    const struct samples *samples;
    const uint64_t *lock_waits;
    const struct os_calls *os_calls;
    struct page_map_node *const *page_map;
    const struct options *options;
    struct events *events; /* the only one that is written from outside */
};

extern const struct anchor snug_anchor;

/* Where those fields stand that are read from outside, and how large what is between them. */
#define ANCHOR_LAYOUT \
    ((uint32_t)(1 + 3 * sizeof(struct heap) + 5 * sizeof(struct arena) + \
                7 * sizeof(struct arena_class) + 11 * sizeof(struct cache) + \
                13 * sizeof(struct counters) + 17 * sizeof(struct options) + \
                19 * sizeof(struct segment) + 23 * sizeof(struct span) + \
                29 * sizeof(struct meta) + 31 * offsetof(struct heap, arenas) + \
                37 * offsetof(struct cache, shape) + 41 * offsetof(struct cells, taken) + \
                43 * offsetof(struct spans, huge_count) + 47 * offsetof(struct arenas, caches) + \
                53 * offsetof(struct bin, free_objects) + 59 * RANK_COUNT + \
                61 * offsetof(struct runs, pages) + 67 * sizeof(struct events) + \
                71 * sizeof(struct os_calls) + 73 * offsetof(struct span, kind) + \
                79 * sizeof(struct cell) + 83 * PAGE_MAP_CHUNK_BITS + 89 * PAGE_MAP_NODE_BITS))

#endif
