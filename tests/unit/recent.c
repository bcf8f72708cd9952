/*
 * Tests of pageheap/recent.h: large blocks that were freed last wait whole, serve requests of their
 * length, and are joined when anything else is wanted.
 */
#include "page_heap_support.h"

#include <string.h>

#include "options/options.h"
#include "pageheap/large.h"

enum { BLOCK = 200 * KIB, BLOCK_PAGES = BLOCK / PAGE_BYTES };

/* How many blocks of up to 256 KiB there are, and what was asked for in them. */
static void assert_row(size_t blocks, size_t bytes)
{
    assert_int_equal(page_heap.sizes.blocks[0], blocks);
    assert_int_equal(page_heap.sizes.bytes[0], bytes);
}

/* ---- Serving ---- */

TEST(a_freed_block_serves_the_next_request_of_its_length)
{
    char *start = large_get(BLOCK);
    large_put(start);
    assert_int_equal(page_heap.recent.count, 1);
    assert_int_equal(page_heap.recent.pages, BLOCK_PAGES);
    assert_int_equal(page_heap_in_use_pages(&page_heap), 0);
    assert_row(1, BLOCK); /* it stays there: who reads subtracts it (heap/totals.c) */
    assert_int_equal(page_heap_kept_pages(&page_heap), BLOCK_PAGES);
    assert_int_equal(page_heap.dirty.pages, 0);
    /* Any size that takes as many pages. */
    assert_ptr_equal(large_alloc_recent(&page_heap, BLOCK - 100, PAGE_BYTES), start);
    assert_int_equal(page_heap.recent.count, 0);
    assert_int_equal(page_heap_in_use_pages(&page_heap), BLOCK_PAGES);
    assert_row(1, BLOCK - 100);
    assert_page_heap_sound();
    large_put(start);
    page_heap_join_recent(&page_heap, NULL);
    assert_row(0, 0);
    assert_int_equal(page_heap.used_pages, 0);
    assert_page_heap_empty();
}

TEST(the_newest_comes_first_and_others_wait)
{
    char *first = large_get(BLOCK), *other = large_get(2 * BLOCK), *second = large_get(BLOCK);
    large_put(first);
    large_put(other);
    large_put(second);
    assert_ptr_equal(large_get(BLOCK), second);
    assert_ptr_equal(large_get(BLOCK), first);
    assert_ptr_equal(large_get(2 * BLOCK), other);
    assert_int_equal(page_heap.recent.count, 0);
    large_put(first);
    large_put(second);
    large_put(other);
    assert_page_heap_empty();
}

TEST(an_aligned_request_takes_only_what_is_aligned)
{
    size_t dirty;
    /* Two side by side cannot both be at such an address, for their length is no multiple. */
    char *wall = large_get(BLOCK), *start = large_get(BLOCK);
    if ((uintptr_t)start % (64 * KIB) == 0) {
        char *other = wall;
        wall = start;
        start = other;
    }
    large_put(start);
    bool none = large_alloc_recent(&page_heap, BLOCK, 64 * KIB) == NULL;
    lock_release(&page_heap.lock); /* which is held then */
    assert_true(none);
    char *aligned = large_alloc(&page_heap, BLOCK, 64 * KIB, &dirty);
    assert_int_equal((uintptr_t)aligned % (64 * KIB), 0);
    large_put(aligned);
    assert_ptr_equal(large_alloc_recent(&page_heap, BLOCK, 64 * KIB), aligned);
    large_put(aligned);
    large_put(wall);
    assert_page_heap_empty();
}

/* What the short way and the one behind it do with one lock: it is held in between, and free after.
 */
static void *take_missed(size_t bytes, size_t alignment, bool *held, bool *after)
{
    void *none = large_alloc_recent(&page_heap, bytes, alignment);
    *held = none == NULL && page_heap.lock.held == 1;
    void *block = large_alloc_missed(&page_heap, bytes, alignment);
    *after = page_heap.lock.held == 1;
    return block;
}

TEST(what_does_not_wait_is_cut_under_the_same_lock)
{
    bool held, after;
    char *other = large_get(2 * BLOCK);
    large_put(other); /* joined for the next one, which begins where it did */
    char *start = take_missed(BLOCK - 100, PAGE_BYTES, &held, &after);
    assert_true(held);
    assert_false(after);
    assert_ptr_equal(start, other);
    assert_int_equal(page_heap.recent.count, 0);
    assert_row(1, BLOCK - 100);
    assert_page_heap_sound();
    large_put(start);
    assert_page_heap_empty();
}

