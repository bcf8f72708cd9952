/*
 * Tests of what a heap keeps and gives back as time passes (page_heap_purge.h, segments.h): peaks,
 * sawteeth, quiet, huge blocks in a loop, the options, and a system that refuses. The clock stands
 * still unless a test moves it.
 */
#include "page_heap_support.h"

#include <string.h>

#include "options/options.h"
#include "pageheap/large.h"

/* A peak of 64 MiB in spans of 16 pages; what is kept of it can be 4 MiB. */
enum { PEAK = 1024, PIECE = 16 };
#define PEAK_PAGES ((size_t)PEAK * PIECE)
#define BASE_PAGES ((size_t)1024)

static struct span *peak[PEAK];

static void peak_take(void)
{
    for (size_t i = 0; i < PEAK; i++)
        peak[i] = span_get(PIECE);
}

static void peak_give(void)
{
    for (size_t i = 0; i < PEAK; i++)
        span_put(peak[i * 7 % PEAK]);
    assert_page_heap_sound();
}

static void up_and_down(uint64_t gap)
{
    peak_take();
    peak_give();
    fake_now += gap;
}

static void *huge_alloc(size_t bytes)
{
    size_t dirty;
    char *block = large_alloc(&page_heap, bytes, PAGE_BYTES, &dirty);
    assert_non_null(block);
    for (size_t i = dirty; i < bytes; i += PAGE_BYTES)
        ASSERT_THAT(block[i] == 0, "at %zu of %zu", i, bytes);
    memset(block, 1, bytes);
    return block;
}

static void huge_free(void *block)
{
    assert_int_equal(large_free(&page_heap, (uintptr_t)block).kind, MISUSE_NONE);
    assert_page_heap_sound();
}

/* ---- Peaks ---- */

TEST(a_first_peak_goes_as_it_is_freed)
{
    up_and_down(0);
    assert_true(page_heap_kept_pages(&page_heap) <= BASE_PAGES);
    assert_true(fake.purged_bytes + fake.gives * 4 * MIB >= (PEAK_PAGES - BASE_PAGES) * PAGE_BYTES);
    assert_page_heap_empty();
}

TEST(a_second_peak_soon_after_is_kept)
{
    up_and_down(FAKE_SECOND / 10);
    peak_take();
    size_t purged = fake.purged_bytes;
    unsigned takes = fake.takes;
    peak_give();
    assert_true(page_heap_kept_pages(&page_heap) > PEAK_PAGES - BASE_PAGES);
    for (unsigned i = 0; i < 20; i++)
        up_and_down(FAKE_SECOND / 2);
    assert_int_equal(fake.purged_bytes, purged);
    assert_int_equal(fake.takes, takes);
    assert_page_heap_empty();
}

TEST(a_second_peak_long_after_goes_as_well)
{
    for (unsigned i = 0; i < 3; i++)
        up_and_down(2 * FAKE_SECOND); /* 64 MiB are worth keeping for one */
    assert_true(page_heap_kept_pages(&page_heap) <= BASE_PAGES);
    assert_page_heap_empty();
}

TEST(quiet_lets_go_of_what_was_learned)
{
    up_and_down(FAKE_SECOND / 10);
    up_and_down(FAKE_SECOND / 10);
    assert_true(page_heap_kept_pages(&page_heap) > BASE_PAGES);
    assert_false(page_heap_tick_is_due(&page_heap));
    /* Any slow path looks, and finds at the second look that nothing of it was used. What is wanted
     * is the peak and a little. */
    for (unsigned i = 0; i < 2; i++) {
        fake_now += FAKE_SECOND + FAKE_SECOND / 32;
        assert_true(page_heap_tick_is_due(&page_heap));
        page_heap_tick(&page_heap);
        assert_false(page_heap_tick_is_due(&page_heap));
        assert_page_heap_sound();
    }
    assert_true(page_heap_kept_pages(&page_heap) <= BASE_PAGES);
    assert_page_heap_empty();
}

/* Blocks of many lengths in place of each other: what is free is in pieces, so with an eighth of
 * room many a block finds none that is long enough, for ever. */
