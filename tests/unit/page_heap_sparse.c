/*
 * Tests of a page heap on the system's memory: how long its segments are, and where large blocks
 * begin that a program leaves mostly untouched (pageheap/sparse.h).
 */
#include <string.h>
#include <sys/resource.h>

#include "options/options.h"
#include "pageheap/large.h"
#include "pageheap/sparse.h" /* before names of ours that its parameters have too */
#include "provider/limit.h"

#include "page_heap_support.h"

static int begin(void **state)
{
    int result = page_heap_begin(state);
    page_heap_begin_on(&provider_os);
    options.limit = LIMIT_NONE;
    options.huge_pages = HUGE_PAGES_NEVER;
    return result;
}

/* ---- Segments ---- */

enum { SPAN_PAGES = 64, SPANS_MOST = 2000 };
static struct span *spans[SPANS_MOST];
static size_t span_count;

/* The pages of the next segment that spans need. */
static size_t next_segment(void)
{
    size_t before = page_heap.segment_pages;
    while (page_heap.segment_pages == before) {
        assert_true(span_count < SPANS_MOST);
        spans[span_count++] = span_get(SPAN_PAGES);
    }
    return page_heap.segment_pages - before;
}

static void give_spans(void)
{
    while (span_count != 0)
        span_put(spans[--span_count]);
    assert_page_heap_empty();
}

TEST(a_segment_is_as_long_as_all_before)
{
    static const size_t pages[] = {320, 320, 1024, 2048, 4096, 8192, 16384, 16384};
    for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
        assert_int_equal(next_segment(), pages[i]);
    give_spans();
}

/* As long as with another provider, of which nothing was refused. */
static void assert_segments_are_short(void)
{
    static const size_t pages[] = {320, 320, 1024, 1024, 1024};
    for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
        assert_int_equal(next_segment(), pages[i]);
    assert_false(page_heap.scarce);
}

TEST(what_is_limited_is_not_taken_ahead)
{
    options.limit = limit_used() + 4096 * MIB;
    assert_segments_are_short();
    give_spans();
}

TEST(of_what_is_limited_blocks_leave_nothing_over)
{
    static const size_t pages[] = {720, 270, 150, 1000}, wanted[] = {720, 816, 912, 1008};
    options.limit = limit_used() + 4096 * MIB;
    for (size_t i = 0; i < 4; i++)
        next_segment();
    for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++) {
        size_t before = page_heap.segment_pages;
        while (page_heap.segment_pages == before)
            spans[span_count++] = span_get(pages[i]);
        assert_int_equal(page_heap.segment_pages - before, wanted[i]);
    }
    give_spans();
}

TEST(what_the_system_limits_is_not_taken_ahead)
{
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
    limit = before;
    limit.rlim_cur = limit_used() + 4096 * MIB;
    assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
    limit_begin();
    assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0); /* a sanitizer needs more */
    assert_segments_are_short();
    limit_begin();
    give_spans();
}

TEST(of_what_is_refused_half_is_tried)
{
    page_heap_begin_on(&fake.provider);
    fake.limit = 3 * MIB + MIB / 2;
    assert_int_equal(next_segment(), SMALL_SEGMENT_PAGES);
    assert_int_equal(next_segment(), SMALL_SEGMENT_PAGES);
    assert_false(page_heap.scarce);
    assert_int_equal(next_segment(), 256); /* of 1,024, as a MiB is left */
    assert_true(page_heap.scarce);
    give_spans();
}

/* ---- Blocks that stay empty ---- */

/* They are of 50 to 99 pages. */
enum { LIVE = 100, LEAST = 50, LENGTHS = 50, PITCH = 16 };
static char *blocks[LIVE];
static uint32_t random_state;

static void replace(size_t index, bool full)
{
    if (blocks[index] != NULL)
        assert_int_equal(large_free(&page_heap, (uintptr_t)blocks[index]).kind, MISUSE_NONE);
    random_state = random_state * 1664525 + 1013904223;
    size_t bytes = (LEAST + (random_state >> 16) % LENGTHS) * PAGE_BYTES, dirty;
    blocks[index] = large_alloc(&page_heap, bytes, MIN_ALIGN, &dirty);
    assert_non_null(blocks[index]);
    memset(blocks[index], 1, full ? bytes : 1);
}

static void replace_all(unsigned times, bool full)
{
    for (unsigned i = 0; i < times * LIVE; i++)
        replace(i % LIVE, full);
    assert_page_heap_sound();
}

/* Full blocks, until one was seen. */
static void replace_until_full(void)
{
    for (unsigned i = 0; i < 2 * LIVE && page_heap.sparse_seen != 0; i++)
        replace(i % LIVE, true);
    assert_int_equal(page_heap.sparse_seen, 0);
}

