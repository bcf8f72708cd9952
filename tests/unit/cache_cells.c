/*
 * Tests of magazine/cache.h for cells: ranges of sizes, which cell serves which request, how
 * magazines grow, limits, and damaged headers.
 */
#include "cache_support.h"

#include <stdio.h>
#include <string.h>

#include "options/options.h"

/* Takes and gives a cell as heap.c does. */
static uintptr_t block_get(size_t bytes)
{
    void *block = cache_pop_cell(cache, bytes);
    if (block == NULL) {
        struct misuse misuse;
        cache_miss_cell(cache, bytes);
        block = arenas_take_cell(&arenas, bytes, MIN_ALIGN, &misuse);
        assert_int_equal(misuse.kind, MISUSE_NONE);
    }
    assert_non_null(block);
    assert_true(cell_bytes((uintptr_t)block) >= bytes);
    assert_int_equal(cell_misuse((uintptr_t)block).kind, MISUSE_NONE);
    return (uintptr_t)block;
}

static void block_put(uintptr_t block)
{
    if (!cache_push_cell(cache, block))
        cache_give_cell(cache, block);
    assert_int_not_equal(cell_of(block)->state, CELL_LIVE);
}

/* A block at the beginning of a page is not cached; most tests want one that is. */
static uintptr_t block_get_cached(size_t bytes)
{
    uintptr_t block = block_get(bytes), other = 0;
    while (block % PAGE_BYTES == 0) {
        assert_int_equal(other, 0);
        other = block;
        block = block_get(bytes);
    }
    if (other != 0)
        block_put(other);
    return block;
}

/* The class that a block of a cache is in, after it was given to it. */
static size_t class_of_block(uintptr_t block)
{
    for (size_t class = CACHE_CELLS; class < CACHE_CLASSES; class++)
        if (slot_block(*cache->top[class]) == block)
            return class;
    return 0;
}

/* A heap with many cells in use: what may wait depends on it. */
enum { IN_USE = 40 };
static uintptr_t in_use[IN_USE];

static int begin(void **state)
{
    int result = cache_begin(state);
    for (size_t i = 0; i < IN_USE; i++)
        in_use[i] = block_get(CELL_MOST);
    return result;
}

static int end(void **state)
{
    for (size_t i = 0; i < IN_USE; i++)
        cache_give_cell(cache, in_use[i]);
    return cache_end(state);
}

/* ---- Ranges ---- */

TEST(ranges_are_eighths_of_a_doubling)
{
    assert_int_equal(cache_cell_range_bytes(0), KIB);
    assert_int_equal(cache_cell_range_bytes(CACHE_CELL_RANGES), 32 * KIB);
    for (size_t range = 0; range < CACHE_CELL_RANGES; range++) {
        size_t least = cache_cell_range_bytes(range), next = cache_cell_range_bytes(range + 1);
        assert_true(next > least && next - least <= least / 8);
    }
    for (size_t units = 64; units < CELL_UNITS; units++) {
        size_t range = cache_cell_range(units), bytes = units * CELL_UNIT;
        if (bytes >= 32 * KIB) {
            assert_true(range >= CACHE_CELL_RANGES);
            continue;
        }
        ASSERT_THAT(range < CACHE_CELL_RANGES && cache_cell_range_bytes(range) <= bytes &&
                        bytes < cache_cell_range_bytes(range + 1),
                    "%zu units: range %zu", units, range);
    }
    for (size_t units = 8; units < 64; units++)
        assert_true(cache_cell_range(units) >= CACHE_CELL_RANGES);
}

TEST(a_cell_waits_in_its_range)
{
    for (size_t bytes = 1025; bytes < 40 * KIB; bytes += 97) {
        uintptr_t block = block_get_cached(bytes);
        size_t whole = cell_of(block)->units * CELL_UNIT;
        block_put(block);
        size_t class = class_of_block(block);
        if (whole >= 32 * KIB)
            assert_int_equal(class, 0);
        else
            assert_int_equal(class, CACHE_CELLS + cache_cell_range(whole / CELL_UNIT));
        cache_flush(cache);
    }
}

