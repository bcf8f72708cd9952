/*
 * Tests of cell/cell.h: cutting, best fit, joining, alignment, resizing. Purging is in
 * cell_purge.c, misuse in cell_misuse.c, the checker in cell_check.c.
 */
#include "cell_support.h"

#include <string.h>

#include "cell_calls.h"
#include "meta/meta.h"
#include "stats/stats.h"

static uintptr_t take(size_t bytes, size_t alignment, bool may_grow)
{
    struct misuse misuse;
    uintptr_t block = (uintptr_t)cells_alloc_any(&cells, bytes, alignment, may_grow, &misuse);
    assert_int_equal(misuse.kind, MISUSE_NONE);
    return block;
}

/* ---- Taking ---- */

TEST(a_block_is_cut_from_a_new_span)
{
    uint64_t made = COUNTED(cell_spans_made);
    uintptr_t block = cell_get(2000);
    assert_int_equal(units_of(block), 126);
    assert_int_equal(cell_bytes(block), 2008);
    assert_int_equal(cells.span_count, 1);
    assert_int_equal(cells.free_units, SPAN_UNITS - 126);
    assert_int_equal(page_heap.used_pages, CELL_SPAN_BYTES >> PAGE_SHIFT);
    assert_int_equal(page_map_class(block), PAGE_MAP_CELL);
    assert_int_equal(COUNTED(cell_spans_made), made + 1);
    assert_cells_sound();
    uint64_t released = COUNTED(cell_spans_released);
    uintptr_t start = block - 16;
    cell_put(block);
    cells_purge(&cells, true); /* or it stays; see below */
    assert_int_equal(cells.span_count, 0);
    assert_int_equal(page_map_class(start), 0);
    assert_int_equal(page_map_class(start + CELL_SPAN_BYTES - 1), 0);
    assert_int_equal(COUNTED(cell_spans_released), released + 1);
    assert_cells_empty();
}

TEST(every_size_gets_what_it_needs_and_no_more)
{
    uintptr_t wall = cell_get(1);
    assert_int_equal(units_of(wall), CELL_LEAST_UNITS);
    for (size_t bytes = 1; bytes <= CELL_MOST; bytes += 1 + bytes / 300) {
        uintptr_t block = cell_get(bytes);
        size_t least = size_max(bytes + CELL_HEADER, CELL_LEAST_UNITS * CELL_UNIT);
        assert_int_equal(cell_bytes(block) + CELL_HEADER, align_up(least, CELL_UNIT));
        cell_put(block);
    }
    uintptr_t most = cell_get(CELL_MOST);
    assert_int_equal(cell_bytes(most), CELL_MOST);
    assert_cells_sound();
    cell_put(most);
    cell_put(wall);
    assert_cells_empty();
}

TEST(a_span_can_be_used_up)
{
    uintptr_t blocks[1 + REST_MOST];
    blocks[0] = cell_get_units(100);
    size_t count = 1 + cells_alloc_rest(blocks + 1);
    assert_int_equal(cells.free_units, 0);
    assert_int_equal(cells.span_count, 1);
    assert_int_equal(take(1, MIN_ALIGN, false), 0);
    assert_cells_sound();
    for (size_t i = 0; i < count; i++)
        cell_put(blocks[i]);
    assert_cells_empty();
}

TEST(a_remainder_of_no_use_is_not_split_off)
{
    uintptr_t first = cell_get_units(1000), wall = cell_get_units(100);
    cell_put(first);
    size_t least = cells.split_least;
    for (size_t rest = 0; rest < 2 * least; rest++) {
        uintptr_t block = cell_get((1000 - rest) * CELL_UNIT - CELL_HEADER);
        assert_int_equal(block, first);
        assert_int_equal(units_of(block), rest < least ? 1000 : 1000 - rest);
        assert_cells_sound();
        cell_put(block);
    }
    cell_put(wall);
    assert_cells_empty();
}