TEST(blocks_of_many_lengths_get_room_to_fit)
{
    enum { BLOCKS = 64, TURNS = 3000 };
    static void *blocks[BLOCKS];
    uint64_t random = 1;
    size_t purged[2] = {0, 0};
    for (size_t turn = 0; turn < 2 * TURNS; turn++) {
        void **block = &blocks[random_below(&random, BLOCKS)];
        if (*block != NULL)
            assert_int_equal(large_free(&page_heap, (uintptr_t)*block).kind, MISUSE_NONE);
        size_t dirty, bytes = 200 * KIB + random_below(&random, 1600 * KIB);
        *block = large_alloc(&page_heap, bytes, PAGE_BYTES, &dirty);
        assert_non_null(*block);
        size_t all = page_heap.used_pages + page_heap_kept_pages(&page_heap);
        ASSERT_THAT(2 * all <= 3 * page_heap.retention.high + 2 * BASE_PAGES, "%zu of %zu", all,
                    page_heap.retention.high);
        fake_now += FAKE_SECOND / 10000;
        purged[turn / TURNS] += fake.purged_bytes;
        fake.purged_bytes = 0;
    }
    ASSERT_THAT(5 * purged[1] < 2 * purged[0], "%zu and %zu", purged[0], purged[1]);
    for (size_t i = 0; i < BLOCKS; i++)
        huge_free(blocks[i]);
    assert_page_heap_empty();
}

TEST(what_is_kept_never_adds_to_a_peak)
{
    up_and_down(FAKE_SECOND / 10);
    up_and_down(FAKE_SECOND / 10);
    /* The same amount again, but in pieces for which nothing that is kept is long enough. */
    enum { LONG = 15 };
    void *blocks[LONG];
    for (size_t i = 0; i < LONG; i++) {
        blocks[i] = huge_alloc(4 * MIB + 700 * KIB + i * 500 * KIB);
        size_t in_use = page_heap.used_pages + page_heap.huge_pages;
        size_t most = PEAK_PAGES + 2 * BASE_PAGES + page_heap.retention.room;
        ASSERT_THAT(in_use >= PEAK_PAGES || in_use + page_heap_kept_pages(&page_heap) <= most,
                    "%zu in use, %zu kept", in_use, page_heap_kept_pages(&page_heap));
    }
    for (size_t i = 0; i < LONG; i++)
        huge_free(blocks[i]);
    assert_in_range(page_heap.retention.room, 1, PEAK_PAGES / 8);
    assert_page_heap_empty();
}

/* ---- Segments and huge blocks ---- */

TEST(a_huge_block_in_a_loop_costs_no_calls)
{
    for (size_t bytes = 2 * MIB; bytes <= 64 * MIB; bytes *= 2) {
        huge_free(huge_alloc(bytes));
        huge_free(huge_alloc(bytes));
        unsigned calls = fake.calls;
        for (unsigned i = 0; i < 10; i++) {
            fake_now += FAKE_SECOND / 1000;
            huge_free(huge_alloc(bytes - i * PAGE_BYTES)); /* an eighth less will do */
        }
        assert_int_equal(fake.calls, calls);
    }
    assert_page_heap_empty();
}

TEST(a_huge_block_takes_no_range_that_is_much_too_long)
{
    void *block = huge_alloc(8 * MIB);
    huge_free(block);
    size_t usable;
    char *smaller = huge_alloc(7 * MIB);
    assert_ptr_not_equal(smaller, block);
    char *close = huge_alloc(7 * MIB + 512 * KIB);
    assert_ptr_equal(close, block);
    assert_int_equal(large_usable(&page_heap, (uintptr_t)close, &usable).kind, MISUSE_NONE);
    assert_int_equal(usable, 7 * MIB + 512 * KIB);
    assert_int_equal(page_heap.huge_pages, 15 * MIB >> PAGE_SHIFT);
    huge_free(smaller);
    huge_free(close);
    assert_page_heap_empty();
}