TEST(what_is_no_span_of_a_page_is_left_to_others)
{
    const struct {
        size_t bytes, alignment;
    } rows[] = {{0, PAGE_BYTES},
                {page_heap.large_most + 1, PAGE_BYTES},
                {BLOCK, 2 * PAGE_BYTES},
                {SIZE_MAX, PAGE_BYTES}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        bool held, after;
        assert_null(take_missed(rows[i].bytes, rows[i].alignment, &held, &after));
        assert_true(held);
        assert_false(after);
    }
    assert_int_equal(page_heap.used_pages, 0);
    assert_page_heap_empty();
}

TEST(what_is_no_block_does_not_wait)
{
    char *start = large_get(BLOCK);
    assert_false(large_free_recent(&page_heap, (uintptr_t)start + 1));
    assert_false(large_free_recent(&page_heap, (uintptr_t)start + PAGE_BYTES));
    volatile uintptr_t none = 0; /* or compilers warn of what would be written there */
    assert_false(large_free_recent(&page_heap, none));
    size_t bytes = 0;
    large_put(start);
    assert_false(large_free_recent(&page_heap, (uintptr_t)start));
    struct misuse misuse = large_free(&page_heap, (uintptr_t)start);
    assert_int_equal(misuse.kind, MISUSE_DOUBLE_FREE);
    assert_int_equal(misuse.bytes, BLOCK);
    assert_int_equal(large_usable(&page_heap, (uintptr_t)start, &bytes).kind, MISUSE_DOUBLE_FREE);
    assert_false(large_has(&page_heap, (uintptr_t)start));
    assert_page_heap_empty();
}

/* ---- Joining ---- */

TEST(another_length_is_made_of_those_that_wait)
{
    char *blocks[3];
    for (size_t i = 0; i < 3; i++)
        blocks[i] = large_get(BLOCK);
    for (size_t i = 0; i < 3; i++)
        large_put(blocks[i]);
    assert_int_equal(page_heap.recent.count, 3);
    size_t clean = page_heap.clean.pages;
    assert_ptr_equal(large_get(3 * BLOCK), blocks[0]);
    assert_int_equal(page_heap.recent.count, 0);
    assert_int_equal(page_heap.clean.pages, clean); /* none of it is new memory */
    large_put(blocks[0]);
    assert_page_heap_empty();
}

/* What was in use at most is noted where pages are taken; so nobody takes any while blocks wait. */
TEST(a_block_that_grows_leaves_none_waiting)
{
    page_heap.large_most = 4 * MIB;
    char *first = large_get(BLOCK), *wall = large_get(BLOCK), *last = large_get(BLOCK);
    char *huge = large_get(5 * MIB);
    large_put(first);
    assert_ptr_equal(large_resize(&page_heap, (uintptr_t)last, 2 * BLOCK), last);
    assert_int_equal(page_heap.recent.count, 0);
    large_put(wall);
    huge = large_resize(&page_heap, (uintptr_t)huge, 6 * MIB);
    assert_non_null(huge);
    assert_int_equal(page_heap.recent.count, 0);
    wall = large_get(BLOCK);
    size_t most = page_heap_in_use_pages(&page_heap);
    assert_true(page_heap.used_peak >= most);
    large_put(huge);
    large_put(wall);
    large_put(last);
    assert_page_heap_empty();
}

TEST(a_block_grows_into_one_that_waits)
{
    char *first = large_get(BLOCK), *second = large_get(BLOCK), *wall = large_get(PAGE_BYTES);
    large_put(second);
    assert_int_equal(page_heap.recent.count, 1);
    assert_ptr_equal(large_resize(&page_heap, (uintptr_t)first, 2 * BLOCK), first);
    assert_page_heap_sound();
    large_put(first);
    large_put(wall);
    assert_page_heap_empty();
}

TEST(no_more_than_a_few_wait)
{
    options.dirty = GIB;
    enum { COUNT = RECENT_MOST + 4 };
    char *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        blocks[i] = large_get(BLOCK);
    for (size_t i = 0; i < COUNT; i++)
        large_put(blocks[i]);
    assert_int_equal(page_heap.recent.count, RECENT_MOST);
    assert_int_equal(page_heap.dirty.pages, 4 * BLOCK_PAGES); /* the oldest are joined */
    assert_int_equal(runs_count(&page_heap.dirty), 1);
    assert_page_heap_empty();
}

TEST(what_waits_is_part_of_what_may_be_kept)
{
    NEED_SMALL_PAGES;
    options.dirty = 4 * BLOCK;
    char *blocks[6];
    for (size_t i = 0; i < 6; i++)
        blocks[i] = large_get(BLOCK);
    for (size_t i = 0; i < 4; i++)
        large_put(blocks[i]);
    assert_int_equal(page_heap_kept_pages(&page_heap), 4 * BLOCK_PAGES);
    assert_int_equal(fake.purges, 0);
    /* One too much: all are joined, and what is one long run goes by one call. */
    large_put(blocks[4]);
    assert_int_equal(page_heap.recent.count, 0);
    assert_int_equal(fake.purges, 1);
    assert_int_equal(page_heap_kept_pages(&page_heap), 0);
    large_put(blocks[5]);
    assert_page_heap_empty();
}

