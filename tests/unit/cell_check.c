/*
 * Tests of cells_check: one field after the other is damaged, and each damage is found.
 */
#include "cell_support.h"
#include "platform/check.h"

/* Live and free cells in turn; two of the free ones have the same size. */
static uintptr_t live[5], hole[4];

static int plant(void **state)
{
    static const size_t units[] = {200, 300, 200, 5000};
    int result = cells_begin(state);
    for (size_t i = 0; i < 4; i++) {
        live[i] = cell_get_units(100);
        hole[i] = cell_get_units(units[i]);
    }
    live[4] = cell_get_units(100);
    for (size_t i = 0; i < 4; i++)
        cell_put(hole[i]);
    return result;
}

TEST(the_cells_are_as_they_are_meant_to_be)
{
    assert_cells_sound();
    assert_int_equal(cells.free_units, SPAN_UNITS - 500);
    assert_ptr_equal(cells.free[200], hole[2]);
    assert_ptr_equal(cells.free[200]->next, hole[0]);
    assert_ptr_equal(cells.free[5000], hole[3]);
}

#define PLANT(field, damage, expected) ASSERT_FOUND(field, damage, cells_check(&cells), expected)

TEST(damaged_headers_of_free_cells_are_found)
{
    static const char list[] =
        "a list of free cells has a cell that is not free or of another size";
    for (size_t i = 0; i < 4; i++) {
        struct cell *cell = cell_of(hole[i]);
        PLANT(cell->units, cell->units + 1, list);
        PLANT(cell->units, 0, list);
        PLANT(cell->check, cell->check ^ 1, list);
        PLANT(cell->state, CELL_LIVE, list);
        PLANT(cell->state, 0, list);
        PLANT(cell->prev_free, 1, "a cell is wrong about the one before it");
    }
}

/* Writes a sound header of another size or state, as a fault of snug's own would. */
static void assert_header_found(uintptr_t block, size_t units, enum cell_state state,
                                const char *expected)
{
    assert_cells_sound();
    struct cell sound = *cell_of(block);
    cell_set(cell_of(block), units, state);
    const char *found = cells_check(&cells);
    *cell_of(block) = sound;
    assert_said(found, expected, "a header");
    assert_cells_sound();
}

TEST(damaged_headers_of_live_cells_are_found)
{
    for (size_t i = 0; i < 5; i++) {
        assert_header_found(live[i], 0, CELL_LIVE, "cells do not tile their span");
        assert_header_found(live[i], 1, CELL_LIVE, "cells do not tile their span");
        if (i != 0) /* all of the span would fit */
            assert_header_found(live[i], UINT16_MAX, CELL_LIVE, "cells do not tile their span");
        assert_header_found(live[i], 100, (enum cell_state)7, "a");
        PLANT(cell_of(live[i])->state, 7, "a cell's header is damaged");
        PLANT(cell_of(live[i])->check, cell_of(live[i])->check ^ 1, "a cell's header is damaged");
        assert_int_equal(check_place(), live[i]);
        PLANT(cell_of(live[i])->prev_free, i == 0, "a cell is wrong about the one before it");
    }
    /* Free without being in a list. */
    assert_header_found(live[0], 100, CELL_FREE, "a");
    /* One that swallows its neighbour: a live one that is free for the lists. */
    assert_header_found(live[1], 400, CELL_LIVE, "a");
}

TEST(damaged_trailers_are_found)
{
    for (size_t i = 0; i < 4; i++) {
        uint64_t *trailer = trailer_before(cell_of(live[i + 1]));
        PLANT(*trailer, *trailer + 1, "a free cell's trailer has another size");
        PLANT(*trailer, 0, "a free cell's trailer has another size");
    }
}

TEST(damaged_links_are_found)
{
    static const char links[] = "a free cell's links are damaged";
    struct free_links *first = (struct free_links *)hole[2], *second = (struct free_links *)hole[0];
    PLANT(first->prev, second, links);
    PLANT(second->prev, NULL, links);
    PLANT(second->prev, second, links);
    PLANT(second->next, (struct free_links *)hole[1], links);
    PLANT(first->next, NULL, "the count of free cell units is wrong");
    PLANT(cells.free[200], second, "the count of free cell units is wrong");
    PLANT(cells.free[300], (struct free_links *)hole[3],
          "a list of free cells has a cell that is not free or of another size");
}

TEST(wrong_counts_of_large_cells_are_found)
{
    static const char counts[] = "the counts of large free cells are wrong";
    PLANT(cells.aged_units, cells.aged_units + 1, counts);
    PLANT(cells.gone_pages, 1, counts);
}

