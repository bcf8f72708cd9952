/*
 * Tests of what a heap keeps and gives back as time passes (span_purge.c, span_segment.c): peaks,
 * sawteeth, quiet, huge blocks in a loop, the options, and a system that refuses. The clock stands
 * still unless a test moves it.
 */
#include "span_support.h"

#include <string.h>

#include "options/options.h"
#include "span/large.h"

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
    assert_spans_sound();
}

static void up_and_down(uint64_t gap)
{
    peak_take();
    peak_give();
    fake_now += gap;
}

static void *huge_take(size_t bytes)
{
    size_t dirty;
    char *block = large_take(&spans, bytes, PAGE_BYTES, &dirty);
    assert_non_null(block);
    for (size_t i = dirty; i < bytes; i += PAGE_BYTES)
        ASSERT_THAT(block[i] == 0, "at %zu of %zu", i, bytes);
    memset(block, 1, bytes);
    return block;
}

static void huge_give(void *block)
{
    assert_int_equal(large_give(&spans, (uintptr_t)block).kind, MISUSE_NONE);
    assert_spans_sound();
}

/* ---- Peaks ---- */

TEST(a_first_peak_goes_as_it_is_freed)
{
    up_and_down(0);
    assert_true(spans_kept_pages(&spans) <= BASE_PAGES);
    assert_true(fake.purged_bytes + fake.gives * 4 * MIB >= (PEAK_PAGES - BASE_PAGES) * PAGE_BYTES);
    assert_spans_empty();
}

TEST(a_second_peak_soon_after_is_kept)
{
    up_and_down(FAKE_SECOND / 10);
    peak_take();
    size_t purged = fake.purged_bytes;
    unsigned takes = fake.takes;
    peak_give();
    assert_true(spans_kept_pages(&spans) > PEAK_PAGES - BASE_PAGES);
    for (unsigned i = 0; i < 20; i++)
        up_and_down(FAKE_SECOND / 2);
    assert_int_equal(fake.purged_bytes, purged);
    assert_int_equal(fake.takes, takes);
    assert_spans_empty();
}

TEST(a_second_peak_long_after_goes_as_well)
{
    for (unsigned i = 0; i < 3; i++)
        up_and_down(2 * FAKE_SECOND); /* 64 MiB are worth keeping for one */
    assert_true(spans_kept_pages(&spans) <= BASE_PAGES);
    assert_spans_empty();
}

TEST(quiet_lets_go_of_what_was_learned)
{
    up_and_down(FAKE_SECOND / 10);
    up_and_down(FAKE_SECOND / 10);
    assert_true(spans_kept_pages(&spans) > BASE_PAGES);
    assert_false(spans_tick_is_due(&spans));
    /* Any slow path looks, and finds at the second look that nothing of it was used. */
    for (unsigned i = 0; i < 2; i++) {
        fake_now += FAKE_SECOND;
        assert_true(spans_tick_is_due(&spans));
        spans_tick(&spans);
        assert_false(spans_tick_is_due(&spans));
        assert_spans_sound();
    }
    assert_true(spans_kept_pages(&spans) <= BASE_PAGES);
    assert_spans_empty();
}

TEST(what_is_kept_never_adds_to_a_peak)
{
    up_and_down(FAKE_SECOND / 10);
    up_and_down(FAKE_SECOND / 10);
    /* The same amount again, but in pieces for which nothing that is kept is long enough. */
    enum { LONG = 15 };
    void *blocks[LONG];
    for (size_t i = 0; i < LONG; i++) {
        blocks[i] = huge_take(4 * MIB + 700 * KIB + i * 500 * KIB);
        size_t in_use = spans.used_pages + spans.huge_pages;
        ASSERT_THAT(in_use >= PEAK_PAGES ||
                        in_use + spans_kept_pages(&spans) <= PEAK_PAGES + 2 * BASE_PAGES,
                    "%zu in use, %zu kept", in_use, spans_kept_pages(&spans));
    }
    for (size_t i = 0; i < LONG; i++)
        huge_give(blocks[i]);
    assert_spans_empty();
}

