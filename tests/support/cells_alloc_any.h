/*
 * cells_alloc for who does not ask what of a block is zero.
 */
#ifndef SNUG_TESTS_CELLS_ALLOC_ANY_H
#define SNUG_TESTS_CELLS_ALLOC_ANY_H

#include "cell/cell.h"

static inline void *cells_alloc_any(struct cells *from, size_t bytes, size_t alignment,
                                    bool may_grow, struct misuse *misuse)
{
    size_t dirty;
    return cells_alloc(from, bytes, alignment, may_grow, misuse, &dirty);
}

#endif