TEST(huge_blocks_and_segments_serve_as_each_other)
{
    options.dirty = 64 * MIB;
    char *block = huge_alloc(FIRST_SEGMENT_PAGES * PAGE_BYTES);
    huge_free(block);
    struct span *span = span_get(100);
    assert_int_equal(fake.takes, 1); /* a range was there */
    assert_ptr_equal(span->start, block);
    assert_false(span->zero);
    struct span *wall = span_get(FIRST_SEGMENT_PAGES);
    span_put(wall);
    span_put(span);
    assert_int_equal(page_heap.cache.count, 1);
    assert_int_equal(page_heap.empty_segments, 1);
    char *again = huge_alloc(FIRST_SEGMENT_PAGES * PAGE_BYTES);
    assert_int_equal(fake.takes, 2);
    huge_free(again);
    assert_page_heap_empty();
}

/* Two empty segments, one free run each: all of the older is dirty and stays in the list, 961 pages
 * of the other, which is in the cache, are. Returns where the other begins. */
static char *two_empty_segments(void)
{
    options.prefault = 4 * MIB; /* the first segment is long */
    struct span *first[16], *wall = span_get(1);
    char *start = wall->start;
    for (size_t i = 0; i < 16; i++)
        first[i] = span_get(60);
    struct span *second = span_get(FIRST_SEGMENT_PAGES);
    assert_int_equal(fake.takes, 2);
    options.dirty = GIB;
    span_put(second);
    for (size_t i = 0; i < 16; i += 2)
        span_put(first[i]);
    span_put(wall);
    for (size_t i = 1; i < 16; i += 2)
        span_put(first[i]);
    assert_int_equal(page_heap.cache.count, 1);
    assert_int_equal(page_heap.cache.dirty_pages, 961);
    return start;
}

TEST(an_older_run_goes_before_a_segment_of_the_cache)
{
    two_empty_segments();
    assert_int_equal(page_heap_purge(&page_heap, 961), FIRST_SEGMENT_PAGES * PAGE_BYTES);
    assert_int_equal(page_heap.cache.dirty_pages, 961);
    assert_int_equal(page_heap_purge(&page_heap, 960), 961 * PAGE_BYTES);
    assert_page_heap_empty();
}

/* The other's dirty part and its clean one together are long enough. */
TEST(a_segment_of_the_cache_serves_whole)
{
    char *start = two_empty_segments();
    assert_int_equal(page_heap_purge(&page_heap, 961), FIRST_SEGMENT_PAGES * PAGE_BYTES);
    struct span *span = span_get(1000);
    assert_ptr_equal(span->start, start);
    assert_int_equal(page_heap.cache.count, 0);
    span_put(span);
    assert_int_equal(page_heap_kept_pages(&page_heap), 1000);
    assert_page_heap_empty();
}

TEST(a_segment_in_the_cache_is_purged_by_one_call)
{
    two_empty_segments();
    span_put(span_get(100)); /* so the run in the list is younger */
    assert_int_equal(page_heap_purge(&page_heap, FIRST_SEGMENT_PAGES), 961 * PAGE_BYTES);
    assert_int_equal(fake.purges, 1);
    assert_int_equal(page_heap.cache.dirty_pages, 0);
    assert_page_heap_sound();
    assert_page_heap_empty();
}

/* ---- The options ---- */

TEST(the_cache_is_bounded)
{
    void *blocks[12];
    options.dirty = GIB;
    options.cache_segments = 5;
    for (size_t i = 0; i < 12; i++)
        blocks[i] = huge_alloc(2 * MIB);
    for (size_t i = 0; i < 12; i++)
        huge_free(blocks[i]);
    assert_int_equal(page_heap.cache.count, 5);
    assert_int_equal(fake.range_count, 5); /* so is the number of mappings */
    options.cache_bytes = 10 * MIB;
    blocks[0] = huge_alloc(5 * MIB);
    huge_free(blocks[0]);
    assert_int_equal(page_heap.cache.pages, 9 * MIB >> PAGE_SHIFT);
    fake_now += 60 * FAKE_SECOND;
    assert_true(page_heap_tick_is_due(&page_heap));
    page_heap_tick(&page_heap);
    assert_int_equal(page_heap.cache.count, 3);
    fake_now++;
    page_heap_tick(&page_heap);
    assert_int_equal(page_heap.cache.count, 0);
    assert_false(page_heap_tick_is_due(&page_heap));
    assert_page_heap_empty();
}

