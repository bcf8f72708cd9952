/*
 * Visiting the live cells of a span, from header to header.
 */
#include "cell/cell_span.h"

bool cells_visit(const struct span *span, bool (*visit)(void *context, void *block, size_t bytes),
                 void *context)
{
    const struct cell *end = end_cell(span);
    for (const struct cell *cell = first_cell(span); cell != end; cell = next_cell(cell)) {
        uintptr_t block = (uintptr_t)cell + CELL_HEADER;
        if (cell_state_is_live(cell->state) && !visit(context, (void *)block, cell_bytes(block)))
            return false;
    }
    return true;
}
