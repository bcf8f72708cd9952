/*
 * Tests of what cells say of wrong pointers, and of headers, links and trailers that a program has
 * written over: each is noticed before it leads anywhere.
 */
#include "cell_support.h"

#include <stdio.h>
#include <string.h>

#include "cell_calls.h"
#include "options/options.h"

/* ---- Wrong pointers ---- */

static void assert_misuse(uintptr_t address, int kind, size_t bytes, uintptr_t start)
{
    struct misuse misuse = cell_misuse(address);
    ASSERT_THAT((int)misuse.kind == kind, "kind %d, not %d", (int)misuse.kind, kind);
    assert_int_equal(misuse.address, address);
    if (kind == MISUSE_DOUBLE_FREE || kind == MISUSE_INSIDE)
        assert_int_equal(misuse.bytes, bytes);
    if (kind == MISUSE_INSIDE)
        assert_int_equal(misuse.start, start);
}

TEST(each_address_in_a_span_has_its_answer)
{
    uintptr_t first = cell_get_units(100), second = cell_get_units(200),
              third = cell_get_units(300);
    size_t bytes = cell_bytes(second);
    /* Nothing was ever there in it that looks like a header. */
    memset((void *)second, 0, bytes);
    assert_misuse(second, MISUSE_NONE, 0, 0);
    for (size_t offset = 1; offset < bytes; offset++)
        assert_misuse(second + offset, MISUSE_INSIDE, bytes, second);
    for (size_t offset = 1; offset <= CELL_HEADER; offset++)
        assert_misuse(second - offset, MISUSE_UNKNOWN, 0, 0); /* its header */
    assert_misuse(first - 16, MISUSE_UNKNOWN, 0, 0);          /* the begin of the span */
    assert_misuse(first - 1, MISUSE_UNKNOWN, 0, 0);
    _Alignas(CELL_UNIT) static char
        elsewhere[4 * CELL_HEADER]; /* what is before the address is looked at */
    assert_misuse((uintptr_t)elsewhere + 2 * CELL_HEADER, MISUSE_UNKNOWN, 0, 0);
    cell_put(second);
    assert_misuse(second, MISUSE_DOUBLE_FREE, bytes, 0);
    assert_misuse(second + 160, MISUSE_DOUBLE_FREE, 0, 0); /* in free memory */
    assert_misuse(first, MISUSE_NONE, 0, 0);
    assert_misuse(third, MISUSE_NONE, 0, 0);
    assert_misuse(third + 300 * CELL_UNIT, MISUSE_DOUBLE_FREE, 0, 0); /* the rest of the span */
    assert_misuse(first - 16 + CELL_SPAN_BYTES - 1, MISUSE_UNKNOWN, 0, 0);
    cell_put(first);
    cell_put(third);
    assert_misuse(first, MISUSE_DOUBLE_FREE, 100 * CELL_UNIT - CELL_HEADER, 0); /* it is empty */
    cells_purge(&cells, true);
    assert_misuse(first, MISUSE_UNKNOWN, 0, 0); /* the span is gone */
    assert_cells_empty();
}

TEST(a_cached_block_is_free)
{
    uintptr_t block = cell_get_units(100);
    cell_set_state(block, CELL_CACHED);
    assert_misuse(block, MISUSE_DOUBLE_FREE, cell_bytes(block), 0);
    assert_misuse(block + 16, MISUSE_INSIDE, cell_bytes(block), block); /* it may be taken again */
    cells_free(&block, 1);
    assert_cells_empty();
}