TEST(without_a_delay_all_goes_at_once)
{
    options.purge_delay = 0;
    for (unsigned i = 0; i < 3; i++) {
        peak_take();
        for (size_t j = 0; j < PEAK; j++) {
            span_put(peak[j]);
            assert_int_equal(page_heap_kept_pages(&page_heap), 0);
        }
    }
    huge_free(huge_alloc(2 * MIB));
    assert_int_equal(page_heap_kept_pages(&page_heap), 0);
    assert_page_heap_empty();
}

TEST(with_an_endless_delay_nothing_goes)
{
    options.purge_delay = DELAY_NEVER;
    options.cache_bytes = 0;
    for (unsigned i = 0; i < 3; i++)
        up_and_down(100 * FAKE_SECOND);
    assert_int_equal(fake.purges, 0);
    assert_int_equal(page_heap_kept_pages(&page_heap), PEAK_PAGES);
    assert_page_heap_empty();
}

/* ---- A system that refuses ---- */

TEST(refused_purges_and_unmaps_lose_nothing)
{
    fake.refuse_purge = fake.refuse_give = true;
    up_and_down(FAKE_SECOND);
    void *block = huge_alloc(8 * MIB);
    memset(block, 1, 8 * MIB);
    huge_free(block);
    unsigned takes = fake.takes;
    page_heap_purge(&page_heap, 0);
    assert_true(page_heap_kept_pages(&page_heap) >= PEAK_PAGES);
    up_and_down(FAKE_SECOND);
    huge_free(huge_alloc(8 * MIB));
    assert_int_equal(fake.takes, takes); /* what could not go serves again */
    fake.refuse_purge = fake.refuse_give = false;
    assert_page_heap_empty();
}

TEST(what_waits_is_given_up_for_a_request_that_needs_the_room)
{
    options.dirty = GIB;
    void *blocks[4];
    for (size_t i = 0; i < 4; i++)
        blocks[i] = huge_alloc(8 * MIB);
    for (size_t i = 0; i < 4; i++)
        huge_free(blocks[i]);
    fake.limit = 48 * MIB;
    void *large = huge_alloc(40 * MIB);
    assert_int_equal(page_heap.cache.count, 0);
    huge_free(large);
    struct span *span = span_get(45 * MIB >> PAGE_SHIFT);
    span_put(span);
    assert_page_heap_empty();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(a_first_peak_goes_as_it_is_freed, page_heap_begin, page_heap_end),
        ROW_WITH(a_second_peak_soon_after_is_kept, page_heap_begin, page_heap_end),
        ROW_WITH(a_second_peak_long_after_goes_as_well, page_heap_begin, page_heap_end),
        ROW_WITH(blocks_of_many_lengths_get_room_to_fit, page_heap_begin, page_heap_end),
        ROW_WITH(quiet_lets_go_of_what_was_learned, page_heap_begin, page_heap_end),
        ROW_WITH(what_is_kept_never_adds_to_a_peak, page_heap_begin, page_heap_end),
        ROW_WITH(a_huge_block_in_a_loop_costs_no_calls, page_heap_begin, page_heap_end),
        ROW_WITH(a_huge_block_takes_no_range_that_is_much_too_long, page_heap_begin, page_heap_end),
        ROW_WITH(huge_blocks_and_segments_serve_as_each_other, page_heap_begin, page_heap_end),
        ROW_WITH(an_older_run_goes_before_a_segment_of_the_cache, page_heap_begin, page_heap_end),
        ROW_WITH(a_segment_of_the_cache_serves_whole, page_heap_begin, page_heap_end),
        ROW_WITH(a_segment_in_the_cache_is_purged_by_one_call, page_heap_begin, page_heap_end),
        ROW_WITH(the_cache_is_bounded, page_heap_begin, page_heap_end),
        ROW_WITH(without_a_delay_all_goes_at_once, page_heap_begin, page_heap_end),
        ROW_WITH(with_an_endless_delay_nothing_goes, page_heap_begin, page_heap_end),
        ROW_WITH(refused_purges_and_unmaps_lose_nothing, page_heap_begin, page_heap_end),
        ROW_WITH(what_waits_is_given_up_for_a_request_that_needs_the_room, page_heap_begin,
                 page_heap_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
