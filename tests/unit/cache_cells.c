/*
 * Tests of magazine/quick.h and of magazine/cache.h for cells: which list a size has, which cell
 * serves which request, how much may wait, and damaged cells.
 */
#include "cache_support.h"

#include <stdio.h>
#include <string.h>

#include "cell_calls.h"
#include "options/options.h"
#include "platform/check.h"

/* Takes and gives a cell as alloc.c does. */
static uintptr_t block_get(size_t bytes)
{
    void *block = cache_pop_cell(cache, bytes);
    if (block == NULL) {
        struct misuse misuse;
        size_t dirty;
        cache_miss_cell(cache, bytes);
        block = arenas_alloc_cell(&arenas, bytes, MIN_ALIGN, CELLS_NEW, &misuse, &dirty);
        assert_int_equal(misuse.kind, MISUSE_NONE);
    }
    assert_non_null(block);
    assert_true(cell_bytes((uintptr_t)block) >= bytes);
    assert_int_equal(cell_misuse((uintptr_t)block).kind, MISUSE_NONE);
    return (uintptr_t)block;
}

/* The same at a multiple of an alignment; counts those that waited. */
static uintptr_t block_get_aligned(size_t alignment, size_t bytes, size_t *found)
{
    void *block = cache_pop_cell_aligned(cache, alignment, bytes);
    *found += block != NULL;
    if (block == NULL) {
        struct misuse misuse;
        size_t dirty;
        cache_miss_cell_aligned(cache, bytes);
        block = arenas_alloc_cell(&arenas, bytes, alignment, CELLS_NEW, &misuse, &dirty);
    }
    assert_non_null(block);
    assert_int_equal(cell_misuse((uintptr_t)block).kind, MISUSE_NONE);
    return (uintptr_t)block;
}

static void block_put(uintptr_t block)
{
    if (!cache_push_cell(cache, block))
        cache_free_cell(cache, block);
    assert_false(cell_is_live(cell_of(block)));
    assert_true(quick_bytes(cache->quick) <= cache->quick->limit);
}

static void assert_lists_sound(void)
{
    const char *wrong = quick_check(cache->quick);
    if (wrong != NULL)
        fail_msg("%s", wrong);
}

/* A block at the beginning of a page is not cached at once; most tests want one that is. */
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

/* The list whose newest cell a block is; QUICK_LISTS if it is none's. */
static size_t list_of_block(uintptr_t block)
{
    for (size_t list = 0; list < QUICK_LISTS; list++)
        if (quick_block(cache->quick->list[list]) == block)
            return list;
    return QUICK_LISTS;
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
        cache_free_cell(cache, in_use[i]);
    return cache_end(state);
}

/* ---- Lists ---- */

TEST(lists_are_parts_of_a_doubling)
{
    size_t previous = 0, least = 16;
    for (size_t units = 16; units <= 8192; units++) {
        size_t list = quick_list_of(units);
        ASSERT_THAT(list < QUICK_LISTS && (list == previous || list == previous + 1),
                    "%zu units: list %zu after %zu", units, list, previous);
        if (list != previous)
            least = units;
        /* Of two units, or less than a thirty-second, with the offset. */
        ASSERT_THAT(units - least <= (units + CELL_SORT_OFFSET) / 32,
                    "%zu units in a list with %zu", units, least);
        previous = list;
    }
    assert_int_equal(quick_list_of(16), 0);
    assert_int_equal(quick_list_of(79), 31);
    assert_int_equal(quick_list_of(80), 32);
    assert_int_equal(quick_list_of(8192), QUICK_LISTS - 1);
    assert_true(quick_list_of(15) >= QUICK_LISTS);
    assert_true(quick_list_of(8192 + 256) >= QUICK_LISTS);
}

TEST(a_cell_waits_in_the_list_of_its_size)
{
    for (size_t bytes = BYTES_SHORT + 1; bytes < 32 * KIB; bytes += 97) {
        uintptr_t block = block_get_cached(bytes);
        block_put(block);
        assert_int_equal(list_of_block(block), quick_list_of(cell_of(block)->units));
        assert_int_equal(quick_bytes(cache->quick), cell_of(block)->units * CELL_UNIT);
        assert_lists_sound();
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
        assert_true(cell_state_is_live(cell_of(block)->state));
        block_put(block);
        assert_int_equal((uintptr_t)cache_pop_cell(cache, cell_bytes(block)), block);
        assert_null(cache_pop_cell(cache, bytes));
        block_put(block);
        cache_flush(cache);
    }
}