TEST(wrong_bitmaps_are_found)
{
    static const char bitmap[] = "the bitmap of free cells is wrong";
    static const char summary[] = "the summary of the bitmap of free cells is wrong";
    PLANT(cells.bitmap[200 / 64], cells.bitmap[200 / 64] ^ (uint64_t)1 << (200 % 64), summary);
    PLANT(cells.bitmap[300 / 64], cells.bitmap[300 / 64] ^ (uint64_t)1 << (301 % 64), bitmap);
    PLANT(cells.bitmap[100], 1, summary);
    for (size_t word = 0; word < CELL_WORDS / 64; word++)
        for (unsigned bit = 0; bit < 64; bit += 7)
            PLANT(cells.summary[word], cells.summary[word] ^ (uint64_t)1 << bit, summary);
    PLANT(cells.free[300], NULL, bitmap);
    PLANT(cells.free[301], (struct free_links *)hole[1], bitmap);
}

TEST(wrong_counts_are_found)
{
    PLANT(cells.free_units, cells.free_units + 1, "the count of free cell units is wrong");
    PLANT(cells.free_units, 0, "the count of free cell units is wrong");
    PLANT(cells.span_count, 0, "the count of cell spans is wrong");
    PLANT(cells.span_count, 2, "the count of cell spans is wrong");
    struct span *span = span_of(live[0]);
    PLANT(span->owner, &page_heap, "the count of cell spans is wrong");
}

TEST(a_free_cell_in_no_list_is_found)
{
    assert_cells_sound();
    cell_list_remove(&cells, cell_of(hole[1]));
    cells_count_free(&cells, 0, 300);
    const char *found = cells_check(&cells);
    cells_count_free(&cells, 300, 0);
    cell_list_add(&cells, cell_of(hole[1]), cell_of(hole[1])->units);
    assert_said(found, "a free cell is in no list", "a cell out of its list");
    assert_cells_sound();
}

TEST(free_neighbours_are_found)
{
    /* A cell freed without being joined: all of it is right but for that. */
    assert_cells_sound();
    struct cell *cell = cell_of(live[2]), *next = cell_of(hole[2]);
    struct cell sound = *cell, next_sound = *next;
    uint64_t trailer = *trailer_before(next);
    cell_set(cell, 100, CELL_FREE);
    *trailer_before(next) = 100;
    next->prev_free = 1;
    cell_list_add(&cells, cell, cell->units);
    cells_count_free(&cells, 100, 0);
    const char *found = cells_check(&cells);
    cells_count_free(&cells, 0, 100);
    cell_list_remove(&cells, cell);
    *cell = sound;
    *next = next_sound;
    *trailer_before(next) = trailer;
    assert_said(found, "two free cells lie side by side", "a cell that is not joined");
    assert_cells_sound();
}

TEST(a_wrong_top_is_found)
{
    PLANT(cells.top, NULL, "the count of free cell units is wrong");
    PLANT(cells.top, cell_of(live[4]), "the top is not free");
    PLANT(cells.top, cell_of(hole[1]), "the count of free cell units is wrong");
    PLANT(cells.top->check, 0, "the top is not free");
    PLANT(cell_link(cells.top)[0], 0, "the top was written to");
    PLANT(cell_link(cells.top)[1], 0, "the top was written to");
    PLANT(cells.top->prev_free, 1, "a cell is wrong about the one before it");
    /* Another cell in its place, and it in the lists. */
    struct cell *top = cells.top, *other = cell_of(hole[1]);
    size_t free_units = cells.free_units;
    struct free_links marks = *cell_links(top);
    cell_list_remove(&cells, other);
    cell_list_add(&cells, top, top->units);
    cells.top = other;
    cells.free_units = free_units;
    const char *found = cells_check(&cells);
    cell_list_remove(&cells, top);
    cell_list_add(&cells, other, other->units);
    cells.top = top;
    *cell_links(top) = marks;
    cells.free_units = free_units;
    assert_said(found, "the top is not the last of its span", "the top");
    assert_cells_sound();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(the_cells_are_as_they_are_meant_to_be, plant, page_heap_end),
        ROW_WITH(damaged_headers_of_free_cells_are_found, plant, page_heap_end),
        ROW_WITH(damaged_headers_of_live_cells_are_found, plant, page_heap_end),
        ROW_WITH(damaged_trailers_are_found, plant, page_heap_end),
        ROW_WITH(damaged_links_are_found, plant, page_heap_end),
        ROW_WITH(wrong_counts_of_large_cells_are_found, plant, page_heap_end),
        ROW_WITH(wrong_bitmaps_are_found, plant, page_heap_end),
        ROW_WITH(wrong_counts_are_found, plant, page_heap_end),
        ROW_WITH(a_free_cell_in_no_list_is_found, plant, page_heap_end),
        ROW_WITH(a_wrong_top_is_found, plant, page_heap_end),
        ROW_WITH(free_neighbours_are_found, plant, page_heap_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
