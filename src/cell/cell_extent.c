/*
 * The cell around an address. Its header stands right before it if the block begins there; for an
 * address inside, the span is walked from its beginning, from header to header.
 *
 * Cost: of an address inside, a step for each cell before it, at most some thousand.
 */
#include "cell/cell_span.h"

static void extent_of(const struct cell *cell, struct block_extent *extent)
{
    /* relaxed: as in cell_is_free */
    uint8_t state = __atomic_load_n(&cell->state, __ATOMIC_RELAXED);
    extent->start = (uintptr_t)cell + CELL_HEADER;
    extent->end = (uintptr_t)next_cell(cell);
    extent->is_free = state == CELL_FREE || state == CELL_CACHED;
}

/* False: the address is in a header, or headers are damaged. The lock must be held. */
static bool walk(const struct span *span, uintptr_t address, struct block_extent *extent)
{
    const struct cell *end = end_cell(span);
    for (const struct cell *cell = first_cell(span); cell != end; cell = next_cell(cell)) {
        if (cell->units < CELL_LEAST_UNITS || next_cell(cell) > end)
            return false;
        extent_of(cell, extent);
        if (address < extent->end)
            return address >= extent->start;
    }
    return false;
}

bool cell_extent(uintptr_t address, struct block_extent *extent)
{
    const struct span *span = span_of(address);
    if (span == NULL || address < (uintptr_t)span->start + 2 * CELL_HEADER)
        return false;
    const struct cell *cell = cell_of(address);
    if (address % CELL_UNIT == 0 && cell_is_live(cell)) {
        extent_of(cell, extent);
        return true;
    }
    struct cells *cells = cells_of(span);
    if (!extent_lock(&cells->lock))
        return false;
    bool found = walk(span, address, extent);
    lock_release(&cells->lock);
    return found;
}