TEST(a_cell_that_is_a_little_larger_will_do)
{
    for (size_t bytes = 1025; bytes < 28 * KIB; bytes += 131) {
        uintptr_t block = block_get_cached(bytes);
        size_t units = cell_of(block)->units;
        block_put(block);
        for (size_t less = units / 2 + 64; less <= units + 2; less++) {
            uintptr_t served = (uintptr_t)cache_pop_cell(cache, less * CELL_UNIT - CELL_HEADER);
            if (served != 0)
                assert_true(less <= units);
            /* Eight lists, each of which is between a 64th and a 32nd of a size apart. */
            if (less <= units && less >= units - units / 9)
                assert_int_equal(served, block);
            if (less < units - units / 3)
                assert_int_equal(served, 0);
            if (served != 0)
                block_put(served);
        }
        cache_flush(cache);
    }
}

TEST(the_newest_cell_of_a_list_goes_first)
{
    uintptr_t blocks[8];
    for (size_t i = 0; i < 8; i++)
        blocks[i] = block_get_cached(1500);
    for (size_t i = 0; i < 8; i++)
        block_put(blocks[i]);
    assert_lists_sound();
    for (size_t i = 8; i-- > 0;)
        assert_int_equal((uintptr_t)cache_pop_cell(cache, 1500), blocks[i]);
    assert_null(cache_pop_cell(cache, 1500));
    for (size_t i = 0; i < 8; i++)
        block_put(blocks[i]);
}

/* ---- Limits ---- */

/* Takes so many blocks and frees them; the greatest limit there was. */
static size_t limit_most_of(size_t bytes, size_t count)
{
    static uintptr_t blocks[1000];
    size_t most = 0;
    for (size_t i = 0; i < count; i++)
        blocks[i] = block_get(bytes);
    for (size_t i = 0; i < count; i++) {
        block_put(blocks[i]);
        most = size_max(most, cache->quick->limit);
    }
    return most;
}

TEST(more_may_wait_only_for_who_goes_up_and_down)
{
    enum { BLOCKS = 200 };
    static uintptr_t blocks[BLOCKS];
    options.dirty = MIB; /* by which the least may wait at first */
    options.thread_cache = GIB;
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = block_get(1500);
    for (size_t i = 0; i < BLOCKS; i++)
        block_put(blocks[i]);
    /* It ran over, and what was missed before the first cell was freed does not count. */
    size_t least = cache->quick->limit;
    assert_int_equal(least, 64 * KIB);
    size_t most = 0;
    for (unsigned round = 0; round < 10; round++) {
        for (size_t i = 0; i < BLOCKS; i++)
            blocks[i] = block_get(1500);
        for (size_t i = 0; i < BLOCKS; i++) {
            block_put(blocks[i]);
            most = size_max(most, cache->quick->limit);
        }
        assert_held(cache);
        assert_lists_sound();
        assert_arenas_sound();
    }
    assert_true(most >= 2 * least);
    /* Who asks for another size each time is left with the least again. */
    for (size_t bytes = 2000; bytes < 60000; bytes += bytes / 4)
        limit_most_of(bytes, BLOCKS);
    assert_int_equal(cache->quick->limit, least);
}

/* Requests find nothing and cells go back all the time, but never cells of the size that is asked
 * for. */
TEST(who_asks_for_other_sizes_misses_nothing)
{
    static const size_t sizes[] = {1500, 3000, 6000, 12000, 24000, 48000};
    options.dirty = MIB; /* by which the least may wait at first */
    options.thread_cache = GIB;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        assert_int_equal(limit_most_of(sizes[i], 200), 64 * KIB);
    assert_lists_sound();
}

TEST(what_went_back_long_ago_is_not_missed)
{
    options.dirty = MIB; /* by which the least may wait at first */
    options.thread_cache = GIB;
    limit_most_of(1500, 1000);
    limit_most_of(6000, 1000); /* goes back in some hundred parts */
    assert_int_equal(limit_most_of(1500, 100), 64 * KIB);
    limit_most_of(1500, 1000);
    assert_true(limit_most_of(1500, 1000) > 64 * KIB); /* of what went back just now it does */
}