static void give_blocks(void)
{
    for (size_t i = 0; i < LIVE; i++) {
        assert_int_equal(large_free(&page_heap, (uintptr_t)blocks[i]).kind, MISUSE_NONE);
        blocks[i] = NULL;
    }
    page_heap_join_recent(&page_heap, NULL);
    assert_page_heap_empty();
}

/* How many of the next blocks begin at a multiple of PITCH pages. */
static unsigned replace_and_count(bool full)
{
    unsigned count = 0;
    for (size_t i = 0; i < LIVE; i++) {
        replace(i, full);
        count += (uintptr_t)blocks[i] % (PITCH * PAGE_BYTES) == 0;
    }
    return count;
}

static size_t resident_pages(void)
{
    size_t bytes = 0;
    LIST_EACH(node, &page_heap.segments) {
        const struct segment *segment = CONTAINER_OF(node, struct segment, link);
        bytes += os_resident_bytes(segment->start, segment->pages << PAGE_SHIFT);
    }
    return bytes >> PAGE_SHIFT;
}

TEST(blocks_that_stay_empty_begin_where_others_began)
{
    NEED_SMALL_PAGES;
    replace_all(20, false);
    assert_int_equal(page_heap.sparse_seen, SPARSE_LONG);
    assert_int_equal(replace_and_count(false), LIVE);
    replace_all(100, false);
    assert_true(resident_pages() < 12 * LIVE); /* of some 75 that each has */
    give_blocks();
}

TEST(the_longer_that_is_so_the_fewer_are_looked_at)
{
    NEED_SMALL_PAGES;
    size_t seen = 0;
    for (unsigned i = 0; i < 100 * LIVE && seen < SPARSE_LONG; i++) {
        replace(i % LIVE, false);
        bool looked = page_heap.sparse_seen > seen;
        seen = page_heap.sparse_seen;
        if (looked) /* more than one block may have been joined */
            assert_in_range(page_heap.sparse_asked.wait, 4 * seen - 2, 4 * seen);
    }
    assert_int_equal(seen, SPARSE_LONG);
    give_blocks();
}

TEST(long_ones_begin_no_farther_apart_than_2_MiB)
{
    page_heap.sparse_seen = SPARSE_SEEN;
    assert_int_equal(sparse_alignment(&page_heap, 64), 128 * KIB);
    assert_int_equal(sparse_alignment(&page_heap, 15000), 2 * MIB);
    /* So one of its like fits where this was, wherever its segment begins. */
    size_t bytes = 15000 * PAGE_BYTES, dirty;
    char *block = large_alloc(&page_heap, bytes, MIN_ALIGN, &dirty);
    assert_int_equal((uintptr_t)block % (2 * MIB), 0);
    size_t pages = page_heap.segment_pages;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(large_free(&page_heap, (uintptr_t)block).kind, MISUSE_NONE);
        page_heap.sparse_seen = SPARSE_SEEN;
        block = large_alloc(&page_heap, bytes - (size_t)i * PAGE_BYTES, MIN_ALIGN, &dirty);
        assert_int_equal((uintptr_t)block % (2 * MIB), 0);
    }
    assert_int_equal(page_heap.segment_pages, pages);
    assert_int_equal(large_free(&page_heap, (uintptr_t)block).kind, MISUSE_NONE);
    page_heap_join_recent(&page_heap, NULL);
    assert_page_heap_empty();
}

TEST(a_full_block_ends_that)
{
    NEED_SMALL_PAGES;
    replace_all(20, false);
    assert_int_equal(page_heap.sparse_seen, SPARSE_LONG);
    page_heap.retention.wanted = 40 * LIVE; /* of blocks that were empty */
    replace_until_full();
    assert_true(page_heap.retention.wanted < 20 * LIVE);
    replace_all(30, true);
    assert_true(replace_and_count(true) < LIVE);
    give_blocks();
}

/* Where full blocks come now and then nothing is forgotten at each. */
TEST(what_was_missed_is_kept_where_full_blocks_are_among_them)
{
    NEED_SMALL_PAGES;
    for (unsigned i = 0; i < 100 * LIVE && page_heap.sparse_seen < SPARSE_SEEN; i++)
        replace(i % LIVE, false);
    assert_int_equal(page_heap.sparse_seen, SPARSE_SEEN);
    page_heap.retention.wanted = 40 * LIVE;
    replace_until_full();
    assert_true(page_heap.retention.wanted >= 40 * LIVE);
    give_blocks();
}

TEST(full_blocks_lie_close)
{
    replace_all(20, true);
    assert_int_equal(page_heap.sparse_seen, 0);
    assert_true(replace_and_count(true) < LIVE);
    give_blocks();
}

