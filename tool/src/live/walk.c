/*
 * What nobody counts while the program runs, found by a walk through another process's heap: the
 * slabs of each class that are mostly empty, and what free cells keep in memory that a trim would
 * give back. From within it would need every lock of a bin and of cells.
 *
 * The idea is that of report/medium.c: the descriptors of spans are followed from segment to
 * segment. A walk that leads astray, because the heap moves meanwhile, ends after as many steps as
 * there can be, and nothing of it counts.
 *
 * Cost: a copy of each page of metadata, some milliseconds for each GiB of slabs; of cells that of
 * report/medium.c once more, and a look at the page map for each free one of 32 KiB and more.
 */
#include "live/walk.h"

#include <string.h>

#include "base/bits.h"
#include "cell/cell_list.h"
#include "hardened/hardened.h"
#include "platform/output.h"
#include "platform/process.h"
#include "slab/slab.h"

/* A slab of which at most one part in so many is in use, but something, is sparse: what is free in
 * it cannot go back as pages, and little would have to move for it. What waits in a magazine or a
 * depot is in use to the slab. */
enum { SPARSE = 4 };

struct walk {
    struct peek peek;
    int pagemap;
    struct sparse_slabs *sparse;
    uint64_t trimmable; /* UNKNOWN: the page map cannot be read */
};

static void count_slab(struct walk *walk, const struct slab *slab)
{
    struct peek *peek = &walk->peek;
    struct sparse_slabs *sparse = walk->sparse;
    size_t class = PEEK(peek, slab->span.class);
    size_t capacity = PEEK(peek, slab->capacity);
    size_t free = PEEK(peek, slab->free_count);
    if (class >= CLASS_COUNT || free > capacity)
        return;
    if (free == capacity || (capacity - free) * SPARSE > capacity)
        return;
    sparse[class].slabs++;
    sparse[class].bytes += free * class_bytes(class);
}

/* What is in memory of the pages that a trim purges: those between a free cell's links and its
 * trailer (cell_whole_pages). */
static void count_free_cell(struct walk *walk, uintptr_t cell, size_t units)
{
    size_t head = CELL_HEADER + sizeof(struct free_links) + sizeof(struct cell_past);
    uintptr_t start = align_up(cell + head, PAGE_BYTES);
    uintptr_t end = align_down(cell + units * CELL_UNIT - sizeof(uint64_t), PAGE_BYTES);
    uint64_t resident = 0;
    if (walk->trimmable == UNKNOWN || units < CELL_AGED_UNITS || start >= end)
        return;
    if (os_pagemap_resident(walk->pagemap, start, end - start, &resident))
        walk->trimmable += resident;
    else
        walk->trimmable = UNKNOWN;
}

/* As in report/medium.c: a header that makes no sense ends the walk of its span. */
static void walk_cells(struct walk *walk, uintptr_t start)
{
    uintptr_t end = start + CELL_SPAN_BYTES - CELL_HEADER;
    for (uintptr_t cell = start + CELL_HEADER; cell < end;) {
        struct cell header;
        uint64_t word = peek_word(&walk->peek, (const void *)cell, sizeof(word));
        memcpy(&header, &word, sizeof(header));
        if (header.units < CELL_LEAST_UNITS || header.units > (end - cell) / CELL_UNIT)
            return;
        if (header.state == CELL_FREE)
            count_free_cell(walk, cell, header.units);
        cell += header.units * CELL_UNIT;
    }
}

/* False: the walk led astray. */
static bool walk_spans(struct walk *walk, const struct span *span, size_t steps)
{
    struct peek *peek = &walk->peek;
    for (; span != NULL && steps != 0 && !peek->failed; steps--) {
        uint8_t kind = PEEK(peek, span->kind);
        if (kind == SPAN_SLAB)
            count_slab(walk, CONTAINER_OF(span, struct slab, span));
        else if (kind == SPAN_CELLS)
            walk_cells(walk, (uintptr_t)PEEK(peek, span->start));
        span = PEEK(peek, span->right);
    }
    return span == NULL && !peek->failed;
}

/* False: the walk led astray. */
static bool walk_segments(struct walk *walk, const struct page_heap *page_heap, uint64_t mapped)
{
    struct peek *peek = &walk->peek;
    const struct list *head = &page_heap->segments;
    /* A segment is at least 64 KiB long: a list with more of them leads in a circle. */
    size_t steps = mapped / (64 * KIB) + 64;
    const struct list *node = PEEK(peek, head->next);
    for (; node != head; node = PEEK(peek, node->next)) {
        const struct segment *segment = CONTAINER_OF(node, struct segment, link);
        if (node == NULL || peek->failed || steps-- == 0 ||
            !walk_spans(walk, PEEK(peek, segment->first), PEEK(peek, segment->pages)))
            return false;
    }
    return true;
}

/* Of a hardened heap: slabs with no block in use, which are memory all the same. */
static uint64_t whole_slabs(struct peek *peek, const struct anchor *anchor)
{
    const struct hardened *hardened = PEEK(peek, anchor->heap->hardened);
    return hardened == NULL ? 0 : PEEK(peek, hardened->zones.whole);
}

/* Objects that wait in magazines and depots pin nothing: a trim takes them out. No more slabs are
 * pinned than there are objects. */
static void leave_waiting(struct sparse_slabs *sparse, uint64_t live)
{
    if (live >= sparse->slabs)
        return;
    sparse->bytes = sparse->bytes / sparse->slabs * live;
    sparse->slabs = live;
}

void outside_walk(outside_reader read, void *context, const struct anchor *anchor,
                  struct values *values)
{
    struct values_more *more = values->more;
    struct walk walk = {.peek = {.read = read, .context = context}, .sparse = more->sparse};
    walk.pagemap = os_pagemap_open(values->process);
    walk.trimmable = walk.pagemap >= 0 ? 0 : UNKNOWN;
    more->sparse_known = walk_segments(&walk, &anchor->heap->page_heap, values->mapped);
    if (walk.pagemap >= 0)
        os_close(walk.pagemap);
    if (!more->sparse_known)
        return;
    if (walk.trimmable != UNKNOWN)
        values->trimmable =
            walk.trimmable + values->purge_pending + whole_slabs(&walk.peek, anchor);
    values->pinned = 0;
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        leave_waiting(&more->sparse[class], more->classes[class].live);
        values->pinned += more->sparse[class].bytes;
    }
}