TEST(the_best_fit_is_found)
{
    enum { BLOCKS = 150 };
    uintptr_t blocks[BLOCKS], walls[BLOCKS];
    uint64_t seed = 1;
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = cell_get(1025 + random_below(&seed, 6000));
        walls[i] = cell_get(1);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        cell_put(blocks[i]);
    assert_cells_sound();
    for (size_t bytes = 1025; bytes < 9000; bytes += 17) {
        size_t units = cell_units(bytes), best = units;
        while (best < CELL_LISTS && cells.free[best] == NULL)
            best++;
        uintptr_t top = (uintptr_t)cells.top + CELL_HEADER; /* the last resort */
        uintptr_t expected = best < CELL_LISTS ? (uintptr_t)cells.free[best] : top;
        uintptr_t block = take(bytes, MIN_ALIGN, false);
        assert_int_equal(block, expected);
        cell_put(block);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        cell_put(walls[i]);
    assert_cells_empty();
}

TEST(the_largest_cells_are_used_again)
{
    uintptr_t block = cell_get_units(CELL_EXACT_UNITS), wall = cell_get(1);
    cell_put(block);
    assert_int_equal(take(CELL_MOST, MIN_ALIGN, false), block);
    cell_put(block);
    cell_put(wall);
    assert_cells_empty();
}

TEST(no_span_is_made_unless_it_may)
{
    assert_int_equal(take(5000, MIN_ALIGN, false), 0);
    assert_int_equal(fake.calls, 0);
    fake.refuse_take = true;
    assert_int_equal(take(5000, MIN_ALIGN, true), 0);
    assert_int_equal(cells.span_count, 0);
    size_t used = meta_bytes_used();
    assert_int_equal(take(5000, MIN_ALIGN, true), 0);
    assert_int_equal(meta_bytes_used(), used);
    fake.refuse_take = false;
    cell_put(take(5000, MIN_ALIGN, true));
    assert_cells_empty();
}

TEST(memory_that_no_block_had_is_not_touched_unless_it_may_be)
{
    struct misuse misuse = {.kind = MISUSE_NONE};
    size_t dirty;
    uintptr_t before = cell_get_units(100), whole = cell_get_units(3000);
    cell_put(whole);
    assert_null(cells_alloc(&cells, 3010 * CELL_UNIT, MIN_ALIGN, CELLS_USED, &misuse, &dirty));
    assert_int_equal(misuse.kind, MISUSE_NONE);
    void *used = cells_alloc(&cells, 2900 * CELL_UNIT, MIN_ALIGN, CELLS_USED, &misuse, &dirty);
    assert_int_equal((uintptr_t)used, whole);
    cell_put(whole);
    void *held = cells_alloc(&cells, 3010 * CELL_UNIT, MIN_ALIGN, CELLS_HELD, &misuse, &dirty);
    assert_int_equal((uintptr_t)held, whole);
    cell_put(whole);
    cell_put(before);
    assert_cells_empty();
}

/* ---- Joining ---- */

enum { NEIGHBOURS = 5 };

static void free_in_order(unsigned order)
{
    uintptr_t all[NEIGHBOURS];
    uintptr_t before = cell_get_units(100);
    for (size_t i = 0; i < NEIGHBOURS; i++)
        all[i] = cell_get_units(100 + i);
    uintptr_t behind = cell_get_units(100), start = all[0];
    for (unsigned left = NEIGHBOURS; left > 0; left--) {
        size_t index = order % left;
        order /= left;
        cell_put(all[index]);
        memmove(&all[index], &all[index + 1], (left - 1 - index) * sizeof(all[0]));
        assert_cells_sound();
    }
    uintptr_t whole = cell_get_units(5 * 100 + 10);
    assert_int_equal(whole, start);
    cell_put(whole);
    cell_put(behind);
    cell_put(before);
    assert_cells_empty();
}

TEST(neighbours_are_joined_in_every_order)
{
    for (unsigned order = 0; order < 120; order++)
        free_in_order(order);
}

/* Two blocks at the begin of a span and one that ends it, freed in any order. */
TEST(blocks_at_the_ends_of_a_span_are_joined_too)
{
    for (unsigned order = 0; order < 6; order++) {
        uintptr_t all[3] = {cell_get_units(8000), cell_get_units(8000)}, rest[REST_MOST];
        size_t count = cells_alloc_rest(rest);
        all[2] = rest[--count];
        unsigned digits = order;
        for (unsigned left = 3; left > 0; digits /= left, left--) {
            size_t index = digits % left;
            cell_put(all[index]);
            memmove(&all[index], &all[index + 1], (left - 1 - index) * sizeof(all[0]));
            assert_cells_sound();
        }
        while (count > 0)
            cell_put(rest[--count]);
        assert_cells_empty();
    }
}

/* ---- Alignment ---- */

TEST(alignment_is_kept)
{
    uint64_t seed = 2;
    uintptr_t blocks[200];
    for (size_t i = 0; i < 200; i++) {
        size_t alignment = MIN_ALIGN << random_below(&seed, 9);
        size_t bytes = 1 + random_below(&seed, 9000);
        blocks[i] = take(bytes, alignment, true);
        ASSERT_THAT(blocks[i] != 0 && blocks[i] % alignment == 0, "%zu at %zu", bytes, alignment);
        assert_true(cell_bytes(blocks[i]) >= bytes);
        memset((void *)blocks[i], 0x5a, cell_bytes(blocks[i]));
        if (i % 8 == 0)
            assert_cells_sound();
        if (i % 3 == 2) { /* so that there are gaps */
            cell_put(blocks[i - 1]);
            blocks[i - 1] = cell_get(1500);
        }
    }
    assert_cells_sound();
    for (size_t i = 0; i < 200; i++)
        cell_put(blocks[(i * 7) % 200]);
    assert_cells_empty();
}

/* ---- Resizing ---- */

TEST(a_block_grows_into_a_free_neighbour)
{
    uintptr_t block = cell_get_units(200), next = cell_get_units(300), wall = cell_get_units(100);
    memset((void *)block, 0x11, cell_bytes(block));
    assert_false(cell_resize(block, 201 * CELL_UNIT, 0)); /* the neighbour is in use */
    cell_put(next);
    assert_false(cell_resize(block, 500 * CELL_UNIT, 0)); /* a unit more than there is */
    assert_int_equal(units_of(block), 200);
    assert_true(cell_resize(block, 300 * CELL_UNIT - CELL_HEADER, 0));
    assert_int_equal(units_of(block), 300);
    assert_true(is_live(block));
    assert_cells_sound();
    for (size_t i = 0; i < 200 * CELL_UNIT - CELL_HEADER; i++)
        ASSERT_THAT(((char *)block)[i] == 0x11, "at %zu", i);
    memset((void *)block, 0x22, cell_bytes(block));
    /* What would be left is of no use. */
    assert_true(cell_resize(block, (501 - cells.split_least) * CELL_UNIT - CELL_HEADER, 0));
    assert_int_equal(units_of(block), 500);
    assert_cells_sound();
    cell_put(block);
    cell_put(wall);
    assert_cells_empty();
}

TEST(a_block_grows_to_what_is_wished_if_there_is_room)
{
    uintptr_t block = cell_get_units(200), next = cell_get_units(300), wall = cell_get_units(100);
    assert_false(cell_resize(block, 201 * CELL_UNIT, 250 * CELL_UNIT));
    cell_put(next);
    assert_true(cell_resize(block, 210 * CELL_UNIT, 300 * CELL_UNIT - CELL_HEADER));
    assert_int_equal(units_of(block), 300);
    assert_true(cell_resize(block, 310 * CELL_UNIT, CELL_MOST)); /* more than there is */
    assert_int_equal(units_of(block), 500);
    assert_cells_sound();
    cell_put(block);
    cell_put(wall);
    assert_cells_empty();
}

TEST(a_block_shrinks_if_that_frees_something_useful)
{
    uintptr_t before = cell_get_units(100), block = cell_get_units(500), wall = cell_get_units(100);
    size_t least = cells.split_least;
    assert_true(cell_resize(block, (501 - least) * CELL_UNIT - CELL_HEADER, 0));
    assert_int_equal(units_of(block), 500);
    assert_true(cell_resize(block, (500 - least) * CELL_UNIT - CELL_HEADER, 0));
    assert_int_equal(units_of(block), 500 - least);
    assert_cells_sound();
    cell_put(before); /* what is before it is free, and stays so */
    assert_true(cell_resize(block, 200 * CELL_UNIT - CELL_HEADER, 0));
    assert_int_equal(units_of(block), 200); /* the rest is joined with what was freed before */
    assert_cells_sound();
    assert_true(cell_resize(block, 500 * CELL_UNIT - CELL_HEADER, 0));
    assert_int_equal(units_of(block), 500);
    assert_cells_sound();
    cell_put(block);
    cell_put(wall);
    assert_cells_empty();
}

TEST(the_last_block_of_a_span_is_resized)
{
    uintptr_t block = cell_get_units(100), rest[REST_MOST];
    assert_true(cell_resize(block, CELL_MOST, 0));
    assert_int_equal(cell_bytes(block), CELL_MOST);
    size_t count = cells_alloc_rest(rest);
    uintptr_t last = rest[count - 1];
    size_t units = units_of(last);
    assert_true(cell_resize(last, 100 * CELL_UNIT - CELL_HEADER, 0));
    assert_int_equal(units_of(last), 100);
    assert_int_equal(cells.free_units, units - 100);
    assert_cells_sound();
    assert_false(cell_resize(last, units * CELL_UNIT, 0));
    assert_true(cell_resize(last, units * CELL_UNIT - CELL_HEADER, 0));
    assert_int_equal(cells.free_units, 0);
    assert_cells_sound();
    for (size_t i = 0; i < count; i++)
        cell_put(rest[i]);
    cell_put(block);
    assert_cells_empty();
}

TEST(the_last_span_stays_for_the_next_block)
{
    uintptr_t block = cell_get(CELL_MOST);
    uint64_t made = COUNTED(cell_spans_made);
    for (size_t i = 0; i < 100; i++) {
        cell_put(block);
        assert_int_equal(cells.span_count, 1);
        assert_int_equal(cells.free_units, SPAN_UNITS);
        assert_ptr_equal(cell_get(CELL_MOST), block);
    }
    assert_int_equal(COUNTED(cell_spans_made), made);
    /* Of two, one goes. */
    uintptr_t more[CELL_SPAN_BYTES / CELL_MOST];
    for (size_t i = 0; i < CELL_SPAN_BYTES / CELL_MOST; i++)
        more[i] = cell_get(CELL_MOST);
    assert_int_equal(cells.span_count, 2);
    for (size_t i = 0; i < CELL_SPAN_BYTES / CELL_MOST; i++)
        cell_put(more[i]);
    cell_put(block);
    assert_cells_sound();
    assert_true(cells.span_count <= 1);
    assert_cells_empty();
}

/* ---- All together ---- */

TEST(batches_go_back_to_the_cells_they_came_from)
{
    static struct cells other;
    memset(&other, 0, sizeof(other));
    cells_init(&other, &page_heap);
    struct misuse misuse;
    uintptr_t batch[40];
    for (size_t i = 0; i < 40; i++) {
        batch[i] = i % 3 == 0 ? (uintptr_t)cells_alloc_any(&other, 3000, 16, true, &misuse)
                              : cell_get(3000);
        cell_set_state(batch[i], CELL_CACHED);
    }
    assert_cells_sound();
    assert_null(cells_check(&other));
    assert_int_equal(other.span_count, 1);
    cells_free(batch, 40);
    assert_int_equal(other.free_units, SPAN_UNITS);
    cells_purge(&other, true);
    assert_int_equal(other.span_count, 0);
    assert_null(cells_check(&other));
    assert_cells_empty();
}

/* A block is filled with a byte that follows from its address. */
static void fill(uintptr_t block)
{
    memset((void *)block, (int)(block >> 4), cell_bytes(block));
}

static void assert_filled(uintptr_t block, size_t bytes)
{
    const char *at = (const char *)block;
    for (size_t i = 0; i < bytes; i++)
        ASSERT_THAT(at[i] == (char)(block >> 4), "%#zx at %zu", block, i);
}

static void random_turn(uintptr_t *block, uint64_t *seed)
{
    size_t bytes = 1025 + random_below(seed, (size_t)1 << (4 + random_below(seed, 13)));
    if (*block == 0) {
        *block = take(bytes, MIN_ALIGN << random_below(seed, 5), true);
    } else if (random_below(seed, 3) == 0) {
        size_t before = cell_bytes(*block);
        bool done = cell_resize(*block, bytes, 0);
        assert_filled(*block, done ? size_min(before, bytes) : before);
        assert_true(cell_bytes(*block) >= (done ? bytes : before));
    } else {
        assert_filled(*block, cell_bytes(*block));
        cell_put(*block);
        *block = 0;
        return;
    }
    fill(*block);
}

TEST(random_use_keeps_all_invariants)
{
    enum { LIVE = 300 };
    static uintptr_t live[LIVE];
    uint64_t seed = 3;
    for (unsigned turn = 0; turn < 6000; turn++) {
        random_turn(&live[random_below(&seed, LIVE)], &seed);
        if (turn % 50 == 0)
            assert_cells_sound();
    }
    for (size_t i = 0; i < LIVE; i++)
        if (live[i] != 0)
            cell_put(live[i]);
    assert_cells_empty();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(a_block_is_cut_from_a_new_span, cells_begin, page_heap_end),
        ROW_WITH(every_size_gets_what_it_needs_and_no_more, cells_begin, page_heap_end),
        ROW_WITH(a_span_can_be_used_up, cells_begin, page_heap_end),
        ROW_WITH(a_remainder_of_no_use_is_not_split_off, cells_begin, page_heap_end),
        ROW_WITH(the_best_fit_is_found, cells_begin, page_heap_end),
        ROW_WITH(the_largest_cells_are_used_again, cells_begin, page_heap_end),
        ROW_WITH(no_span_is_made_unless_it_may, cells_begin, page_heap_end),
        ROW_WITH(memory_that_no_block_had_is_not_touched_unless_it_may_be, cells_begin,
                 page_heap_end),
        ROW_WITH(neighbours_are_joined_in_every_order, cells_begin, page_heap_end),
        ROW_WITH(blocks_at_the_ends_of_a_span_are_joined_too, cells_begin, page_heap_end),
        ROW_WITH(alignment_is_kept, cells_begin, page_heap_end),
        ROW_WITH(a_block_grows_into_a_free_neighbour, cells_begin, page_heap_end),
        ROW_WITH(a_block_grows_to_what_is_wished_if_there_is_room, cells_begin, page_heap_end),
        ROW_WITH(a_block_shrinks_if_that_frees_something_useful, cells_begin, page_heap_end),
        ROW_WITH(the_last_block_of_a_span_is_resized, cells_begin, page_heap_end),
        ROW_WITH(the_last_span_stays_for_the_next_block, cells_begin, page_heap_end),
        ROW_WITH(batches_go_back_to_the_cells_they_came_from, cells_begin, page_heap_end),
        ROW_WITH(random_use_keeps_all_invariants, cells_begin, page_heap_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