/* Three blocks wait, one more than is kept in any case, since as much was missed. One of them is
 * taken and freed again, and nothing is looked at anew. */
static void wait_beyond_the_base(char *blocks[6])
{
    options.dirty = 2 * BLOCK;
    for (size_t i = 0; i < 6; i++)
        blocks[i] = large_get(BLOCK);
    page_heap.retention.wanted = (size_t)6 * BLOCK_PAGES;
    for (size_t i = 0; i < 3; i++)
        large_put(blocks[i]);
    page_heap.tick_due = 1; /* who looks at the bound says when again */
    large_put(large_get(BLOCK));
    assert_int_equal(page_heap.tick_due, 1);
    assert_int_equal(page_heap_kept_pages(&page_heap), 3 * BLOCK_PAGES);
    assert_int_equal(fake.purges, 0);
}

static void end_all(char *blocks[6])
{
    for (size_t i = 3; i < 6; i++)
        large_put(blocks[i]);
    assert_page_heap_empty();
}

TEST(what_waits_goes_when_it_is_not_wanted_any_more)
{
    NEED_SMALL_PAGES;
    char *blocks[6];
    wait_beyond_the_base(blocks);
    page_heap.retention.wanted = 0;
    large_put(large_get(BLOCK));
    assert_int_equal(fake.purges, 1);
    assert_true(page_heap_kept_pages(&page_heap) <= 2 * BLOCK_PAGES);
    end_all(blocks);
}

/* A block is taken and freed again, without a look at whether the heap is sound. */
static void turn(void)
{
    size_t dirty;
    void *start = large_alloc(&page_heap, BLOCK, MIN_ALIGN, &dirty);
    assert_int_equal(large_free(&page_heap, (uintptr_t)start).kind, MISUSE_NONE);
}

TEST(what_waits_goes_when_more_is_in_use)
{
    NEED_SMALL_PAGES;
    char *blocks[6];
    wait_beyond_the_base(blocks);
    page_heap.huge_pages = (size_t)10 * BLOCK_PAGES; /* as if there were such a block */
    turn();
    page_heap.huge_pages = 0;
    assert_int_equal(fake.purges, 1);
    assert_true(page_heap_kept_pages(&page_heap) < 3 * BLOCK_PAGES);
    end_all(blocks);
}

TEST(what_waits_goes_when_cells_keep_more)
{
    NEED_SMALL_PAGES;
    char *blocks[6];
    wait_beyond_the_base(blocks);
    page_heap.retention.wanted = 0;
    options.dirty = 3 * BLOCK; /* all of it is the base */
    bound_keep();
    turn();
    assert_int_equal(fake.purges, 0);
    page_heap.cells_kept = (size_t)2 * BLOCK_PAGES;
    turn();
    page_heap.cells_kept = 0;
    assert_int_equal(fake.purges, 1);
    end_all(blocks);
}

/* The same is kept and in use as before, but the bound is another one by now. */
TEST(what_could_stay_once_is_looked_at_again_when_something_went)
{
    NEED_SMALL_PAGES;
    char *blocks[6];
    wait_beyond_the_base(blocks);
    struct settled stayed = page_heap.settled;
    page_heap.retention.high = 0; /* as an epoch ends in which hardly anything was in use */
    page_heap.retention.epoch_high = 0;
    page_heap.retention.wanted = 0;
    bound_keep();
    assert_int_equal(fake.purges, 1);
    assert_true(page_heap.settled.kept != stayed.kept);
    end_all(blocks);
}

TEST(without_a_delay_nothing_waits)
{
    NEED_SMALL_PAGES;
    options.purge_delay = 0;
    large_put(large_get(BLOCK));
    assert_int_equal(page_heap.recent.count, 0);
    assert_int_equal(page_heap_kept_pages(&page_heap), 0);
    assert_page_heap_empty();
}

TEST(a_tick_joins_what_waits)
{
    options.dirty = BLOCK;
    char *first = large_get(BLOCK), *second = large_get(BLOCK);
    large_put(first);
    page_heap_ask_tick(&page_heap, fake_now);
    assert_true(page_heap_tick(&page_heap));
    assert_int_equal(page_heap.recent.count, 0);
    assert_int_equal(page_heap.dirty.pages, BLOCK_PAGES);
    assert_page_heap_sound();
    large_put(second);
    assert_page_heap_empty();
}

