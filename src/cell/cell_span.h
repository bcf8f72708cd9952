/*
 * Where cells are: from an address to its span, and from cell to cell. See cell.c for the layout.
 */
#ifndef SNUG_CELL_CELL_SPAN_H
#define SNUG_CELL_CELL_SPAN_H

#include "cell/cell.h"

/* The span that a page of class PAGE_MAP_CELL belongs to; NULL for wild pointers. */
static inline struct span *span_of(uintptr_t address)
{
    uintptr_t entry = entry_untagged(page_map_home_entry(address));
    if (UNLIKELY(entry == 0))
        entry = page_map_entry(address);
    struct span *span = (struct span *)entry;
    return entry_is_span(entry) && span->kind == SPAN_CELLS ? span : NULL;
}

static inline struct cells *cells_of(const struct span *span)
{
    /* acquire: pairs with span_new; a thread that finds the span finds its cells */
    return __atomic_load_n((struct cells *const *)&span->owner, __ATOMIC_ACQUIRE);
}

static inline struct cell *first_cell(const struct span *span)
{
    return (struct cell *)(span->start + CELL_HEADER);
}

/* Where the header that ends a span stands; see cell.c. */
static inline struct cell *end_cell(const struct span *span)
{
    return (struct cell *)(span_end(span) - CELL_HEADER);
}

static inline struct cell *next_cell(const struct cell *cell)
{
    return (struct cell *)((char *)cell + cell->units * CELL_UNIT);
}

/* Of any thread's cell, under the lock: whether it is free. Only free cells' check values may be
 * looked at, since those of others can change at that moment. */
static inline bool cell_is_free(const struct cell *cell)
{
    return __atomic_load_n(&cell->state, __ATOMIC_RELAXED) == CELL_FREE;
}

static inline uint64_t *trailer_before(const struct cell *cell)
{
    return (uint64_t *)cell - 1;
}

#endif