/* ---- Segments and huge blocks ---- */

TEST(a_huge_block_in_a_loop_costs_no_calls)
{
    for (size_t bytes = 2 * MIB; bytes <= 64 * MIB; bytes *= 2) {
        huge_give(huge_take(bytes));
        huge_give(huge_take(bytes));
        unsigned calls = fake.calls;
        for (unsigned i = 0; i < 10; i++) {
            fake_now += FAKE_SECOND / 1000;
            huge_give(huge_take(bytes - i * PAGE_BYTES)); /* an eighth less will do */
        }
        assert_int_equal(fake.calls, calls);
    }
    assert_spans_empty();
}

TEST(a_huge_block_takes_no_range_that_is_much_too_long)
{
    void *block = huge_take(8 * MIB);
    huge_give(block);
    size_t usable;
    char *smaller = huge_take(7 * MIB);
    assert_ptr_not_equal(smaller, block);
    char *close = huge_take(7 * MIB + 512 * KIB);
    assert_ptr_equal(close, block);
    assert_int_equal(large_usable(&spans, (uintptr_t)close, &usable).kind, MISUSE_NONE);
    assert_int_equal(usable, 8 * MIB);
    huge_give(smaller);
    huge_give(close);
    assert_spans_empty();
}

TEST(huge_blocks_and_segments_serve_as_each_other)
{
    options.dirty = 64 * MIB;
    char *block = huge_take(FIRST_SEGMENT_PAGES * PAGE_BYTES);
    huge_give(block);
    struct span *span = span_get(100);
    assert_int_equal(fake.takes, 1); /* a range was there */
    assert_ptr_equal(span->start, block);
    assert_false(span->zero);
    struct span *wall = span_get(FIRST_SEGMENT_PAGES);
    span_put(wall);
    span_put(span);
    assert_int_equal(spans.cache.count, 1);
    assert_int_equal(spans.empty_segments, 1);
    char *again = huge_take(FIRST_SEGMENT_PAGES * PAGE_BYTES);
    assert_int_equal(fake.takes, 2);
    huge_give(again);
    assert_spans_empty();
}

TEST(a_segment_in_the_cache_is_purged_by_one_call)
{
    options.prefault = 4 * MIB; /* the first segment is long */
    struct span *first[16], *wall = span_get(1);
    for (size_t i = 0; i < 16; i++)
        first[i] = span_get(60);
    struct span *second = span_get(FIRST_SEGMENT_PAGES);
    assert_int_equal(fake.takes, 2);
    options.dirty = GIB;
    span_put(second); /* the one that stays in the list */
    for (size_t i = 0; i < 16; i += 2)
        span_put(first[i]);
    span_put(wall);
    for (size_t i = 1; i < 16; i += 2)
        span_put(first[i]);
    assert_int_equal(spans.cache.count, 1);
    assert_int_equal(spans.cache.dirty_pages, 961);
    assert_int_equal(spans_purge(&spans, FIRST_SEGMENT_PAGES), 961 * PAGE_BYTES);
    assert_int_equal(fake.purges, 1);
    assert_int_equal(spans.cache.dirty_pages, 0);
    assert_spans_sound();
    assert_spans_empty();
}

/* ---- The options ---- */

TEST(the_cache_is_bounded)
{
    void *blocks[12];
    options.dirty = GIB;
    options.cache_segments = 5;
    for (size_t i = 0; i < 12; i++)
        blocks[i] = huge_take(2 * MIB);
    for (size_t i = 0; i < 12; i++)
        huge_give(blocks[i]);
    assert_int_equal(spans.cache.count, 5);
    assert_int_equal(fake.range_count, 5); /* so is the number of mappings */
    options.cache_bytes = 10 * MIB;
    blocks[0] = huge_take(5 * MIB);
    huge_give(blocks[0]);
    assert_int_equal(spans.cache.pages, 9 * MIB >> PAGE_SHIFT);
    fake_now += 60 * FAKE_SECOND;
    assert_true(spans_tick_is_due(&spans));
    spans_tick(&spans);
    assert_int_equal(spans.cache.count, 3);
    fake_now++;
    spans_tick(&spans);
    assert_int_equal(spans.cache.count, 0);
    assert_false(spans_tick_is_due(&spans));
    assert_spans_empty();
}