TEST(in_a_small_heap_nobody_looks)
{
    options.dirty = 2 * LIVE * (LEAST + LENGTHS) * PAGE_BYTES;
    replace_all(20, false);
    assert_int_equal(page_heap.sparse_seen, 0);
    give_blocks();
}

TEST(where_addresses_are_scarce_blocks_lie_close)
{
    page_heap.scarce = true;
    replace_all(20, false);
    assert_int_equal(page_heap.sparse_seen, 0);
    give_blocks();
}

/* The system refuses from now on what is longer than needed. */
TEST(a_refusal_ends_that)
{
    NEED_SMALL_PAGES;
    replace_all(20, false);
    assert_int_equal(page_heap.sparse_seen, SPARSE_LONG);
    options.limit = limit_used();
    while (span_count < SPANS_MOST &&
           (spans[span_count] = span_new(SPAN_LARGE, SPAN_PAGES, PAGE_BYTES)) != NULL)
        span_count++;
    assert_true(span_count < SPANS_MOST);
    assert_true(page_heap.scarce);
    assert_int_equal(page_heap.sparse_seen, 0);
    while (span_count != 0)
        span_put(spans[--span_count]);
    give_blocks();
}

/* Takes a block, writes to so much of it, and frees it. Returns the ghosts that this leaves. */
static size_t ghosts_of(size_t bytes, size_t written)
{
    size_t dirty;
    page_heap.retention.ghosts = 0;
    char *block = large_alloc(&page_heap, bytes, MIN_ALIGN, &dirty);
    assert_non_null(block);
    memset(block, 1, written);
    assert_int_equal(large_free(&page_heap, (uintptr_t)block).kind, MISUSE_NONE);
    page_heap_join_recent(&page_heap, NULL);
    page_heap_keep_bound(&page_heap);
    assert_true(page_heap_kept_pages(&page_heap) <= options.dirty >> PAGE_SHIFT);
    return page_heap.retention.ghosts;
}

/* What goes back of a block that may not wait is not missed when memory is needed. */
TEST(what_was_never_there_is_no_ghost)
{
    NEED_SMALL_PAGES;
    options.dirty = MIB;
    options.cache_bytes = 512 * MIB;
    assert_in_range(ghosts_of(1024 * MIB, 1), 0, 4); /* one piece in four is looked at */
    assert_in_range(ghosts_of(1024 * MIB, 8 * MIB), 7 * MIB >> PAGE_SHIFT, 8 * MIB >> PAGE_SHIFT);
    /* Others are learned though they are sparse: to take and free them costs no system call then.
     */
    assert_true(ghosts_of(16 * MIB, 1) >= 15 * MIB >> PAGE_SHIFT);
    page_heap.retention.wanted = 0;
    assert_true(ghosts_of(200 * MIB, 1) >= 199 * MIB >> PAGE_SHIFT);
    /* What is trimmed does not count with what comes. */
    struct span *live = span_get(1), *freed = span_get(SPAN_PAGES);
    memset(freed->start, 1, SPAN_PAGES * PAGE_BYTES);
    span_put(freed);
    assert_true(page_heap_purge(&page_heap, 0) >= SPAN_PAGES * PAGE_BYTES);
    assert_int_equal(page_heap.went, 0);
    span_put(live);
    assert_page_heap_empty();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(a_segment_is_as_long_as_all_before, begin, page_heap_end),
        ROW_WITH(what_is_limited_is_not_taken_ahead, begin, page_heap_end),
        ROW_WITH(of_what_is_limited_blocks_leave_nothing_over, begin, page_heap_end),
        ROW_WITH(what_the_system_limits_is_not_taken_ahead, begin, page_heap_end),
        ROW_WITH(of_what_is_refused_half_is_tried, begin, page_heap_end),
        ROW_WITH(blocks_that_stay_empty_begin_where_others_began, begin, page_heap_end),
        ROW_WITH(the_longer_that_is_so_the_fewer_are_looked_at, begin, page_heap_end),
        ROW_WITH(long_ones_begin_no_farther_apart_than_2_MiB, begin, page_heap_end),
        ROW_WITH(a_full_block_ends_that, begin, page_heap_end),
        ROW_WITH(what_was_missed_is_kept_where_full_blocks_are_among_them, begin, page_heap_end),
        ROW_WITH(full_blocks_lie_close, begin, page_heap_end),
        ROW_WITH(in_a_small_heap_nobody_looks, begin, page_heap_end),
        ROW_WITH(where_addresses_are_scarce_blocks_lie_close, begin, page_heap_end),
        ROW_WITH(a_refusal_ends_that, begin, page_heap_end),
        ROW_WITH(what_was_never_there_is_no_ghost, begin, page_heap_end),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