/* What may wait at first if so many threads have caches. */
static size_t limit_for_threads(uint32_t threads)
{
    uint32_t before = arenas.threads;
    arenas.threads = threads;
    cache_flush(cache);
    uintptr_t block = block_get(1500);
    block_put(block);
    arenas.threads = before;
    return cache->quick->limit;
}

TEST(few_threads_may_have_more_of_what_a_heap_keeps_anyway)
{
    options.dirty = 4 * MIB;
    options.thread_cache = GIB;
    assert_int_equal(limit_for_threads(1), 256 * KIB);
    assert_int_equal(limit_for_threads(2), 128 * KIB);
    assert_int_equal(limit_for_threads(4), 64 * KIB);
    assert_int_equal(limit_for_threads(1000), 64 * KIB);
    options.dirty = 0;
    assert_int_equal(limit_for_threads(1), 64 * KIB);
    options.dirty = 4 * MIB;
    options.thread_cache = 64 * KIB;
    assert_int_equal(limit_for_threads(1), 32 * KIB);
}

/* Takes so many blocks and frees them, again and again; the greatest limit there was. */
static size_t limit_learned(size_t bytes, size_t count)
{
    size_t most = 0;
    for (unsigned round = 0; round < 10; round++)
        most = size_max(most, limit_most_of(bytes, count));
    assert_held(cache);
    assert_lists_sound();
    return most;
}

/* Cells go back some ten times on each way down, on which nothing is asked for: that does not count
 * as calm. */
TEST(as_much_as_a_heap_keeps_anyway_may_wait_where_it_is_missed)
{
    options.dirty = 2 * MIB;
    options.thread_cache = GIB;
    assert_int_equal(limit_learned(3000, 1000), 2 * MIB);
    assert_true(arenas_cells_use(&arenas).total > 2 * MIB);
}

TEST(no_more_than_all_spans_may_wait)
{
    options.dirty = 64 * MIB;
    options.thread_cache = GIB;
    size_t most = limit_learned(5000, 1000), total = arenas_cells_use(&arenas).total;
    assert_in_range(total, 4 * MIB + 1, 8 * MIB - 1); /* or the limit is not cut by it */
    assert_int_equal(most, total);
}

TEST(a_threads_lists_hold_twice_what_its_magazines_may)
{
    options.dirty = 64 * MIB;
    options.thread_cache = 512 * KIB;
    assert_int_equal(limit_learned(3000, 1000), MIB);
    /* What was learned is not taken from the magazines. */
    assert_in_range(cache->held_bytes, 1, options.thread_cache / 2);
    cache_flush(cache);
    options.thread_cache = 0;
    assert_int_equal(limit_learned(3000, 1000), 0);
}

static size_t limit_of_threads(uint32_t threads)
{
    uint32_t before = arenas.threads;
    arenas.threads = threads;
    cache_flush(cache);
    size_t most = limit_learned(3000, 1000);
    arenas.threads = before;
    return most;
}

TEST(threads_share_what_may_wait)
{
    options.dirty = MIB;
    options.thread_cache = GIB;
    assert_int_equal(limit_of_threads(1), MIB);
    assert_int_equal(limit_of_threads(2), MIB / 2);
    assert_int_equal(limit_of_threads(4), MIB / 4);
}

/* Threads that have learned and sleep do not look again at how many there are. */
TEST(what_all_threads_learn_is_bounded_too)
{
    struct cache *own = cache, *others[8];
    options.dirty = MIB;
    options.thread_cache = GIB;
    for (size_t i = 0; i < 8; i++) {
        cache = others[i] = cache_new(&arenas, false);
        limit_learned(3000, 1000);
        assert_in_range(page_heap.lists_kept, 1, MIB >> PAGE_SHIFT);
    }
    for (size_t i = 0; i < 8; i++)
        cache_free(others[i]);
    cache = own;
    assert_int_equal(page_heap.lists_kept, 0);
}

TEST(a_heap_with_a_quota_learns_no_more_than_a_thread_may_hold)
{
    options.dirty = 4 * MIB;
    options.thread_cache = 2 * MIB;
    arenas.held_most = 256 * KIB;
    assert_in_range(limit_learned(3000, 1000), 64 * KIB, 256 * KIB + 64 * KIB);
    arenas.held_most = SIZE_MAX;
}

TEST(where_free_pages_go_at_once_nothing_is_learned_of_what_is_kept)
{
    options.dirty = 4 * MIB;
    options.thread_cache = GIB;
    options.purge_delay = 0;
    size_t most = limit_learned(3000, 1000);
    ASSERT_THAT(most <= arenas_cells_use(&arenas).total / 12, "%zu", most);
}

