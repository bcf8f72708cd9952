/*
 * Adding up what arenas have, without their locks, of this process or of another: see base/peek.h.
 */
#include "magazine/arena.h"

static const struct arena *arena_peek(struct peek *peek, const struct arenas *arenas, unsigned i)
{
    return PEEK(peek, arenas->list[i]);
}

static unsigned arenas_peek_end(struct peek *peek, const struct arenas *arenas)
{
    unsigned end = PEEK(peek, arenas->end);
    return end < ARENAS_MOST ? end : ARENAS_MOST;
}

struct arena_totals arenas_totals(struct peek *peek, const struct arenas *arenas, size_t class)
{
    struct arena_totals totals = {0, 0, 0, 0};
    unsigned end = arenas_peek_end(peek, arenas);
    for (unsigned i = 0; i < end; i++) {
        const struct arena *arena = arena_peek(peek, arenas, i);
        if (arena == NULL || PEEK(peek, arena->classes[class].bin.page_heap) == NULL)
            continue;
        const struct arena_class *at = &arena->classes[class];
        totals.waiting += PEEK(peek, at->depot.objects);
        totals.slabs += PEEK(peek, at->bin.slab_count);
        totals.total += PEEK(peek, at->bin.total_objects);
        totals.free += PEEK(peek, at->bin.free_objects);
    }
    return totals;
}

struct cell_totals arenas_cell_totals(struct peek *peek, const struct arenas *arenas)
{
    struct cell_totals totals = {0};
    const struct page_heap *page_heap = PEEK(peek, arenas->page_heap);
    if (page_heap == NULL || PEEK(peek, page_heap->compact))
        return totals; /* a compact heap's arena ends before its cells */
    unsigned end = arenas_peek_end(peek, arenas);
    for (unsigned i = 0; i < end; i++) {
        const struct arena *arena = arena_peek(peek, arenas, i);
        if (arena == NULL || PEEK(peek, arena->cells.page_heap) == NULL)
            continue;
        totals.bytes += PEEK(peek, arena->cells.span_count) * CELL_SPAN_BYTES;
        totals.free += PEEK(peek, arena->cells.free_units) * CELL_UNIT;
        totals.gone += PEEK(peek, arena->cells.gone_pages) << PAGE_SHIFT;
        totals.taken += PEEK(peek, arena->cells.taken);
        totals.taken_bytes += PEEK(peek, arena->cells.taken_units) * CELL_UNIT;
        totals.given += PEEK(peek, arena->cells.given);
    }
    return totals;
}
