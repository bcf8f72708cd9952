/*
 * What a heap consists of, for the statistics. Nothing here takes a lock or allocates; each
 * function reads this process (`peek` is NULL) or another one.
 */
#ifndef SNUG_HEAP_TOTALS_H
#define SNUG_HEAP_TOTALS_H

#include "hardened/hardened.h"
#include "heap/heap.h"
#include "meta/meta.h"

/* Bytes where nothing else is said. The parts add up:
 *   segments == slabs + cells + large + dirty + clean
 *   slabs == small_live + small_free + small_depots + small_cached + slabs_waste
 *   cells == cells_live + cells_free + cells_cached + cells_waste */
struct heap_totals {
    size_t segments;      /* taken from the provider for all but huge blocks */
    size_t slabs;         /* pages of slabs */
    size_t cells;         /* pages of cell spans */
    size_t large;         /* pages of large blocks */
    size_t dirty;         /* free pages that still occupy memory */
    size_t clean;         /* free pages that do not */
    size_t segment_cache; /* of the last two, in the cache of empty segments */
    size_t huge;          /* mappings of huge blocks */

    size_t small_live; /* objects handed out */
    size_t small_live_count;
    size_t small_free;       /* objects free in slabs */
    size_t small_depots;     /* objects in depots */
    size_t small_cached;     /* objects in the magazines of all threads */
    size_t small_free_count; /* number of objects in the last three */
    size_t slabs_waste;      /* ends of slabs, where no object fits */

    size_t cells_live; /* blocks handed out, without their headers */
    size_t cells_count;
    size_t cells_taken_bytes;
    size_t cells_taken; /* ever, past the magazines */
    size_t cells_free;
    size_t cells_gone;   /* of it, without memory */
    size_t cells_cached; /* in the quick lists of all threads */
    size_t cells_waste;  /* headers of those handed out, ends of spans */

    struct large_sizes sizes; /* large and huge blocks by size */
    size_t large_count;
    size_t large_requested; /* what the program asked for */
    size_t huge_count;
    size_t huge_requested;
    size_t free_runs; /* of pages, how many */

    struct hard_totals
        hardened; /* of a hardened heap: all it has; its `mapped` is not in segments */

    size_t meta_used; /* descriptors, magazines, and the page map's entries of the segments */
    size_t meta_mapped;
    size_t mapped_peak;       /* segments and huge */
    size_t used_peak;         /* slabs, cells, large and huge */
    size_t live[CLASS_COUNT]; /* objects of each class, as in struct class_totals */
};

/* One class, numbers of objects: total == live + cached + depots + free. */
struct class_totals {
    size_t slabs;
    size_t total;
    size_t live;
    size_t cached; /* in magazines */
    size_t depots; /* objects in them */
    size_t free;   /* in slabs */
};

struct class_totals heap_class_totals_of(struct peek *peek, const struct heap *heap, size_t class);

/* `classes`, if it is not NULL, has CLASS_COUNT entries; the first stays as it is. */
void heap_totals_read(struct peek *peek, const struct heap *heap, struct class_totals *classes,
                      struct heap_totals *totals);

/* The pages of large blocks that were freed and wait whole; adds how many these are. */
size_t heap_waiting_pages(struct peek *peek, const struct page_heap *page_heap, size_t *blocks);

static inline struct heap_totals heap_totals_of(struct peek *peek, const struct heap *heap,
                                                struct class_totals *classes)
{
    struct heap_totals totals;
    heap_totals_read(peek, heap, classes, &totals);
    return totals;
}

/* The same of this process's heap. */
static inline struct heap_totals heap_totals(void)
{
    return heap_totals_of(NULL, &heap_default, NULL);
}

#endif
