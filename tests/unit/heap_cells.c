/*
 * Tests of the short way of heap/alloc.c: medium blocks that the quick lists of a thread do not
 * have come from free cells with the same effect on these lists, and on the totals, as by the long
 * way.
 */
#include "heap_support.h"

#include <string.h>

#include "cell/cell_list.h"
#include "options/options.h"

enum { BLOCKS = 200 };

/* A thread with a cache, and with `begin` so many blocks in use that some may wait. */
static char *in_use[100];

/* The clock stands; or it goes on each time that it is looked at. */
static bool clock_goes;

static uint64_t clock_of_test(void)
{
    static uint64_t now = 1;
    return now += clock_goes;
}

static int begin_empty(void **state)
{
    options_reset(state);
    clock_goes = false;
    heap_default.page_heap.now = clock_of_test;
    for (unsigned i = 0; i < 100; i++)
        heap_free(block_get(16));
    return cache_exists(thread_self.cache) ? 0 : -1;
}

static int begin(void **state)
{
    int result = begin_empty(state);
    for (size_t i = 0; i < 100; i++)
        in_use[i] = block_get(100 * KIB);
    return result;
}

static int end(void **state)
{
    for (size_t i = 0; i < 100; i++) {
        heap_free(in_use[i]);
        in_use[i] = NULL;
    }
    cache_flush(thread_self.cache);
    thread_self.cache->quick->spared = 0;
    assert_heap_sound();
    return options_reset(state);
}

/* Blocks that are taken and freed, with others between them, so that their spans stay. */
static char *blocks[BLOCKS], *walls[BLOCKS];

static void take_all(size_t bytes)
{
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = block_get(bytes);
}

static void free_all(char **all)
{
    for (size_t i = 0; i < BLOCKS; i++)
        heap_free(all[i]);
}

static void take_with_walls(size_t bytes)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = block_get(bytes);
        walls[i] = block_get(1500);
    }
}

/* Nearly all of these come from free cells: that none waits is noticed nevertheless. */
TEST(what_free_cells_serve_lets_more_wait)
{
    options.dirty = MIB;
    options.thread_cache = GIB;
    take_with_walls(1500);
    free_all(blocks);
    size_t least = thread_self.cache->quick->limit, most = 0;
    for (unsigned round = 0; round < 10; round++) {
        take_all(1500);
        for (size_t i = 0; i < BLOCKS; i++) {
            heap_free(blocks[i]);
            most = size_max(most, thread_self.cache->quick->limit);
        }
    }
    ASSERT_THAT(most >= 2 * least, "%zu after %zu", most, least);
    free_all(walls);
}

/* Small cells may wait though they are between large free ones, but not when a span is needed. */
TEST(a_few_cells_that_wait_keep_no_memory_apart)
{
    enum { BLOCK = 50 * KIB, LEFT = 1100, COUNT = 40, WHOLE = 100 * KIB };
    options.dirty = MIB;
    for (size_t i = 0; i < COUNT; i++)
        blocks[i] = block_get(BLOCK);
    /* What they leave behind them is free. Little by little, or they would move. */
    for (size_t i = 0; i < COUNT; i++)
        for (size_t bytes = BLOCK; bytes > LEFT;) {
            bytes = size_max(bytes * 5 / 8, LEFT);
            assert_ptr_equal(heap_resize(blocks[i], bytes), blocks[i]);
        }
    for (size_t i = 0; i < COUNT; i++)
        heap_free(blocks[i]);
    size_t waits = quick_bytes(thread_self.cache->quick), cells, count = 0;
    ASSERT_THAT(waits >= COUNT * LEFT && waits < QUICK_LIMIT_LEAST, "%zu", waits);
    /* Two of these places in a row serve; only some at the ends of spans do not. */
    for (cells = heap_totals().cells; heap_totals().cells <= cells; count++)
        blocks[count] = block_get(WHOLE);
    assert_in_range(count, COUNT / 2 - 3, BLOCKS);
    while (count != 0)
        heap_free(blocks[--count]);
}

TEST(a_large_cell_that_waits_alone_is_joined_for_the_next_request)
{
    options.dirty = MIB;
    options.thread_cache = GIB;
    heap_free(block_get(50 * KIB)); /* a free cell that would do */
    cache_flush(thread_self.cache);
    thread_self.cache->quick->regret = 0; /* of the tests before this one */
    for (unsigned i = 0; i < 8; i++)
        heap_free(block_get(CELL_MOST));
    assert_int_equal(thread_self.cache->quick->lent, 1);
    char *block = block_get(20 * KIB);
    assert_int_equal(thread_self.cache->quick->lent, 0);
    assert_int_equal(quick_bytes(thread_self.cache->quick), 0);
    heap_free(block);
}