/* A few cells of each span would keep it. */
TEST(after_a_peak_less_may_wait)
{
    enum { BLOCKS = 20000 };
    static uintptr_t blocks[BLOCKS];
    options.dirty = MIB;
    options.thread_cache = MIB;
    assert_int_equal(limit_learned(3000, 1000), MIB);
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = block_get(3000);
    for (size_t first = 0; first < 16; first++)
        for (size_t i = first; i < BLOCKS; i += 16)
            block_put(blocks[i]);
    assert_in_range(cache->quick->limit, 64 * KIB, MIB / 4 * 3); /* a twelfth of what is in use */
    assert_held(cache);
}

/* Magazines take all that the lists leave; then the other threads end, and the least rises. */
TEST(the_least_that_rises_is_within_what_a_thread_may_hold)
{
    static uintptr_t objects[600], blocks[200];
    uint32_t before = arenas.threads;
    options.dirty = 4 * MIB;
    options.thread_cache = 512 * KIB;
    arenas.threads = 4;
    block_put(block_get(1500));
    assert_int_equal(cache->quick->limit, 64 * KIB);
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        for (size_t i = 0; i < 600; i++)
            objects[i] = object_get(cache, class);
        for (size_t i = 0; i < 600; i++)
            object_put(cache, objects[i]);
    }
    assert_in_range(cache->held_bytes, 400 * KIB, options.thread_cache);
    arenas.threads = before;
    for (size_t i = 0; i < 200; i++)
        blocks[i] = block_get(1500);
    for (size_t i = 0; i < 200; i++)
        block_put(blocks[i]);
    assert_true(cache->held_bytes <= options.thread_cache);
    assert_held(cache);
}

TEST(what_may_wait_beyond_the_least_counts_as_kept)
{
    options.thread_cache = GIB;
    cache_flush(cache);
    size_t before = page_heap_base_of_cells(&page_heap, 0);
    block_put(block_get(1500));
    size_t least = cache->quick->limit;
    assert_int_equal(page_heap_base_of_cells(&page_heap, 0), before);
    cache->quick->wanted = cache->quick->regret = UINT32_MAX / 2;
    uintptr_t blocks[] = {block_get(CELL_MOST / 2), block_get(CELL_MOST / 2),
                          block_get(CELL_MOST / 2), block_get(CELL_MOST / 2),
                          block_get(CELL_MOST / 2)};
    for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++)
        block_put(blocks[i]);
    assert_true(cache->quick->limit > least);
    size_t less = before - page_heap_base_of_cells(&page_heap, 0);
    assert_int_equal(less, (cache->quick->limit - least) >> PAGE_SHIFT);
    cache_flush(cache);
    assert_int_equal(page_heap_base_of_cells(&page_heap, 0), before);
}

/* The same of requests with an alignment: what they do not find lets more wait. */
TEST(more_may_wait_for_aligned_requests_that_find_nothing)
{
    enum { BLOCKS = 200, ALIGNMENT = 64 };
    static uintptr_t blocks[BLOCKS];
    options.dirty = MIB; /* by which the least may wait at first */
    options.thread_cache = GIB;
    size_t most = 0, found = 0;
    for (unsigned round = 0; round < 10; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i] = block_get_aligned(ALIGNMENT, 1500, &found);
            assert_int_equal(blocks[i] % ALIGNMENT, 0);
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            block_put(blocks[i]);
            most = size_max(most, cache->quick->limit);
        }
        assert_lists_sound();
    }
    ASSERT_THAT(most >= 128 * KIB && found != 0, "%zu bytes, %zu found", most, found);
}

TEST(a_cell_that_waits_serves_only_what_it_is_aligned_for)
{
    enum { BLOCKS = 16, ALIGNMENT = 1024 };
    uintptr_t blocks[BLOCKS];
    size_t found = 0;
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = block_get(2000);
    for (size_t i = 0; i < BLOCKS; i++)
        block_put(blocks[i]);
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = block_get_aligned(ALIGNMENT, 2000, &found);
        assert_int_equal(blocks[i] % ALIGNMENT, 0);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        block_put(blocks[i]);
    found = 0;
    uintptr_t again = block_get_aligned(ALIGNMENT, 2000, &found);
    assert_int_equal(again, blocks[BLOCKS - 1]);
    assert_int_equal(found, 1);
    block_put(again);
    /* Nor does one for what a magazine serves, or nothing here. */
    static const volatile size_t others[] = {0, 1024, CELL_MOST + 1, SIZE_MAX};
    for (size_t i = 0; i < 4; i++)
        assert_null(cache_pop_cell_aligned(cache, 64, others[i]));
    assert_lists_sound();
}