TEST(blocks_that_were_joined_are_known_to_be_free)
{
    for (unsigned order = 0; order < 6; order++) {
        uintptr_t wall = cell_get_units(100);
        uintptr_t all[3] = {cell_get_units(100), cell_get_units(110), cell_get_units(120)};
        uintptr_t other = cell_get_units(100), kept[3];
        memcpy(kept, all, sizeof(all));
        unsigned rest = order;
        for (unsigned left = 3; left > 0; rest /= left, left--) {
            size_t index = rest % left;
            cell_put(all[index]);
            memmove(&all[index], &all[index + 1], (left - 1 - index) * sizeof(all[0]));
        }
        for (size_t i = 0; i < 3; i++) /* with the size that each had */
            assert_misuse(kept[i], MISUSE_DOUBLE_FREE, (100 + 10 * i) * CELL_UNIT - CELL_HEADER, 0);
        cell_put(wall);
        cell_put(other);
        assert_cells_empty();
    }
}

/* ---- Written over ---- */

static uintptr_t before, block, behind;

/* A block between others; `before` and `behind` can be freed. */
static int blocks_begin(void **state)
{
    int result = cells_begin(state);
    cell_get_units(100);
    before = cell_get_units(200);
    block = cell_get_units(300);
    behind = cell_get_units(400);
    cell_get_units(100);
    return result;
}

static void assert_said_of(const char *said, uintptr_t of)
{
    char line[128];
    snprintf(line, sizeof(line),
             "snug: invalid free: the header of the object at %#zx was overwritten\n", of);
    assert_string_equal(said, line);
}

/* Of a free cell whose links are not what they were. */
static void assert_said_written(const char *said, uintptr_t of)
{
    char line[160];
    snprintf(line, sizeof(line),
             "snug: use after free: %#zx, a %zu-byte object, was written to, found 0x%zx\n", of,
             cell_bytes(of), (size_t)cell_link(cell_of(of))[0]);
    assert_string_equal(said, line);
}

TEST(an_overwritten_header_is_told)
{
    struct cell *cell = cell_of(block), sound = *cell;
    uint64_t header;
    memcpy(&header, cell, sizeof(header));
    for (unsigned bit = 0; bit < 64; bit++) {
        if (bit / 8 == offsetof(struct cell, prev_free))
            continue; /* of the lock's holder, and not of the check */
        uint64_t damaged = header ^ (uint64_t)1 << bit;
        memcpy(cell, &damaged, sizeof(damaged));
        assert_false(is_live(block));
        assert_misuse(block, MISUSE_DAMAGED, 0, 0);
        *cell = sound;
    }
    assert_misuse(block, MISUSE_NONE, 0, 0);
}

TEST(a_header_of_another_place_is_not_sound)
{
    struct cell *cell = cell_of(block), sound = *cell;
    memcpy(cell, cell_of(behind), sizeof(*cell)); /* as memmove over a header does */
    assert_false(is_live(block));
    *cell = sound;
    uint64_t key = page_map.key;
    page_map.key ^= (uint64_t)1 << 20;
    assert_false(is_live(block)); /* it takes the secret */
    page_map.key = key;
    assert_true(is_live(block));
}

TEST(a_block_with_a_wrong_header_is_not_taken_back)
{
    size_t free_units = cells.free_units;
    cell_set_state(block, CELL_CACHED);
    cell_of(block)->units += 1;
    assert_said_of(cell_put_wrong(block), block);
    cell_of(block)->units -= 1;
    cell_set_state(block, CELL_LIVE);
    assert_said_of(cell_put_wrong(block), block); /* not in the state it should be in */
    assert_int_equal(cells.free_units, free_units);
    assert_cells_sound();
}

/* Damages what a free neighbour at `neighbour` keeps in `bytes` bytes at `at`; then the block must
 * not be freed. */
static void damage_neighbour(uintptr_t neighbour, void *at, size_t bytes, uintptr_t said_of,
                             void (*assert_told)(const char *said, uintptr_t of))
{
    char sound[16];
    memcpy(sound, at, bytes);
    size_t free_units = cells.free_units;
    for (size_t i = 0; i < bytes; i++) {
        ((char *)at)[i] ^= 0x10;
        cell_set_state(block, CELL_CACHED);
        assert_told(cell_put_wrong(block), said_of);
        assert_int_equal(cells.free_units, free_units);
        memcpy(at, sound, bytes);
    }
    cell_set_state(block, CELL_LIVE);
    assert_misuse(neighbour, MISUSE_DOUBLE_FREE, cell_bytes(neighbour), 0);
    assert_cells_sound();
}

