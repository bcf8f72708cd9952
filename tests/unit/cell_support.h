/*
 * Cells on spans of their own, for the tests of medium blocks.
 */
#ifndef SNUG_TESTS_UNIT_CELL_SUPPORT_H
#define SNUG_TESTS_UNIT_CELL_SUPPORT_H

#include "cell/cell_list.h"
#include "cell/cell_span.h"
#include "page_heap_support.h"

/* What a fresh span has to give. */
#define SPAN_UNITS ((size_t)CELL_UNITS - 1)

extern struct cells cells;

/* Setup: fresh cells on fresh spans. Teardown is page_heap_end. */
int cells_begin(void **state);

/* Fails unless cells_check is content, and the spans are. */
void assert_cells_sound(void);

/* Everything was given back. */
void assert_cells_empty(void);

/* A block that must be had, 16-byte aligned, all its bytes written. */
uintptr_t cell_get(size_t bytes);

/* The same, of a cell with exactly so many units. */
uintptr_t cell_get_units(size_t units);

/* Takes what is free at the end of the first span, in cells of the largest size. Returns how many.
 */
enum { REST_MOST = 16 };
size_t cells_alloc_rest(uintptr_t *blocks);

/* Gives a live block back. */
void cell_put(uintptr_t block);

/* Gives it back in spite of what is wrong with it, and returns what was said. */
const char *cell_put_wrong(uintptr_t block);

/* Whether the block has the header of a live cell. */
static inline bool is_live(uintptr_t block)
{
    return cell_is_live(cell_of(block));
}

static inline size_t units_of(uintptr_t block)
{
    return cell_of(block)->units;
}

#endif
