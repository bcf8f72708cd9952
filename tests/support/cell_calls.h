/*
 * Cells as tests handle them.
 */
#ifndef SNUG_TESTS_CELL_CALLS_H
#define SNUG_TESTS_CELL_CALLS_H

#include "cell/cell.h"

/* cells_alloc for who does not ask what of a block is zero. */
static inline void *cells_alloc_any(struct cells *from, size_t bytes, size_t alignment,
                                    bool may_grow, struct misuse *misuse)
{
    size_t dirty;
    misuse->kind = MISUSE_NONE;
    return cells_alloc(from, bytes, alignment, may_grow ? CELLS_NEW : CELLS_HELD, misuse, &dirty);
}

static inline void cell_set_state(uintptr_t block, enum cell_state state)
{
    cell_set(cell_of(block), cell_of(block)->units, state);
}

#endif