TEST(damage_in_the_free_cell_behind_stops_a_free)
{
    cell_put(behind);
    struct cell *cell = cell_of(behind);
    damage_neighbour(behind, &cell->units, sizeof(cell->units), behind, assert_said_of);
    damage_neighbour(behind, &cell->check, sizeof(cell->check), behind, assert_said_of);
    damage_neighbour(behind, cell_links(cell), 6, behind, assert_said_written);
    damage_neighbour(behind, &cell_links(cell)->prev, 6, behind, assert_said_written);
}

TEST(damage_in_the_free_cell_before_stops_a_free)
{
    cell_put(before);
    struct cell *cell = cell_of(before);
    damage_neighbour(before, trailer_before(cell_of(block)), 8, block, assert_said_of);
    damage_neighbour(before, &cell->units, sizeof(cell->units), block, assert_said_of);
    damage_neighbour(before, &cell->check, sizeof(cell->check), block, assert_said_of);
    damage_neighbour(before, cell_links(cell), 6, block, assert_said_of);
}

/* An overflow out of a block is noticed when that is freed, also where what follows is in use. */
TEST(damage_in_the_live_cell_behind_stops_a_free)
{
    struct cell *next = cell_of(behind), sound = *next;
    for (size_t i = 0; i < sizeof(sound); i++) {
        if (i == offsetof(struct cell, prev_free))
            continue; /* of the lock's holder, and not of the check */
        ((char *)next)[i] ^= 0x10;
        cell_set_state(block, CELL_CACHED);
        assert_said_of(cell_put_wrong(block), behind);
        *next = sound;
    }
    cell_mark(next, CELL_CACHED); /* as a thread does at any time with its own */
    assert_string_equal(cell_put_wrong(block), "");
    cell_mark(next, cell_state_for(next->units, CELL_LIVE));
    assert_cells_sound();
}

TEST(what_is_written_to_the_top_is_noticed)
{
    struct cell *top = cells.top;
    struct misuse misuse;
    for (size_t i = 0; i < sizeof(struct free_links); i++) {
        ((char *)cell_links(top))[i] ^= 0x10;
        assert_null(cells_alloc_any(&cells, 60000, 16, true, &misuse));
        assert_int_equal(misuse.kind, MISUSE_WRITTEN);
        assert_int_equal(misuse.address, (uintptr_t)top + CELL_HEADER);
        assert_int_equal(misuse.found, cell_link(top)[0]);
        cells_inspect(&cells, 1, &misuse);
        assert_int_equal(misuse.kind, MISUSE_WRITTEN);
        ((char *)cell_links(top))[i] ^= 0x10;
    }
    cells_inspect(&cells, 1, &misuse);
    assert_int_equal(misuse.kind, MISUSE_NONE);
    assert_cells_sound();
}

TEST(a_last_look_finds_what_was_written_to_free_cells)
{
    cell_put(behind);
    struct misuse misuse;
    assert_true(cells_inspect(&cells, 100, &misuse) >= 2); /* and the top */
    assert_int_equal(misuse.kind, MISUSE_NONE);
    cell_links(cell_of(behind))->prev = (void *)0x4141414141414140;
    cells_inspect(&cells, 100, &misuse);
    assert_int_equal(misuse.kind, MISUSE_WRITTEN);
    assert_int_equal(misuse.address, behind);
    cell_links(cell_of(behind))->prev = NULL;
    cell_of(behind)->units++;
    cells_inspect(&cells, 100, &misuse);
    assert_int_equal(misuse.kind, MISUSE_DAMAGED);
    cell_of(behind)->units--;
    assert_cells_sound();
}