/* Of so many blocks, one at a time, of any sizes: how many had to be cut. */
static size_t count_cut(size_t times, uint64_t *random)
{
    uint64_t before = heap_totals().cells_taken;
    for (size_t i = 0; i < times; i++)
        heap_free(block_get((1100 + random_below(random, 1000)) << random_below(random, 5)));
    return (size_t)(heap_totals().cells_taken - before);
}

/* Nothing is gained by joining them: the next of their sizes would be cut again. */
TEST(cells_of_ever_other_sizes_come_to_wait)
{
    enum { TIMES = 10000 };
    uint64_t random = 1;
    size_t first = count_cut(TIMES, &random);
    count_cut(3 * TIMES, &random);
    size_t then = count_cut(TIMES, &random);
    assert_in_range(thread_self.cache->quick->spared, 2, 3);
    ASSERT_THAT(first > TIMES / 4 && then < TIMES / 10, "%zu after %zu", then, first);
}

/* As it costs next to no time. */
TEST(cells_that_are_joined_seldom_are_not_spared)
{
    uint64_t random = 1;
    clock_goes = true;
    count_cut(10000, &random);
    assert_int_equal(thread_self.cache->quick->spared, 0);
}

/* In one that grows all that is spared is memory more. */
TEST(a_heap_that_grows_spares_little)
{
    enum { ROUNDS = 6, TAKEN = 200, LONG = 60 * KIB, LONG_MOST = 40 };
    static char *grown[ROUNDS][TAKEN], *longer[ROUNDS][LONG_MOST];
    uint64_t random = 1;
    struct quick *quick = thread_self.cache->quick;
    quick->spared = 3;
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < TAKEN; i++)
            grown[round][i] = block_get(1100 + random_below(&random, 10000));
        for (size_t i = 0; i < TAKEN; i += 2) {
            heap_free(grown[round][i]);
            grown[round][i] = NULL;
        }
        /* Joined, they are still too short, as no two of them are neighbours. */
        for (size_t i = 0; quick_bytes(quick) != 0; i++) {
            assert_true(i < LONG_MOST);
            longer[round][i] = block_get(LONG);
        }
    }
    assert_int_equal(quick->spared, 0);
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < TAKEN; i++)
            heap_free(grown[round][i]);
        for (size_t i = 0; i < LONG_MOST; i++)
            heap_free(longer[round][i]);
    }
}

/* A span of pages that were kept is none for a heap. */
TEST(memory_that_was_kept_makes_no_heap_grow)
{
    for (size_t round = 0; round < 3; round++) {
        size_t spans = heap_totals().cells;
        uint32_t fresh = page_heap_fresh(&heap_default.page_heap);
        take_all(10 * KIB); /* less than a heap keeps */
        assert_true(heap_totals().cells > spans);
        if (round != 0)
            assert_int_equal(page_heap_fresh(&heap_default.page_heap), fresh);
        free_all(blocks);
        cache_flush(thread_self.cache);
    }
}

/* Its header lies in the page before. */
TEST(a_cell_at_the_beginning_of_a_page_waits)
{
    enum { BLOCK = 2000, TRIES = 10 };
    char *others[TRIES];
    size_t count = 0;
    char *block = heap_alloc_aligned(PAGE_BYTES / 2, BLOCK);
    for (; (uintptr_t)block % PAGE_BYTES != 0; count++) {
        assert_true(count < TRIES);
        others[count] = block;
        block = heap_alloc_aligned(PAGE_BYTES / 2, BLOCK);
    }
    size_t waited = quick_bytes(thread_self.cache->quick);
    heap_free(block);
    assert_true(quick_bytes(thread_self.cache->quick) >= waited + BLOCK);
    assert_ptr_equal(block_get(BLOCK), block);
    heap_free(block);
    while (count != 0)
        heap_free(others[--count]);
}