TEST(a_twelfth_of_what_is_in_use_may_wait)
{
    enum { BLOCKS = 80 };
    static uintptr_t blocks[BLOCKS];
    size_t most = 0, used = 0;
    options.dirty = 0; /* by which nothing may wait */
    options.thread_cache = GIB;
    /* Each time it goes up and down by a little more than may wait. */
    for (size_t count = 8; count <= BLOCKS; count++) {
        for (size_t i = 0; i < count; i++)
            blocks[i] = block_get(8000);
        used = size_max(used, arenas_cells_use(&arenas).used);
        for (size_t i = 0; i < count; i++) {
            block_put(blocks[i]);
            most = size_max(most, cache->quick->limit);
        }
    }
    ASSERT_THAT(most <= used / 12 && most > used / 18, "%zu of %zu bytes", most, used);
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
        assert_lists_sound();
        assert_true(quick_bytes(cache->quick) <= 2 * limits[limit]);
        assert_true((cache->held_bytes == 0) == (limits[limit] == 0));
        cache_flush(cache);
        assert_int_equal(quick_bytes(cache->quick), 0);
        assert_int_equal(cache->held_bytes, 0);
    }
}

TEST(a_large_cell_waits_for_who_takes_it_over_and_over)
{
    size_t least = 64 * KIB;
    options.dirty = MIB; /* by which the least may wait at first */
    options.thread_cache = GIB;
    for (unsigned turn = 0; turn < 6; turn++) {
        uintptr_t large = block_get(CELL_MOST), small = block_get(1500);
        block_put(large); /* something else was asked for in between */
        assert_int_equal(quick_bytes(cache->quick), 0);
        block_put(small);
        assert_int_equal(block_get(1500), small); /* who is served asks nobody */
        cache_flush(cache);
        block_put(small);
        cache_flush(cache);
    }
    for (unsigned turn = 0; turn < 4; turn++) {
        block_put(block_get(CELL_MOST));
        assert_int_equal(quick_bytes(cache->quick), 0);
    }
    uintptr_t large = block_get(CELL_MOST);
    block_put(large);
    assert_true(quick_bytes(cache->quick) > CELL_MOST && cache->quick->limit > CELL_MOST);
    assert_held(cache);
    assert_int_equal(block_get(CELL_MOST), large);
    block_put(large);
    assert_lists_sound();
    /* What waits is there for the next who finds nothing. */
    uintptr_t other = block_get(30000);
    assert_int_equal(quick_bytes(cache->quick), 0);
    assert_int_equal(cache->quick->limit, least);
    assert_held(cache);
    block_put(other);
    cache_flush(cache);
}

TEST(sizes_that_nobody_asks_for_do_not_stay)
{
    options.dirty = MIB; /* by which the least may wait at first */
    uintptr_t stale = block_get_cached(9000);
    block_put(stale);
    static uintptr_t blocks[300];
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = 0; i < 300; i++)
            blocks[i] = block_get(1500);
        for (size_t i = 0; i < 300; i++)
            block_put(blocks[i]);
    }
    assert_true(cache->quick->list[quick_list_of(cell_units(9000))] == 0);
}

/* A byte counts the cells of a list; of more it is 0 again after each 256. */
TEST(however_many_cells_wait_in_a_list_they_are_counted)
{
    enum { MANY = 600 };
    static uintptr_t blocks[MANY];
    for (size_t i = 0; i < MANY; i++)
        blocks[i] = block_get_cached(1500);
    block_put(block_get_cached(9000)); /* so that there are lists */
    cache_flush(cache);
    quick_set_limit(cache->quick, MIB);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(cache_cells(NULL, cache).count, i);
        assert_true(cache_push_cell(cache, blocks[i]));
    }
    assert_lists_sound();
    for (size_t i = MANY; i != 0; i--) {
        assert_int_equal(cache_cells(NULL, cache).count, i);
        assert_int_equal((uintptr_t)cache_pop_cell(cache, 1500), blocks[i - 1]);
    }
    assert_lists_sound();
    quick_set_limit(cache->quick, 0);
    for (size_t i = 0; i < MANY; i++)
        cache_free_cell(cache, blocks[i]);
}