TEST(a_resize_keeps_off_damaged_neighbours)
{
    cell_put(behind);
    struct cell *cell = cell_of(behind);
    cell->check ^= 1;
    assert_false(cell_resize(block, 400 * CELL_UNIT, 0));
    cell->check ^= 1;
    struct free_links *next = cell_links(cell)->next;
    cell_links(cell)->next = (struct free_links *)behind;
    assert_false(cell_resize(block, 400 * CELL_UNIT, 0));
    cell_links(cell)->next = next;
    assert_cells_sound();
    assert_true(cell_resize(block, 400 * CELL_UNIT, 0));
    assert_cells_sound();
}

TEST(a_damaged_free_cell_is_not_handed_out)
{
    cell_put(behind);
    struct cell *cell = cell_of(behind);
    struct misuse misuse;
    struct free_links sound = *cell_links(cell);
    static const uintptr_t wild[] = {1, 16, 0xdeadbeef0, UINTPTR_MAX & ~(uintptr_t)15};
    for (size_t i = 0; i < 4; i++) {
        cell_links(cell)->next = (struct free_links *)wild[i];
        assert_null(cells_alloc_any(&cells, 6000, 16, true, &misuse));
        assert_int_equal(misuse.kind, MISUSE_WRITTEN);
        assert_int_equal(misuse.found, wild[i]);
        assert_int_equal(misuse.address, behind);
        *cell_links(cell) = sound;
    }
    cell->check ^= 0x100;
    assert_null(cells_alloc_any(&cells, 6000, 16, true, &misuse));
    assert_int_equal(misuse.kind, MISUSE_DAMAGED);
    cell->check ^= 0x100;
    assert_int_equal((uintptr_t)cells_alloc_any(&cells, 6000, 16, true, &misuse), behind);
    assert_int_equal(misuse.kind, MISUSE_NONE);
    assert_cells_sound();
}

static void overwrite_and_free(void *argument)
{
    (void)argument;
    memset((void *)before, 0x41, cell_bytes(before) + CELL_HEADER);
    cell_set_state(before, CELL_CACHED);
    cell_of(block)->state = CELL_CACHED;
    cells_free(&block, 1);
}

TEST(by_default_the_process_aborts)
{
    assert_aborts(overwrite_and_free, NULL, " was overwritten\n");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(each_address_in_a_span_has_its_answer, cells_begin, page_heap_end),
        ROW_WITH(a_cached_block_is_free, cells_begin, page_heap_end),
        ROW_WITH(blocks_that_were_joined_are_known_to_be_free, cells_begin, page_heap_end),
        ROW_WITH(an_overwritten_header_is_told, blocks_begin, page_heap_end),
        ROW_WITH(a_header_of_another_place_is_not_sound, blocks_begin, page_heap_end),
        ROW_WITH(a_block_with_a_wrong_header_is_not_taken_back, blocks_begin, page_heap_end),
        ROW_WITH(damage_in_the_free_cell_behind_stops_a_free, blocks_begin, page_heap_end),
        ROW_WITH(damage_in_the_free_cell_before_stops_a_free, blocks_begin, page_heap_end),
        ROW_WITH(damage_in_the_live_cell_behind_stops_a_free, blocks_begin, page_heap_end),
        ROW_WITH(what_is_written_to_the_top_is_noticed, blocks_begin, page_heap_end),
        ROW_WITH(a_last_look_finds_what_was_written_to_free_cells, blocks_begin, page_heap_end),
        ROW_WITH(a_resize_keeps_off_damaged_neighbours, blocks_begin, page_heap_end),
        ROW_WITH(a_damaged_free_cell_is_not_handed_out, blocks_begin, page_heap_end),
        ROW_WITH(by_default_the_process_aborts, blocks_begin, page_heap_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