TEST(without_a_delay_all_goes_at_once)
{
    options.purge_delay = 0;
    for (unsigned i = 0; i < 3; i++) {
        peak_take();
        for (size_t j = 0; j < PEAK; j++) {
            span_put(peak[j]);
            assert_int_equal(spans_kept_pages(&spans), 0);
        }
    }
    huge_give(huge_take(2 * MIB));
    assert_int_equal(spans_kept_pages(&spans), 0);
    assert_spans_empty();
}

TEST(with_an_endless_delay_nothing_goes)
{
    options.purge_delay = DELAY_NEVER;
    options.cache_bytes = 0;
    for (unsigned i = 0; i < 3; i++)
        up_and_down(100 * FAKE_SECOND);
    assert_int_equal(fake.purges, 0);
    assert_int_equal(spans_kept_pages(&spans), PEAK_PAGES);
    assert_spans_empty();
}

/* ---- A system that refuses ---- */

TEST(refused_purges_and_unmaps_lose_nothing)
{
    fake.refuse_purge = fake.refuse_give = true;
    up_and_down(FAKE_SECOND);
    void *block = huge_take(8 * MIB);
    memset(block, 1, 8 * MIB);
    huge_give(block);
    unsigned takes = fake.takes;
    spans_purge(&spans, 0);
    assert_true(spans_kept_pages(&spans) >= PEAK_PAGES);
    up_and_down(FAKE_SECOND);
    huge_give(huge_take(8 * MIB));
    assert_int_equal(fake.takes, takes); /* what could not go serves again */
    fake.refuse_purge = fake.refuse_give = false;
    assert_spans_empty();
}

TEST(what_waits_is_given_up_for_a_request_that_needs_the_room)
{
    options.dirty = GIB;
    void *blocks[4];
    for (size_t i = 0; i < 4; i++)
        blocks[i] = huge_take(8 * MIB);
    for (size_t i = 0; i < 4; i++)
        huge_give(blocks[i]);
    fake.limit = 48 * MIB;
    void *large = huge_take(40 * MIB);
    assert_int_equal(spans.cache.count, 0);
    huge_give(large);
    struct span *span = span_get(45 * MIB >> PAGE_SHIFT);
    span_put(span);
    assert_spans_empty();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(a_first_peak_goes_as_it_is_freed, spans_begin, spans_end),
        ROW_WITH(a_second_peak_soon_after_is_kept, spans_begin, spans_end),
        ROW_WITH(a_second_peak_long_after_goes_as_well, spans_begin, spans_end),
        ROW_WITH(quiet_lets_go_of_what_was_learned, spans_begin, spans_end),
        ROW_WITH(what_is_kept_never_adds_to_a_peak, spans_begin, spans_end),
        ROW_WITH(a_huge_block_in_a_loop_costs_no_calls, spans_begin, spans_end),
        ROW_WITH(a_huge_block_takes_no_range_that_is_much_too_long, spans_begin, spans_end),
        ROW_WITH(huge_blocks_and_segments_serve_as_each_other, spans_begin, spans_end),
        ROW_WITH(a_segment_in_the_cache_is_purged_by_one_call, spans_begin, spans_end),
        ROW_WITH(the_cache_is_bounded, spans_begin, spans_end),
        ROW_WITH(without_a_delay_all_goes_at_once, spans_begin, spans_end),
        ROW_WITH(with_an_endless_delay_nothing_goes, spans_begin, spans_end),
        ROW_WITH(refused_purges_and_unmaps_lose_nothing, spans_begin, spans_end),
        ROW_WITH(what_waits_is_given_up_for_a_request_that_needs_the_room, spans_begin, spans_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