TEST(a_cell_too_small_for_the_lists_does_not_wait)
{
    block_put(block_get_cached(3000)); /* so that there is room */
    for (size_t bytes = 40; bytes < BYTES_SHORT - CELL_HEADER; bytes += 24) {
        struct misuse misuse;
        size_t dirty;
        uintptr_t block =
            (uintptr_t)arenas_alloc_cell(&arenas, bytes, MIN_ALIGN, CELLS_NEW, &misuse, &dirty);
        assert_int_equal(cell_of(block)->state, CELL_LIVE);
        assert_int_equal(cell_misuse(block).kind, MISUSE_NONE);
        assert_false(cache_push_cell(cache, block));
        cache_free_cell(cache, block);
        assert_lists_sound();
    }
    cache_flush(cache);
}

/* ---- At the call itself ---- */

TEST(a_free_is_carried_out_at_once)
{
    enum { LARGE = 100 };
    static uintptr_t large[LARGE], blocks[300];
    for (size_t i = 0; i < LARGE; i++)
        large[i] = block_get(CELL_MOST);
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = 0; i < 300; i++)
            blocks[i] = block_get(1500);
        for (size_t i = 0; i < 300; i++) {
            block_put(blocks[i]);
            assert_int_not_equal(cell_misuse(blocks[i]).kind, MISUSE_NONE);
            assert_false(cache_push_cell(cache, blocks[i]));
        }
    }
    for (size_t i = 0; i < LARGE; i++)
        block_put(large[i]);
    assert_lists_sound();
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
    assert_true(quick_bytes(cache->quick) > 0);
    cache_flush(cache);
    assert_int_equal(quick_bytes(cache->quick), 0);
    assert_int_equal(cache->quick->limit, 0);
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
    size_t cached = quick_bytes(cache->quick);
    uint64_t before = *(uint64_t *)(address / 8 * 8 - 8);
    assert_false(cache_push_cell(cache, address));
    assert_int_equal(quick_bytes(cache->quick), cached);
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
    cell_of(block)->state ^= 1;
    assert_not_pushed(block);
    cell_of(block)->state ^= 1;
    assert_true(cache_push_cell(cache, block));
}

/* What malloc says and does when the cell that should serve it has been written to. */
static void assert_lost(const char *expected)
{
    stderr_capture();
    assert_null(cache_pop_cell(cache, 3000));
    cache_miss_cell(cache, 3000);
    assert_string_equal(stderr_restore(), expected);
    assert_int_equal(quick_bytes(cache->quick), 0); /* it is lost, and not met again */
    assert_lists_sound();
    cache_miss_cell(cache, 3000);
}

TEST(a_cell_damaged_while_it_waited_is_not_handed_out)
{
    options.misuse = MISUSE_WARN;
    for (unsigned i = 0; i < 3; i++) {
        uintptr_t block = block_get_cached(3000);
        block_put(block);
        struct cell sound = *cell_of(block);
        if (i == 0)
            cell_of(block)->check ^= 1;
        else if (i == 1)
            *(char *)cell_of(block) ^= 1; /* by one byte */
        else
            memset(cell_of(block), 0x41, sizeof(sound)); /* a string ran over */
        char expected[128];
        snprintf(expected, sizeof(expected),
                 "snug: invalid malloc: the header of the object at %#zx was overwritten\n", block);
        assert_lost(expected);
        *cell_of(block) = sound;
        cells_free(&block, 1);
    }
}

TEST(a_cell_written_to_after_it_was_freed_leads_nowhere)
{
    options.misuse = MISUSE_WARN;
    static const uint64_t written[] = {0, 1, 0x4141414141414141, UINT64_MAX};
    for (size_t i = 0; i < 4; i++) {
        uintptr_t older = block_get_cached(3000), block = block_get_cached(3000);
        block_put(older);
        block_put(block);
        *(uint64_t *)block = written[i];
        char expected[128];
        snprintf(expected, sizeof(expected),
                 "snug: use after free: %#zx, a %zu-byte object, was written to, found 0x%zx\n",
                 block, cell_bytes(block), (size_t)written[i]);
        assert_lost(expected);
        cell_set_state(block, CELL_CACHED); /* what was written is its link now */
        cells_free(&block, 1);
        cells_free(&older, 1);
    }
}

