/*
 * Where cells are: from an address to its span, and from cell to cell. See cell.c for the layout.
 */
#ifndef SNUG_CELL_CELL_SPAN_H
#define SNUG_CELL_CELL_SPAN_H

#include "cell/cell_list.h"
#include "stats/stats.h"

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

/* The header that ends a span; see cell.c. */
static inline struct cell *end_cell(const struct span *span)
{
    return (struct cell *)(span_end(span) - CELL_HEADER);
}

/* The header behind a cell of `units`. The caller says how many: to read them from the header,
 * which it has just written to memory that is in no cache, would hold up everything behind. */
static inline struct cell *cell_behind(const struct cell *cell, size_t units)
{
    return (struct cell *)((char *)cell + units * CELL_UNIT);
}

static inline struct cell *next_cell(const struct cell *cell)
{
    return cell_behind(cell, cell->units);
}

/* Whether a cell of any thread's is free. The lock must be held. Only the check value of a free
 * cell may be looked at: that of another can change at that moment. */
static inline bool cell_is_free(const struct cell *cell)
{
    return __atomic_load_n(&cell->state, __ATOMIC_RELAXED) == CELL_FREE;
}

static inline uint64_t *trailer_before(const struct cell *cell)
{
    return (uint64_t *)cell - 1;
}

static inline struct misuse cell_damaged(const struct cell *cell)
{
    return (struct misuse){.kind = MISUSE_DAMAGED, .address = (uintptr_t)cell + CELL_HEADER};
}

/* ---- Their number; the lock must be held ---- */

/* Atomic because cells_used_bytes reads without the lock; relaxed: what it sees is a hint. */
static inline void cells_count_span(struct cells *cells, size_t change)
{
    __atomic_store_n(&cells->span_count, cells->span_count + change, __ATOMIC_RELAXED);
}

/* Gives a span back in which all is free, and in no list. */
static inline void span_release(struct cells *cells, struct span *span)
{
    cells_count_span(cells, (size_t)-1);
    cells_count_span_units(cells, 0, CELL_UNITS - 1);
    page_map_fill_classes(span->start, span->pages, 0);
    span_free(cells->page_heap, span, 0);
    COUNT(cell_spans_released, 1);
}

#endif