TEST(a_segment_whose_last_block_waits_goes_when_it_is_joined)
{
    options.dirty = GIB;
    page_heap.large_most = 4 * MIB;
    char *first = large_get(BLOCK);
    struct segment *segment = span_around(&page_heap, (uintptr_t)first)->segment;
    char *rest = large_get((segment->pages - BLOCK_PAGES) << PAGE_SHIFT);
    char *second = large_get(MIB);
    large_put(rest);
    large_put(first);
    large_put(second);
    assert_int_equal(page_heap.empty_segments, 0);
    assert_int_equal(page_heap.cache.count, 0);
    page_heap_join_recent(&page_heap, NULL);
    assert_page_heap_sound();
    assert_int_equal(page_heap.empty_segments, 1);
    assert_int_equal(page_heap.cache.count, 1);
    assert_page_heap_empty();
}

TEST(a_heap_that_is_cleared_has_none)
{
    large_put(large_get(BLOCK));
    char *left = large_get(2 * BLOCK);
    large_put(large_get(BLOCK));
    assert_int_equal(page_heap.recent.count, 1);
    page_heap_clear(&page_heap, true);
    assert_int_equal(page_heap.recent.count, 0);
    assert_page_heap_sound();
    char *again = large_get(BLOCK);
    large_put(again);
    (void)left;
    assert_page_heap_empty();
}

/* ---- The check ---- */

TEST(damage_is_found)
{
    options.dirty = GIB;
    char *first = large_get(BLOCK), *wall = large_get(PAGE_BYTES);
    large_put(first);
    struct span *span = page_heap.recent.spans[0];
#define PLANT(field, damage, expected) \
    ASSERT_FOUND(field, damage, page_heap_check(&page_heap), expected)
    PLANT(page_heap.recent.pages, BLOCK_PAGES + 1, "the pages of recent blocks are wrong");
    PLANT(page_heap.recent.count, 0, "the pages of recent blocks are wrong");
    PLANT(page_heap.recent.count, RECENT_MOST + 1, "more recent blocks than there may be");
    PLANT(page_heap.recent.spans[0], span->right, "a recent block is in use");
    PLANT(span->kind, SPAN_LARGE, "a recent block is in use");
    large_table_remove(&page_heap.large, span);
    const char *found = page_heap_check(&page_heap);
    large_table_add(&page_heap.large, span);
    assert_said(found, "a large block is not in the table", "a recent block out of the table");
    large_put(wall);
    assert_page_heap_empty();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(a_freed_block_serves_the_next_request_of_its_length, page_heap_begin,
                 page_heap_end),
        ROW_WITH(the_newest_comes_first_and_others_wait, page_heap_begin, page_heap_end),
        ROW_WITH(an_aligned_request_takes_only_what_is_aligned, page_heap_begin, page_heap_end),
        ROW_WITH(what_does_not_wait_is_cut_under_the_same_lock, page_heap_begin, page_heap_end),
        ROW_WITH(what_is_no_span_of_a_page_is_left_to_others, page_heap_begin, page_heap_end),
        ROW_WITH(what_is_no_block_does_not_wait, page_heap_begin, page_heap_end),
        ROW_WITH(another_length_is_made_of_those_that_wait, page_heap_begin, page_heap_end),
        ROW_WITH(a_block_that_grows_leaves_none_waiting, page_heap_begin, page_heap_end),
        ROW_WITH(a_block_grows_into_one_that_waits, page_heap_begin, page_heap_end),
        ROW_WITH(no_more_than_a_few_wait, page_heap_begin, page_heap_end),
        ROW_WITH(what_waits_is_part_of_what_may_be_kept, page_heap_begin, page_heap_end),
        ROW_WITH(what_waits_goes_when_it_is_not_wanted_any_more, page_heap_begin, page_heap_end),
        ROW_WITH(what_waits_goes_when_more_is_in_use, page_heap_begin, page_heap_end),
        ROW_WITH(what_waits_goes_when_cells_keep_more, page_heap_begin, page_heap_end),
        ROW_WITH(what_could_stay_once_is_looked_at_again_when_something_went, page_heap_begin,
                 page_heap_end),
        ROW_WITH(without_a_delay_nothing_waits, page_heap_begin, page_heap_end),
        ROW_WITH(a_tick_joins_what_waits, page_heap_begin, page_heap_end),
        ROW_WITH(a_segment_whose_last_block_waits_goes_when_it_is_joined, page_heap_begin,
                 page_heap_end),
        ROW_WITH(a_heap_that_is_cleared_has_none, page_heap_begin, page_heap_end),
        ROW_WITH(damage_is_found, page_heap_begin, page_heap_end),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