#define PLANT(field, damage, expected) ASSERT_FOUND(field, damage, cache_check(cache), expected)

TEST(damage_in_a_threads_cache_is_found)
{
    static const char written[] = "a medium block was written to when it was free";
    uintptr_t older = block_get_cached(3000), block = block_get_cached(3000);
    block_put(older);
    block_put(block);
    for (unsigned i = 0; i < 2; i++, block = older) {
        PLANT(*(uint64_t *)block, 0, written);
        PLANT(*(uint64_t *)block, 0x4141414141414141, written);
        assert_int_equal(check_place(), block);
        PLANT(cell_of(block)->check, 0, "a cell's header is damaged");
        PLANT(cell_of(block)->units, 3, "a cell's header is damaged");
    }
    uintptr_t object = object_get(cache, CLASS_64);
    object_put(cache, object);
    PLANT(*object_key_word(object), 0, "a small block was written to when it was free");
    PLANT(*cache->top[CLASS_64], older, "a magazine holds an object of another class");
    PLANT(cache->quick->room, cache->quick->room - 1, "the quick lists do not add up");
    PLANT(cache->quick->rounds, 1, "the quick lists do not add up");
    PLANT(cache->quick->waits[0], 1, "a quick list's byte is wrong");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(lists_are_parts_of_a_doubling, begin, end),
        ROW_WITH(a_cell_waits_in_the_list_of_its_size, begin, end),
        ROW_WITH(the_same_size_gets_the_same_cell, begin, end),
        ROW_WITH(a_cell_that_is_a_little_larger_will_do, begin, end),
        ROW_WITH(the_newest_cell_of_a_list_goes_first, begin, end),
        ROW_WITH(more_may_wait_only_for_who_goes_up_and_down, begin, end),
        ROW_WITH(few_threads_may_have_more_of_what_a_heap_keeps_anyway, begin, end),
        ROW_WITH(as_much_as_a_heap_keeps_anyway_may_wait_where_it_is_missed, begin, end),
        ROW_WITH(no_more_than_all_spans_may_wait, cache_begin, cache_end),
        ROW_WITH(a_threads_lists_hold_twice_what_its_magazines_may, begin, end),
        ROW_WITH(threads_share_what_may_wait, begin, end),
        ROW_WITH(what_all_threads_learn_is_bounded_too, begin, end),
        ROW_WITH(a_heap_with_a_quota_learns_no_more_than_a_thread_may_hold, begin, end),
        ROW_WITH(where_free_pages_go_at_once_nothing_is_learned_of_what_is_kept, begin, end),
        ROW_WITH(after_a_peak_less_may_wait, begin, end),
        ROW_WITH(the_least_that_rises_is_within_what_a_thread_may_hold, begin, end),
        ROW_WITH(what_may_wait_beyond_the_least_counts_as_kept, begin, end),
        ROW_WITH(more_may_wait_for_aligned_requests_that_find_nothing, begin, end),
        ROW_WITH(a_cell_that_waits_serves_only_what_it_is_aligned_for, begin, end),
        ROW_WITH(who_asks_for_other_sizes_misses_nothing, begin, end),
        ROW_WITH(what_went_back_long_ago_is_not_missed, begin, end),
        ROW_WITH(a_twelfth_of_what_is_in_use_may_wait, begin, end),
        ROW_WITH(cells_are_bounded_by_the_option, begin, end),
        ROW_WITH(a_large_cell_waits_for_who_takes_it_over_and_over, cache_begin, cache_end),
        ROW_WITH(sizes_that_nobody_asks_for_do_not_stay, begin, end),
        ROW_WITH(however_many_cells_wait_in_a_list_they_are_counted, begin, end),
        ROW_WITH(a_cell_too_small_for_the_lists_does_not_wait, begin, end),
        ROW_WITH(a_free_is_carried_out_at_once, begin, end),
        ROW_WITH(without_a_cache_cells_go_straight_back, begin, end),
        ROW_WITH(a_flush_gives_all_cells_back, begin, end),
        ROW_WITH(what_is_no_live_cell_is_not_pushed, begin, end),
        ROW_WITH(a_cell_damaged_while_it_waited_is_not_handed_out, begin, end),
        ROW_WITH(a_cell_written_to_after_it_was_freed_leads_nowhere, begin, end),
        ROW_WITH(damage_in_a_threads_cache_is_found, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
