/*
 * Resident memory: how much of it is in snug's mappings, how much is not snug's, and how much is in
 * free pages that should occupy none, which is what huge pages cost.
 *
 * Every range that snug has is looked up in the kernel's page map. Another process may change while
 * it is walked, and lead the walk astray. So a walk fails after as many steps as there can be
 * ranges, or as many pages as the heap can have, and its numbers stay unknown.
 */
#include "hardened/hardened.h"
#include "meta/meta.h"
#include "platform/output.h"
#include "platform/process.h"
#include "report/values.h"

struct walk {
    struct peek *peek;
    const struct page_heap *page_heap;
    int pagemap;
    size_t steps; /* that are left */
    size_t pages; /* of runs and segments, that are left */
    bool failed;
    uint64_t resident;
};

/* Bytes: looked up at a time. */
#define WALK_PIECE (2 * MIB)

/* Whether the walk may look up one more piece. From outside, the read below is one of the limited
 * number that a tool allows each look (tool/src/live/memory.rs), so that even a range without end
 * ends. */
static bool may_go_on(struct walk *walk)
{
    struct peek *peek = walk->peek;
    (void)PEEK(peek, walk->page_heap->meta);
    return peek == NULL || !peek->failed;
}

static void walk_range(struct walk *walk, uintptr_t start, size_t bytes)
{
    while (bytes != 0 && !walk->failed) {
        size_t piece = size_min(bytes, WALK_PIECE);
        uint64_t resident = 0;
        walk->failed =
            !may_go_on(walk) || !os_pagemap_resident(walk->pagemap, start, piece, &resident);
        walk->resident += resident;
        start += piece;
        bytes -= piece;
    }
}

/* The same for a span or a segment. If its descriptor was reused a moment ago it may state any
 * length, so the pages that are left bound it. */
static void walk_pages(struct walk *walk, uintptr_t start, size_t pages)
{
    walk->failed |= pages > walk->pages;
    if (walk->failed)
        return;
    walk->pages -= pages;
    walk_range(walk, start, pages << PAGE_SHIFT);
}

/* The next node of a list that is walked, or NULL at its end. */
static const struct list *walk_next(struct walk *walk, const struct list *head,
                                    const struct list *node)
{
    const struct list *next = PEEK(walk->peek, node->next);
    walk->failed |= next == NULL || walk->steps-- == 0;
    return next == head || walk->failed ? NULL : next;
}

static void walk_segments(struct walk *walk, const struct list *head)
{
    for (const struct list *node = head; (node = walk_next(walk, head, node)) != NULL;) {
        const struct segment *segment = CONTAINER_OF(node, struct segment, link);
        walk_pages(walk, (uintptr_t)PEEK(walk->peek, segment->start),
                   PEEK(walk->peek, segment->pages));
    }
}

static void walk_spans(struct walk *walk, const struct list *head)
{
    for (const struct list *node = head; (node = walk_next(walk, head, node)) != NULL;) {
        const struct span *span = CONTAINER_OF(node, struct span, link);
        walk_pages(walk, (uintptr_t)PEEK(walk->peek, span->start), PEEK(walk->peek, span->pages));
    }
}

static void walk_huge(struct walk *walk, const struct page_heap *page_heap)
{
    const struct span *span = PEEK(walk->peek, page_heap->huge);
    for (; span != NULL && !walk->failed; span = PEEK(walk->peek, span->right)) {
        walk_pages(walk, (uintptr_t)PEEK(walk->peek, span->start), PEEK(walk->peek, span->pages));
        walk->failed |= walk->steps-- == 0;
    }
}

static void walk_meta(struct walk *walk, const struct meta *meta)
{
    size_t count = size_min(PEEK(walk->peek, meta->range_count), META_RANGES);
    for (size_t i = 0; i < count; i++)
        walk_range(walk, PEEK(walk->peek, meta->ranges[i].start),
                   PEEK(walk->peek, meta->ranges[i].bytes));
}

/* The list of large blocks is walked under its lock, and not at all if that is taken: see walk_heap
 * in values.c. */