TEST(what_free_cells_serve_is_counted)
{
    take_with_walls(5000);
    free_all(blocks);
    cache_flush(thread_self.cache);
    struct heap_totals before = heap_totals();
    take_all(5000);
    struct heap_totals after = heap_totals();
    assert_int_equal(after.cells_taken - before.cells_taken, BLOCKS);
    assert_int_equal(after.cells_count - before.cells_count, BLOCKS);
    assert_int_equal(after.cells, before.cells); /* no new span */
    free_all(blocks);
    free_all(walls);
}

/* Where blocks were written to, calloc finds them again: 0 = in the quick lists, 1 = joined. */
TEST(zeroed_blocks_come_back_clear)
{
    for (unsigned joined = 0; joined < 2; joined++) {
        take_with_walls(1500);
        for (size_t i = 0; i < BLOCKS; i++)
            memset(blocks[i], 0xA5, 1500);
        char *last = blocks[BLOCKS - 1];
        free_all(blocks);
        if (joined == 1)
            cache_flush(thread_self.cache);
        size_t waited = quick_bytes(thread_self.cache->quick);
        struct heap_totals before = heap_totals();
        char *first = blocks[0] = heap_alloc_zero(1500);
        assert_true(joined == 1 || first == last);
        assert_int_equal(quick_bytes(thread_self.cache->quick) < waited, joined == 0);
        for (size_t i = 1; i < BLOCKS; i++)
            blocks[i] = heap_alloc_zero(1500);
        assert_int_equal(heap_totals().cells, before.cells); /* no new span */
        for (size_t i = 0; i < BLOCKS; i++)
            ASSERT_THAT(all_zero(blocks[i], 1500), "block %zu, joined %u", i, joined);
        free_all(blocks);
        free_all(walls);
    }
}

/* As if the thread had moved to another processor. */
static void exchange_arenas(void)
{
    struct arena **list = heap_default.arenas.list, *here = list[0];
    list[0] = list[1];
    list[1] = here;
}

/* A block that comes from the other arena, as the best free cell of this one is damaged. */
static void assert_served_and_told(void)
{
    heap_default.arenas.most = 0; /* a span more is not worth it */
    stderr_capture();
    char *block = block_get(4900);
    assert_non_null(strstr(stderr_restore(), ", was written to, found 0xdeadbeef0"));
    assert_ptr_equal(((struct span *)page_map_entry((uintptr_t)block))->owner,
                     &heap_default.arenas.list[1]->cells);
    heap_free(block);
    cache_flush(thread_self.cache);
}

TEST(damage_is_told_though_another_arena_serves)
{
    options.misuse = MISUSE_WARN;
    cache_flush(thread_self.cache);
    assert_non_null(arena_made(&heap_default.arenas, 1));
    exchange_arenas();
    heap_default.arenas.most = SIZE_MAX / 2; /* this one grows */
    char *damaged = block_get(5000), *wall = block_get(5000);
    char *waits = block_get(3000), *behind = block_get(5000);
    for (size_t i = 0; i < 100; i += 2) {
        heap_free(in_use[i]);
        in_use[i] = NULL;
    }
    heap_free(damaged);
    cache_flush(thread_self.cache);
    struct free_links *links = cell_links(cell_of((uintptr_t)damaged)), sound = *links;
    links->next = (struct free_links *)0xdeadbeef0;
    heap_free(waits);
    assert_true(cache_has_cells(thread_self.cache));
    assert_served_and_told();
    assert_false(cache_has_cells(thread_self.cache));
    assert_served_and_told();
    *links = sound;
    heap_free(wall);
    heap_free(behind);
    exchange_arenas();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        /* These three first, in a heap that has no free cells. */
        ROW_WITH(cells_that_are_joined_seldom_are_not_spared, begin_empty, end),
        ROW_WITH(cells_of_ever_other_sizes_come_to_wait, begin_empty, end),
        ROW_WITH(a_heap_that_grows_spares_little, begin_empty, end),
        ROW_WITH(what_free_cells_serve_lets_more_wait, begin, end),
        ROW_WITH(a_large_cell_that_waits_alone_is_joined_for_the_next_request, begin, end),
        ROW_WITH(memory_that_was_kept_makes_no_heap_grow, begin_empty, end),
        ROW_WITH(a_cell_at_the_beginning_of_a_page_waits, begin, end),
        ROW_WITH(what_free_cells_serve_is_counted, begin, end),
        ROW_WITH(zeroed_blocks_come_back_clear, begin, end),
        ROW_WITH(a_few_cells_that_wait_keep_no_memory_apart, begin, end),
        ROW_WITH(damage_is_told_though_another_arena_serves, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
