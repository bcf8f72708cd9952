/*
 * Tests of pageheap/growth.h: huge pages for a heap of slabs that fills fast.
 */
#include "huge_pages_support.h"

#include "options/options.h"
#include "pageheap/growth.h"

/* ---- The rule ---- */

static uint64_t now;

static uint64_t clock_of_test(void)
{
    return now;
}

/* A heap that fills a page in so many nanoseconds. */
static struct growth growth_of(uint64_t each)
{
    struct growth growth = {0, 0, 0};
    now = FAKE_SECOND;
    for (size_t i = 0; i < 3 * GROWTH_PAGES; i += 8, now += 8 * each)
        growth_note(&growth, 8, clock_of_test);
    return growth;
}

TEST(nothing_is_known_of_the_first_pages)
{
    struct growth growth = {0, 0, 0};
    now = FAKE_SECOND;
    growth_note(&growth, 8, clock_of_test);
    assert_false(growth_pays(&growth, FAKE_SECOND, 0, SIZE_MAX / FAKE_SECOND));
    for (size_t i = 0; i < GROWTH_PAGES; i += 8) {
        assert_int_equal(growth.elapsed, 0);
        now += 8 * 1000;
        growth_note(&growth, 8, clock_of_test);
    }
    assert_int_equal(growth.elapsed, GROWTH_PAGES * 1000);
}

TEST(the_time_is_of_as_many_pages_however_many_come_at_once)
{
    struct growth growth = {0, 0, 0};
    now = FAKE_SECOND;
    growth_note(&growth, 8, clock_of_test);
    now += 3 * GROWTH_PAGES * 1000;
    growth_note(&growth, 3 * GROWTH_PAGES, clock_of_test);
    assert_int_equal(growth.elapsed, GROWTH_PAGES * 1000);
}

TEST(shares_of_time_and_memory_are_weighed)
{
    struct growth growth = growth_of(1000);
    uint64_t half = GROWTH_PAGES * 500; /* of the time is saved */
    size_t border = 2 * TIME_FOR_MEMORY * GROWTH_PAGES;
    assert_true(growth_pays(&growth, half, GROWTH_PAGES, border));
    assert_false(growth_pays(&growth, half, GROWTH_PAGES, border - 1));
    assert_true(growth_pays(&growth, half, GROWTH_PAGES / 2, border / 2));
    assert_false(growth_pays(&growth, half / 2, GROWTH_PAGES, 2 * border - 1));
    growth = growth_of(100000);
    assert_false(growth_pays(&growth, half, GROWTH_PAGES, 100 * border - 1));
    assert_true(growth_pays(&growth, half, 0, 1)); /* it wastes nothing */
}

TEST(no_more_than_all_of_the_time_is_saved)
{
    struct growth growth = growth_of(1);
    assert_false(
        growth_pays(&growth, GROWTH_PAGES * 500, GROWTH_PAGES, TIME_FOR_MEMORY * GROWTH_PAGES - 1));
}

/* ---- A heap ---- */

/* Takes pieces, a page of which takes so long, until so much is taken. */
static void fill_slowly(size_t bytes, uint64_t each)
{
    for (size_t done = 0; done < bytes; done += PIECE_BYTES) {
        piece_take();
        fake_now_exact += PIECE * each;
    }
}

static size_t filled(void)
{
    return taken_count * PIECE_BYTES;
}

static int begin(void **state)
{
    int result = packed_begin(state);
    shop.early = true;
    return result;
}

TEST(a_heap_that_fills_fast_has_huge_pages_early)
{
    while (shop.huge == 0)
        fill_slowly(PIECE_BYTES, shop.small_ns);
    /* Half of the time is saved: after 8 MiB, and at the next border. */
    assert_in_range(filled(), 4 * OS_HUGE_PAGE, 6 * OS_HUGE_PAGE);
    fill_slowly(4 * OS_HUGE_PAGE, shop.small_ns);
    assert_int_equal(shop.huge, 5); /* and then each */
    give_all();
}

TEST(a_heap_that_fills_slowly_has_none)
{
    fill_slowly(SHARE_BYTES, 10 * shop.small_ns);
    assert_int_equal(shop.huge + shop.small, 0);
    give_all();
}

TEST(a_heap_that_is_slow_from_now_on_has_no_more)
{
    fill_slowly(6 * OS_HUGE_PAGE, shop.small_ns);
    fill_slowly(2 * OS_HUGE_PAGE, 100 * shop.small_ns); /* the time that counts is of before */
    size_t huge = shop.huge;
    assert_true(huge != 0);
    fill_slowly(6 * OS_HUGE_PAGE, 100 * shop.small_ns);
    assert_int_equal(shop.huge, huge);
    give_all();
}

/* Fills fast, with one span of others for every so many bytes of slabs. */
static void fill_among(enum span_kind others, size_t bytes, size_t every)
{
    for (size_t done = 0; done < bytes; done += PIECE_BYTES) {
        if (done % every == 0)
            alloc_by(span_alloc, others, MIB / 2 >> PAGE_SHIFT, PAGE_BYTES);
        piece_take();
        fake_now_exact += PIECE * shop.small_ns;
    }
}

TEST(where_others_are_more_than_an_eighth_nothing_is_bought_early)
{
    fill_among(SPAN_LARGE, SHARE_BYTES - PIECE_BYTES, 3 * MIB);
    assert_int_equal(shop.huge, 0);
    give_all();
}

TEST(cells_count_as_others)
{
    fill_among(SPAN_CELLS, SHARE_BYTES - 8 * MIB, 3 * MIB);
    assert_int_equal(shop.huge, 0);
    give_all();
}

TEST(fewer_are_no_hindrance)
{
    fill_among(SPAN_LARGE, SHARE_BYTES - PIECE_BYTES, 6 * MIB);
    assert_true(shop.huge > 4);
    give_all();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(nothing_is_known_of_the_first_pages),
        ROW(the_time_is_of_as_many_pages_however_many_come_at_once),
        ROW(shares_of_time_and_memory_are_weighed),
        ROW(no_more_than_all_of_the_time_is_saved),
        ROW_WITH(a_heap_that_fills_fast_has_huge_pages_early, begin, packed_end),
        ROW_WITH(a_heap_that_fills_slowly_has_none, begin, packed_end),
        ROW_WITH(a_heap_that_is_slow_from_now_on_has_no_more, begin, packed_end),
        ROW_WITH(where_others_are_more_than_an_eighth_nothing_is_bought_early, begin, packed_end),
        ROW_WITH(cells_count_as_others, begin, packed_end),
        ROW_WITH(fewer_are_no_hindrance, begin, packed_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
