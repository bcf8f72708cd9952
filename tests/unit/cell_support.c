/*
 * Cells for tests. See cell_support.h.
 */
#include "cell_support.h"

#include <string.h>

#include "cell_calls.h"
#include "options/options.h"

struct cells cells;

int cells_begin(void **state)
{
    int result = page_heap_begin(state);
    memset(&cells, 0, sizeof(cells));
    cells_init(&cells, &page_heap);
    return result;
}

void assert_cells_sound(void)
{
    const char *wrong = cells_check(&cells);
    if (wrong != NULL)
        fail_msg("%s", wrong);
    assert_page_heap_sound();
}

void assert_cells_empty(void)
{
    assert_cells_sound();
    assert_true(cells.span_count <= 1); /* the last one stays until it is asked for */
    assert_int_equal(cells.free_units, cells.span_count * (CELL_UNITS - 1));
    cells_purge(&cells, true);
    assert_int_equal(cells.span_count, 0);
    assert_int_equal(cells.free_units, 0);
    assert_page_heap_empty();
}

uintptr_t cell_get(size_t bytes)
{
    struct misuse misuse = {.kind = MISUSE_UNKNOWN};
    uintptr_t block = (uintptr_t)cells_alloc_any(&cells, bytes, MIN_ALIGN, true, &misuse);
    assert_int_equal(misuse.kind, MISUSE_NONE);
    assert_true(block != 0);
    assert_int_equal(block % MIN_ALIGN, 0);
    assert_true(is_live(block));
    assert_true(cell_bytes(block) >= bytes);
    memset((void *)block, 0xa5, cell_bytes(block));
    return block;
}

uintptr_t cell_get_units(size_t units)
{
    uintptr_t block = cell_get(units * CELL_UNIT - CELL_HEADER);
    assert_int_equal(units_of(block), units);
    return block;
}

size_t cells_alloc_rest(uintptr_t *blocks)
{
    size_t count = 0, most = (CELL_MOST + CELL_HEADER) / CELL_UNIT;
    while (cells.top != NULL) {
        assert_in_range(count, 0, REST_MOST - 1);
        size_t units = cells.top->units;
        /* Half of what would leave too little behind. */
        units = units > 2 * most ? most : units > most ? units / 2 : units;
        blocks[count++] = cell_get_units(units);
    }
    return count;
}

void cell_put(uintptr_t block)
{
    cell_set_state(block, CELL_CACHED);
    cells_free(&block, 1);
}

const char *cell_put_wrong(uintptr_t block)
{
    options.misuse = MISUSE_WARN;
    stderr_capture();
    cells_free(&block, 1);
    return stderr_restore();
}
