/*
 * Tests of pageheap/growth.h: huge pages for a heap that fills fast, or that fills again.
 */
#include "huge_pages_support.h"

#include "options/options.h"
#include "pageheap/growth.h"
#include "pageheap/page_heap_purge.h"

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

/* Fills so much slowly, and gives all but the first piece back. */
static void fill_once(size_t bytes)
{
    fill_slowly(bytes, 10 * shop.small_ns);
    assert_int_equal(shop.huge, 0);
    while (taken_count > 1)
        span_put(taken[--taken_count]);
    page_heap_purge(&page_heap, 0);
}

TEST(what_was_filled_of_late_may_be_huge_next)
{
    fill_once(6 * OS_HUGE_PAGE);
    fill_slowly(6 * OS_HUGE_PAGE, 10 * shop.small_ns);
    assert_in_range(shop.huge, 4, 5);
    fill_slowly(SHARE_BYTES - filled(), 10 * shop.small_ns); /* beyond what it was */
    assert_in_range(shop.huge, 4, 5);
    give_all();
}

TEST(what_was_filled_long_ago_does_not_count)
{
    fill_once(6 * OS_HUGE_PAGE);
    fake_now += 100 * FAKE_SECOND;
    page_heap_ask_tick(&page_heap, fake_now);
    assert_true(page_heap_tick(&page_heap));
    fill_slowly(6 * OS_HUGE_PAGE, 10 * shop.small_ns);
    assert_int_equal(shop.huge, 0);
    give_all();
}

TEST(large_blocks_of_late_do_not_count)
{
    for (size_t done = 0; done < 8 * OS_HUGE_PAGE; done += MIB / 2)
        span_get(MIB / 2 >> PAGE_SHIFT);
    fill_slowly(2 * OS_HUGE_PAGE, 10 * shop.small_ns);
    assert_int_equal(shop.huge + shop.small, 0);
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
        ROW_WITH(what_was_filled_of_late_may_be_huge_next, begin, packed_end),
        ROW_WITH(what_was_filled_long_ago_does_not_count, begin, packed_end),
        ROW_WITH(large_blocks_of_late_do_not_count, begin, packed_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