static void walk_large(struct walk *walk, struct hard_large *large)
{
    if (walk->peek == NULL && !lock_try(&large->lock))
        return;
    for (const struct list *node = &large->blocks;
         (node = walk_next(walk, &large->blocks, node)) != NULL;) {
        const struct hard_block *block = CONTAINER_OF(node, struct hard_block, link);
        walk_range(walk, (uintptr_t)PEEK(walk->peek, block->start), PEEK(walk->peek, block->bytes));
    }
    if (walk->peek == NULL)
        lock_release(&large->lock);
}

/* Walks what a hardened heap has, if this is one. Realms stay as long as the heap, so they need no
 * lock. */
static void walk_hardened(struct walk *walk, const struct heap *heap)
{
    struct hardened *hardened = PEEK(walk->peek, heap->hardened);
    if (hardened == NULL)
        return;
    const struct hard_realm *realm = PEEK(walk->peek, hardened->zones.realms);
    for (; realm != NULL && !walk->failed; realm = PEEK(walk->peek, realm->next)) {
        walk_range(walk, (uintptr_t)PEEK(walk->peek, realm->start), PEEK(walk->peek, realm->bytes));
        walk->failed |= walk->steps-- == 0;
    }
    walk_large(walk, &hardened->large);
}

/* More pages than a heap has, even if it grows while it is walked. */
static size_t pages_most(struct peek *peek, const struct page_heap *page_heap)
{
    return 2 * PEEK(peek, page_heap->mapped_peak);
}

/* Resident bytes of clean free pages, which should have none. */
static uint64_t walk_clean(struct walk *walk, const struct page_heap *page_heap)
{
    struct walk clean = *walk;
    clean.resident = 0;
    clean.pages = pages_most(walk->peek, page_heap);
    for (size_t bin = 0; bin < RUN_BINS && !clean.failed; bin++)
        walk_spans(&clean, &page_heap->clean.bins[bin]);
    walk->failed = clean.failed;
    return clean.resident;
}

static void walk_all(struct values *values, struct walk *walk, const struct heap *heap)
{
    const struct page_heap *page_heap = &heap->page_heap;
    walk->steps =
        PEEK(walk->peek, page_heap->huge_count) + values->free_runs + 2 * RUN_BINS + 65536;
    walk->pages = pages_most(walk->peek, page_heap);
    walk_segments(walk, &page_heap->segments);
    walk_segments(walk, &page_heap->cache.list);
    walk_huge(walk, page_heap);
    walk_hardened(walk, heap);
    walk_meta(walk, PEEK(walk->peek, page_heap->meta));
    uint64_t excess = walk_clean(walk, page_heap);
    if (walk->failed || values->resident == UNKNOWN)
        return;
    /* The system's shared page of zeros counts as resident in the page map only, not in what the
     * kernel says of the process. A hardened heap that looks at what it gave back has many. */
    uint64_t rest = values->resident;
    if (values->resident_heaps != UNKNOWN) {
        values->resident_heaps = size_min(values->resident_heaps, rest);
        rest -= values->resident_heaps;
    }
    values->resident_snug = size_min(walk->resident, rest);
    values->resident_other = rest - values->resident_snug;
    values->resident_excess = excess;
    values->untouched = rest_of(values->mapped, values->resident_snug);
}

bool heap_read_resident(struct peek *peek, const struct heap *heap, int pagemap, uint64_t *bytes)
{
    const struct page_heap *page_heap = &heap->page_heap;
    struct walk walk = {.peek = peek, .page_heap = page_heap, .pagemap = pagemap};
    walk.steps = PEEK(peek, page_heap->huge_count) + 65536;
    walk.pages = pages_most(peek, page_heap);
    walk_segments(&walk, &page_heap->segments);
    walk_segments(&walk, &page_heap->cache.list);
    walk_huge(&walk, page_heap);
    walk_hardened(&walk, heap);
    *bytes = walk.resident;
    return !walk.failed;
}

void values_read_resident(struct values *values, struct peek *peek, const struct heap *heap,
                          int process)
{
    struct walk walk = {
        .peek = peek, .page_heap = &heap->page_heap, .pagemap = os_pagemap_open(process)};
    if (walk.pagemap < 0)
        return;
    walk_all(values, &walk, heap);
    os_close(walk.pagemap);
}
