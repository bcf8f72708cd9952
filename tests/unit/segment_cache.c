/*
 * Tests of pageheap/segment_cache.h: order, which segment is taken, the bounds; and planted faults
 * for segment_cache_check. The segments are made up: the cache never looks at their memory.
 */
#include "support.h"

#include "pageheap/segment_cache.h"

enum { SEGMENTS = 6 };

static struct segment segments[SEGMENTS];
static struct segment_cache cache;

/* Segment i has 100 * (i + 1) pages and lies at a multiple of 1 MiB << i. */
static int begin(void **state)
{
    segment_cache_init(&cache);
    for (size_t i = 0; i < SEGMENTS; i++) {
        segments[i] = (struct segment){.start = (char *)((MIB << i) | MIB << (i + 8)),
                                       .pages = 100 * (i + 1),
                                       .longest = (uint32_t)(100 * (i + 1))};
        list_init(&segments[i].link);
    }
    return options_reset(state);
}

static void put(size_t i, uint32_t dirty, uint64_t now)
{
    segments[i].dirty_pages = dirty;
    segment_cache_put(&cache, &segments[i], now);
    assert_null(segment_cache_check(&cache));
}

/* Takes one out, and puts it back without pages in memory. */
static void put_back_clean(size_t i)
{
    segment_cache_remove(&cache, &segments[i]);
    segments[i].dirty_pages = 0;
    segment_cache_put_back(&cache, &segments[i]);
    assert_null(segment_cache_check(&cache));
}

static const struct segment_cache_bounds wide = {100, 100000, 1000};

TEST(what_is_put_is_counted)
{
    put(0, 10, 1);
    put(1, 0, 2);
    put(2, 300, 3);
    assert_int_equal(cache.count, 3);
    assert_int_equal(cache.pages, 600);
    assert_int_equal(cache.dirty_pages, 310);
    assert_ptr_equal(segment_cache_oldest(&cache), &segments[0]);
    segment_cache_remove(&cache, &segments[1]);
    assert_int_equal(cache.count, 2);
    assert_int_equal(cache.pages, 400);
    put_back_clean(2);
    assert_int_equal(cache.dirty_pages, 10);
    assert_ptr_equal(segment_cache_oldest_dirty(&cache), &segments[0]);
    put_back_clean(0);
    assert_null(segment_cache_oldest_dirty(&cache));
    assert_null(segment_cache_check(&cache));
}

/* The check sees to it that the list is in the order of ages. */
TEST(what_is_put_back_is_as_old_as_it_was)
{
    for (size_t i = 0; i < 4; i++)
        put(i, 10, 1 + i / 2); /* two of each age */
    for (size_t i = 0; i < 4; i++) {
        put_back_clean(i);
        assert_int_equal(segments[i].emptied, 1 + i / 2);
        assert_int_equal(cache.count, 4);
    }
    segment_cache_remove(&cache, &segments[0]);
    segment_cache_remove(&cache, &segments[1]);
    assert_true(segment_cache_oldest(&cache)->emptied == 2);
    segment_cache_put_back(&cache, &segments[0]);
    assert_ptr_equal(segment_cache_oldest(&cache), &segments[0]);
    assert_null(segment_cache_check(&cache));
}

TEST(the_oldest_dirty_one_is_found)
{
    put(0, 0, 1);
    put(1, 7, 2);
    put(2, 0, 3);
    put(3, 5, 4);
    assert_ptr_equal(segment_cache_oldest(&cache), &segments[0]);
    assert_ptr_equal(segment_cache_oldest_dirty(&cache), &segments[1]);
}

TEST(dirty_segments_are_taken_first_then_small_ones)
{
    put(1, 0, 1);
    put(3, 1, 2);
    put(4, 1, 3);
    put(2, 0, 4);
    assert_null(segment_cache_take(&cache, 501, false));
    assert_ptr_equal(segment_cache_take(&cache, 150, false), &segments[3]);
    assert_ptr_equal(segment_cache_take(&cache, 150, false), &segments[4]);
    assert_ptr_equal(segment_cache_take(&cache, 150, false), &segments[1]);
    assert_ptr_equal(segment_cache_take(&cache, 150, false), &segments[2]);
    assert_null(segment_cache_take(&cache, 1, false));
    assert_int_equal(cache.count, 0);
}