TEST(the_same_size_gets_the_same_cell)
{
    for (size_t bytes = 1025; bytes < 28 * KIB; bytes += 331) {
        uintptr_t block = block_get_cached(bytes);
        block_put(block);
        assert_int_equal(cell_of(block)->state, CELL_CACHED);
        assert_int_equal((uintptr_t)cache_pop_cell(cache, bytes), block);
        assert_int_equal(cell_of(block)->state, CELL_LIVE);
        block_put(block);
        assert_int_equal((uintptr_t)cache_pop_cell(cache, cell_bytes(block)), block);
        assert_null(cache_pop_cell(cache, bytes));
        block_put(block);
        cache_flush(cache);
    }
}

TEST(a_cell_of_the_range_above_will_do)
{
    /* 2,000 and 2,100 bytes are of neighbouring ranges; 2,500 is further off. */
    uintptr_t block = block_get_cached(2100);
    block_put(block);
    assert_null(cache_pop_cell(cache, 2200)); /* of its range, but too large for it */
    assert_int_equal((uintptr_t)cache_pop_cell(cache, 2000), block);
    block_put(block);
    assert_null(cache_pop_cell(cache, 1500));
    cache_flush(cache);
    block = block_get_cached(2500);
    block_put(block);
    assert_null(cache_pop_cell(cache, 2000));
}

/* ---- Growing and limits ---- */

static const struct magazine *magazine_for(size_t bytes)
{
    return loaded_of(cache, CACHE_CELLS + cache_cell_range(cell_units(bytes)));
}

TEST(a_magazine_grows_only_for_who_goes_up_and_down)
{
    enum { BLOCKS = 200 };
    static uintptr_t blocks[BLOCKS];
    options.thread_cache = GIB;
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = block_get(1500);
    for (size_t i = 0; i < BLOCKS; i++)
        block_put(blocks[i]);
    /* It ran over, but nobody missed anything. */
    assert_int_equal(magazine_for(1500)->log, 0);
    unsigned most = 0;
    for (unsigned round = 0; round < 10; round++) {
        for (size_t i = 0; i < BLOCKS; i++)
            blocks[i] = block_get(1500);
        for (size_t i = 0; i < BLOCKS; i++)
            block_put(blocks[i]);
        assert_in_range(magazine_for(1500)->log, most, most + 1);
        most = magazine_for(1500)->log;
        assert_held(cache);
        assert_arenas_sound();
    }
    assert_int_equal(most, 3);
}

TEST(cells_are_bounded_by_the_option)
{
    enum { BLOCKS = 100 };
    static uintptr_t blocks[BLOCKS];
    uint64_t seed = 1;
    static const size_t limits[] = {0, 20 * KIB, MIB};
    for (size_t limit = 0; limit < 3; limit++) {
        options.thread_cache = limits[limit];
        for (unsigned round = 0; round < 30; round++) {
            for (size_t i = 0; i < BLOCKS; i++)
                blocks[i] = block_get(1025 + random_below(&seed, 30000));
            for (size_t i = 0; i < BLOCKS; i++)
                block_put(blocks[i]);
            assert_true(cache->held_bytes <= limits[limit]);
        }
        assert_held(cache);
        size_t cached = cache_cell_bytes(cache);
        assert_true(cached <= cache->held_bytes * 9 / 8);
        assert_true((cached == 0) == (limits[limit] == 0));
        cache_flush(cache);
        assert_int_equal(cache_cell_bytes(cache), 0);
        assert_int_equal(cache->held_bytes, 0);
    }
}

TEST(a_full_magazine_gives_its_older_half)
{
    options.thread_cache = 4 * 1536;
    uintptr_t blocks[6];
    for (size_t i = 0; i < 6;) {
        blocks[i] = block_get(1550);
        i += blocks[i] % PAGE_BYTES != 0;
    }
    for (size_t i = 0; i < 4; i++)
        block_put(blocks[i]);
    assert_int_equal(cache_cell_bytes(cache), 4 * cell_of(blocks[0])->units * CELL_UNIT);
    block_put(blocks[4]);
    assert_int_equal(cell_of(blocks[0])->state, CELL_FREE);
    assert_int_equal(cell_of(blocks[3])->state, CELL_CACHED);
    assert_int_equal((uintptr_t)cache_pop_cell(cache, 1550), blocks[4]);
    assert_int_equal((uintptr_t)cache_pop_cell(cache, 1550), blocks[3]);
    assert_int_equal((uintptr_t)cache_pop_cell(cache, 1550), blocks[2]);
    assert_null(cache_pop_cell(cache, 1550));
}

