/*
 * What nobody counts while the program runs, found by a walk through another process's heap: large
 * and huge blocks by powers of two, and the slabs of each class that are mostly empty.
 *
 * The idea is that of report/medium.c: the descriptors of spans are followed from segment to
 * segment. A walk that leads astray, because the heap moves meanwhile, ends after as many steps as
 * there can be, and nothing of it counts.
 *
 * Cost: a copy of each page of metadata, some milliseconds for each GiB of slabs.
 */
#include <string.h>

#include "base/bits.h"
#include "report/values.h"
#include "slab/slab.h"

/* As in live/ffi.rs: blocks of up to 1 << row bytes; classes. */
enum { ROWS = 48, CLASSES = 80 };
_Static_assert(CLASS_COUNT <= CLASSES, "live/ffi.rs has as many");

/* A slab of which at most one part in so many is in use is sparse: what is free in it cannot go
 * back as pages, and little would have to move for it. */
enum { SPARSE = 4 };

struct outside_walk {
    uint64_t blocks[ROWS];
    uint64_t bytes[ROWS];
    uint64_t slabs[CLASSES];
    uint64_t sparse[CLASSES];      /* of them */
    uint64_t sparse_free[CLASSES]; /* bytes free in those */
};

bool outside_walk(bool (*read)(void *, uintptr_t, void *, size_t), void *context,
                  const struct anchor *anchor, uint64_t mapped, struct outside_walk *walk);

static void count_large(struct outside_walk *walk, uint64_t bytes)
{
    unsigned row = bytes <= 1 ? 0 : (unsigned)bit_highest(bytes - 1) + 1;
    if (row >= ROWS)
        return;
    walk->blocks[row]++;
    walk->bytes[row] += bytes;
}

static void count_slab(struct outside_walk *walk, struct peek *peek, const struct slab *slab)
{
    size_t class = PEEK(peek, slab->span.class);
    size_t capacity = PEEK(peek, slab->capacity);
    size_t free = PEEK(peek, slab->free_count);
    if (class >= CLASS_COUNT || free > capacity)
        return;
    walk->slabs[class]++;
    if ((capacity - free) * SPARSE > capacity)
        return;
    walk->sparse[class]++;
    walk->sparse_free[class] += free * class_bytes(class);
}

static void count_span(struct outside_walk *walk, struct peek *peek, const struct span *span)
{
    switch (PEEK(peek, span->kind)) {
    case SPAN_SLAB:
        count_slab(walk, peek, CONTAINER_OF(span, struct slab, span));
        break;
    case SPAN_LARGE:
    case SPAN_HUGE:
        count_large(walk, PEEK(peek, span->requested));
        break;
    default:
        break;
    }
}

/* False: the walk led astray. */
static bool walk_spans(struct outside_walk *walk, struct peek *peek, const struct span *span,
                       size_t steps)
{
    for (; span != NULL && steps != 0 && !peek->failed; steps--) {
        count_span(walk, peek, span);
        span = PEEK(peek, span->right);
    }
    return span == NULL && !peek->failed;
}

bool outside_walk(bool (*read)(void *, uintptr_t, void *, size_t), void *context,
                  const struct anchor *anchor, uint64_t mapped, struct outside_walk *walk)
{
    struct peek peek = {.read = read, .context = context, .failed = false};
    memset(walk, 0, sizeof(*walk));
    const struct page_heap *page_heap = &anchor->heap->page_heap;
    const struct list *head = &page_heap->segments;
    /* A segment is at least 64 KiB long: a list with more of them leads in a circle. */
    size_t steps = mapped / (64 * KIB) + 64;
    const struct list *node = PEEK(&peek, head->next);
    for (; node != head; node = PEEK(&peek, node->next)) {
        const struct segment *segment = CONTAINER_OF(node, struct segment, link);
        if (node == NULL || peek.failed || steps-- == 0 ||
            !walk_spans(walk, &peek, PEEK(&peek, segment->first), PEEK(&peek, segment->pages)))
            return false;
    }
    return walk_spans(walk, &peek, PEEK(&peek, page_heap->huge),
                      PEEK(&peek, page_heap->huge_count) + 64);
}