TEST(a_run_must_fit_into_what_is_taken)
{
    put(5, 300, 1);
    segments[5].longest = 300;
    assert_null(segment_cache_take(&cache, 301, false));
    assert_ptr_equal(segment_cache_take(&cache, 300, false), &segments[5]);
}

TEST(where_half_is_dirty_all_of_a_segment_counts)
{
    put(5, 300, 1);
    segments[5].longest = 300;
    assert_null(segment_cache_take(&cache, 500, false));
    assert_null(segment_cache_take(&cache, 601, true));
    segments[5].dirty_pages--;
    assert_null(segment_cache_take(&cache, 600, true));
    segments[5].dirty_pages++;
    assert_ptr_equal(segment_cache_take(&cache, 600, true), &segments[5]);
}

TEST(whole_segments_are_taken_by_length_and_alignment)
{
    for (size_t i = 0; i < SEGMENTS; i++)
        put(i, i % 2, i);
    assert_null(segment_cache_take_whole(&cache, 301, 399, PAGE_BYTES));
    assert_null(segment_cache_take_whole(&cache, 100, 250, 4 * MIB));
    assert_ptr_equal(segment_cache_take_whole(&cache, 300, 600, 4 * MIB), &segments[3]);
    assert_ptr_equal(segment_cache_take_whole(&cache, 90, 110, PAGE_BYTES), &segments[0]);
    assert_ptr_equal(segment_cache_take_whole(&cache, 500, 500, PAGE_BYTES), &segments[4]);
    assert_null(segment_cache_take_whole(&cache, 500, 500, PAGE_BYTES));
    assert_int_equal(cache.count, 3);
    assert_null(segment_cache_check(&cache));
}

TEST(the_bounds_make_the_oldest_leave)
{
    struct segment_cache_bounds bounds = wide;
    assert_null(segment_cache_surplus(&cache, &bounds, 5000));
    put(0, 0, 1000);
    put(1, 0, 1500);
    assert_null(segment_cache_surplus(&cache, &bounds, 2000));
    assert_ptr_equal(segment_cache_surplus(&cache, &bounds, 2001), &segments[0]);
    assert_null(segment_cache_surplus(&cache, &bounds, 500)); /* clocks of processors may differ */
    bounds.age = UINT64_MAX;
    assert_null(segment_cache_surplus(&cache, &bounds, UINT64_MAX));
    bounds.count = 1;
    assert_ptr_equal(segment_cache_surplus(&cache, &bounds, 1500), &segments[0]);
    bounds = wide;
    bounds.pages = 299;
    assert_ptr_equal(segment_cache_surplus(&cache, &bounds, 1500), &segments[0]);
    bounds.pages = 300;
    assert_null(segment_cache_surplus(&cache, &bounds, 1500));
}

#define PLANT(field, damage, expected) \
    ASSERT_FOUND(field, damage, segment_cache_check(&cache), expected)

TEST(damage_is_found)
{
    put(0, 3, 1);
    put(1, 0, 2);
    static const char counts[] = "the counts of the cache of segments are wrong";
    PLANT(cache.count, 1, counts);
    PLANT(cache.pages, 299, counts);
    PLANT(cache.dirty_pages, 4, counts);
    PLANT(segments[1].dirty_pages, 1, counts);
    PLANT(segments[0].used_pages, 1, "a segment in the cache is in use");
    PLANT(segments[0].emptied, 3, "the cache of segments is out of order");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(what_is_put_is_counted, begin, options_reset),
        ROW_WITH(what_is_put_back_is_as_old_as_it_was, begin, options_reset),
        ROW_WITH(the_oldest_dirty_one_is_found, begin, options_reset),
        ROW_WITH(dirty_segments_are_taken_first_then_small_ones, begin, options_reset),
        ROW_WITH(a_run_must_fit_into_what_is_taken, begin, options_reset),
        ROW_WITH(where_half_is_dirty_all_of_a_segment_counts, begin, options_reset),
        ROW_WITH(whole_segments_are_taken_by_length_and_alignment, begin, options_reset),
        ROW_WITH(the_bounds_make_the_oldest_leave, begin, options_reset),
        ROW_WITH(damage_is_found, begin, options_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