TEST(without_a_cache_cells_go_straight_back)
{
    struct cache *none = (struct cache *)&cache_none, *own = cache;
    cache = none;
    uintptr_t wall = block_get(2000), block = block_get(2000);
    assert_false(cache_push_cell(none, block));
    assert_null(cache_pop_cell(none, 2000));
    block_put(block);
    assert_int_equal(cell_of(block)->state, CELL_FREE);
    block_put(wall);
    assert_int_equal(cell_of(wall)->state, CELL_FREE);
    cache = own;
}

TEST(a_flush_gives_all_cells_back)
{
    uint64_t seed = 2;
    uintptr_t blocks[100];
    for (unsigned round = 0; round < 5; round++) {
        for (size_t i = 0; i < 100; i++)
            blocks[i] = block_get(1025 + random_below(&seed, 20000));
        for (size_t i = 0; i < 100; i++)
            block_put(blocks[i]);
    }
    assert_true(cache_cell_bytes(cache) > 0);
    cache_flush(cache);
    for (size_t class = CACHE_CELLS; class < CACHE_CLASSES; class++)
        assert_null(loaded_of(cache, class));
    size_t units = 0;
    for (size_t i = 0; i < IN_USE; i++)
        units += cell_of(in_use[i])->units;
    struct cell_totals totals = arenas_cell_totals(NULL, &arenas);
    assert_in_range(totals.bytes - totals.free - units * CELL_UNIT, 0,
                    totals.bytes / CELL_SPAN_BYTES * 16);
}

/* ---- Wrong pointers ---- */

/* Does nothing, and writes nothing. */
static void assert_not_pushed(uintptr_t address)
{
    size_t cached = cache_cell_bytes(cache);
    uint64_t before = *(uint64_t *)(address / 8 * 8 - 8);
    assert_false(cache_push_cell(cache, address));
    assert_int_equal(cache_cell_bytes(cache), cached);
    assert_int_equal(*(uint64_t *)(address / 8 * 8 - 8), before);
}

TEST(what_is_no_live_cell_is_not_pushed)
{
    uintptr_t block = block_get_cached(3000), other = block_get_cached(3000);
    block_put(other);
    assert_not_pushed(other);
    memset((void *)block, 0, 3000);
    for (uintptr_t offset = 1; offset < 3000; offset++)
        assert_not_pushed(block + offset);
    cell_of(block)->check ^= 4;
    assert_not_pushed(block);
    cell_of(block)->check ^= 4;
    cell_of(block)->units ^= 1;
    assert_not_pushed(block);
    cell_of(block)->units ^= 1;
    assert_true(cache_push_cell(cache, block));
}

TEST(a_cell_damaged_while_it_waited_is_not_handed_out)
{
    options.misuse = MISUSE_WARN;
    for (unsigned i = 0; i < 2; i++) {
        uintptr_t block = block_get_cached(3000);
        block_put(block);
        struct cell sound = *cell_of(block);
        if (i == 0)
            cell_of(block)->check ^= 1;
        else
            memset(cell_of(block), 0x41, sizeof(sound)); /* a string ran over */
        stderr_capture();
        assert_null(cache_pop_cell(cache, 3000));
        char expected[128];
        snprintf(expected, sizeof(expected),
                 "snug: invalid malloc: the header of the object at %#zx was overwritten\n", block);
        assert_string_equal(stderr_restore(), expected);
        assert_int_equal(cache_cell_bytes(cache), 0); /* it is lost, and not met again */
        *cell_of(block) = sound;
        cells_give(&block, 1);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(ranges_are_eighths_of_a_doubling, begin, end),
        ROW_WITH(a_cell_waits_in_its_range, begin, end),
        ROW_WITH(the_same_size_gets_the_same_cell, begin, end),
        ROW_WITH(a_cell_of_the_range_above_will_do, begin, end),
        ROW_WITH(a_magazine_grows_only_for_who_goes_up_and_down, begin, end),
        ROW_WITH(cells_are_bounded_by_the_option, begin, end),
        ROW_WITH(a_full_magazine_gives_its_older_half, begin, spans_end),
        ROW_WITH(without_a_cache_cells_go_straight_back, begin, end),
        ROW_WITH(a_flush_gives_all_cells_back, begin, end),
        ROW_WITH(what_is_no_live_cell_is_not_pushed, begin, end),
        ROW_WITH(a_cell_damaged_while_it_waited_is_not_handed_out, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
