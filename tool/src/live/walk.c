/*
 * What nobody counts while the program runs, found by a walk through another process's heap: the
 * slabs of each class that are mostly empty. From within it would need every lock of a bin.
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

/* A slab of which at most one part in so many is in use is sparse: what is free in it cannot go
 * back as pages, and little would have to move for it. */
enum { SPARSE = 4 };

void outside_walk(bool (*read)(void *, uintptr_t, void *, size_t), void *context,
                  const struct anchor *anchor, struct values *values);

static void count_slab(struct sparse_slabs *sparse, struct peek *peek, const struct slab *slab)
{
    size_t class = PEEK(peek, slab->span.class);
    size_t capacity = PEEK(peek, slab->capacity);
    size_t free = PEEK(peek, slab->free_count);
    if (class >= CLASS_COUNT || free > capacity)
        return;
    if ((capacity - free) * SPARSE > capacity)
        return;
    sparse[class].slabs++;
    sparse[class].bytes += free * class_bytes(class);
}

/* False: the walk led astray. */
static bool walk_spans(struct sparse_slabs *sparse, struct peek *peek, const struct span *span,
                       size_t steps)
{
    for (; span != NULL && steps != 0 && !peek->failed; steps--) {
        if (PEEK(peek, span->kind) == SPAN_SLAB)
            count_slab(sparse, peek, CONTAINER_OF(span, struct slab, span));
        span = PEEK(peek, span->right);
    }
    return span == NULL && !peek->failed;
}

/* False: the walk led astray. */
static bool walk_segments(struct sparse_slabs *sparse, struct peek *peek,
                          const struct page_heap *page_heap, uint64_t mapped)
{
    const struct list *head = &page_heap->segments;
    /* A segment is at least 64 KiB long: a list with more of them leads in a circle. */
    size_t steps = mapped / (64 * KIB) + 64;
    const struct list *node = PEEK(peek, head->next);
    for (; node != head; node = PEEK(peek, node->next)) {
        const struct segment *segment = CONTAINER_OF(node, struct segment, link);
        if (node == NULL || peek->failed || steps-- == 0 ||
            !walk_spans(sparse, peek, PEEK(peek, segment->first), PEEK(peek, segment->pages)))
            return false;
    }
    return true;
}

/* Fills in what is known of sparse slabs, unless the walk leads astray. */
void outside_walk(bool (*read)(void *, uintptr_t, void *, size_t), void *context,
                  const struct anchor *anchor, struct values *values)
{
    struct peek peek = {.read = read, .context = context, .failed = false};
    struct values_more *more = values->more;
    more->sparse_known =
        walk_segments(more->sparse, &peek, &anchor->heap->page_heap, values->mapped);
    if (!more->sparse_known)
        return;
    values->pinned = 0;
    for (size_t class = 1; class < CLASS_COUNT; class++)
        values->pinned += more->sparse[class].bytes;
}
