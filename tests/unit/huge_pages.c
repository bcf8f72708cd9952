/*
 * Tests of pageheap/huge_pages.h: when a huge page is bought, where, for whom, and what becomes of
 * it. Prices are in huge_pages_price.c.
 */
#include "huge_pages_support.h"

#include <string.h>

#include "cell_calls.h"
#include "options/options.h"
#include "pageheap/large.h"
#include "slab_support.h"

/* ---- When ---- */

TEST(nothing_is_bought_before_slabs_and_cells_take_enough)
{
    fill(SHARE_BYTES - PIECE_BYTES);
    piece_take();
    assert_int_equal(page_heap.shared_pages << PAGE_SHIFT, SHARE_BYTES);
    assert_int_equal(shop.huge + shop.small, 0);
    fill(2 * OS_HUGE_PAGE);
    assert_true(shop.small >= 1);
    assert_in_range(shop.huge, 1, 2);
    give_all();
}

TEST(large_blocks_do_not_count_and_are_no_reason)
{
    for (size_t done = 0; done < 2 * SHARE_BYTES; done += MIB)
        alloc_by(span_alloc_packed, SPAN_LARGE, MIB >> PAGE_SHIFT, PAGE_BYTES);
    fill(OS_HUGE_PAGE);
    assert_int_equal(shop.huge + shop.small, 0);
    fill(SHARE_BYTES);
    size_t huge = shop.huge, small = shop.small;
    page_heap.large_most = LARGE_MOST;
    size_t dirty;
    static const size_t sizes[] = {MIB, 3 * MIB, 32 * MIB, MIB, 3 * MIB};
    char *blocks[5];
    for (size_t i = 0; i < 5; i++)
        blocks[i] = large_alloc(&page_heap, sizes[i], PAGE_BYTES, &dirty);
    alloc_by(span_alloc, SPAN_CELLS, CELL_SPAN_BYTES >> PAGE_SHIFT, PAGE_BYTES);
    alloc_by(span_alloc, SPAN_SLAB, 5 * HUGE_PAGES, PAGE_BYTES);
    assert_int_equal(shop.huge, huge);
    assert_int_equal(shop.small, small);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(large_free(&page_heap, (uintptr_t)blocks[i]).kind, MISUSE_NONE);
    give_all();
}

/* Takes all dirty memory for blocks that nobody may ever touch. */
static void others_take_all(void)
{
    while (page_heap.dirty.pages >= PIECE)
        alloc_by(span_alloc, SPAN_LARGE, PIECE, PIECE_BYTES);
}

TEST(what_others_take_of_it_counts_as_unused)
{
    fill_share();
    fill_to_huge();
    size_t huge = shop.huge;
    assert_int_equal(huge, 1);
    others_take_all();
    fill(SHARE_BYTES / 2);
    assert_int_equal(shop.huge, huge);
    fill(SHARE_BYTES);
    assert_true(shop.huge > huge);
    give_all();
}

/* Gives the last pieces back, and takes as many. Returns by how much less is ahead. */
static size_t recycle(size_t pieces)
{
    size_t ahead = page_heap.huge_ahead;
    for (size_t i = 0; i < pieces; i++)
        span_put(taken[--taken_count]);
    fill(pieces * PIECE_BYTES);
    return ahead - page_heap.huge_ahead;
}

TEST(dirty_memory_counts_where_huge_pages_are)
{
    fill_share();
    fill_to_huge();
    struct segment *segment = taken[0]->segment;
    assert_int_equal(recycle(4), 4 * PIECE);
    segment->huge = HUGE_SPLIT;
    assert_int_equal(recycle(4), 0);
    segment->huge = HUGE_THERE;
    give_all();
}

TEST(a_segment_that_went_back_as_a_whole_is_nobodys_loss)
{
    fill_share();
    fill_to_huge();
    assert_true(page_heap.huge_ahead > HUGE_PAGES / 2);
    give_all();
    page_heap_purge(&page_heap, 0);
    assert_int_equal(page_heap.huge_ahead, 0);
}

TEST(what_went_back_counts_as_unused)
{
    fill_share();
    fill_to_huge();
    size_t huge = shop.huge;
    page_heap_purge(&page_heap, 0);
    fill(SHARE_BYTES / 2);
    assert_int_equal(shop.huge, huge);
    fill(SHARE_BYTES);
    assert_true(shop.huge > huge);
    give_all();
}

TEST(the_count_falls_with_what_is_given_back)
{
    fill_share();
    for (size_t i = 0; i < 64; i++)
        span_put(taken[--taken_count]);
    page_heap_purge(&page_heap, 0);
    fill(64 * PIECE_BYTES);
    assert_int_equal(shop.huge + shop.small, 0);
    give_all();
}

static void assert_never_bought(void)
{
    fill(SHARE_BYTES + 16 * OS_HUGE_PAGE);
    assert_int_equal(shop.huge + shop.small + shop.refused, 0);
    give_all();
}

TEST(never_and_always_leave_no_choice)
{
    options.huge_pages = HUGE_PAGES_NEVER;
    assert_never_bought();
    options.huge_pages = HUGE_PAGES_ALWAYS;
    assert_never_bought();
    options.huge_pages = HUGE_PAGES_AUTO;
    fill(SHARE_BYTES + 16 * OS_HUGE_PAGE);
    assert_true(shop.huge >= 14);
    give_all();
}

TEST(a_provider_without_it_is_left_alone)
{
    fake.provider.populate = NULL;
    assert_never_bought();
}

TEST(where_nothing_may_be_kept_nothing_is_bought)
{
    options.purge_delay = 0;
    assert_never_bought();
}

TEST(never_beyond_what_may_be_kept)
{
    /* 8 MiB may be kept. 6 MiB and a page are, in holes into which no piece fits. */
    enum { HOLES = 3 * HUGE_PAGES + 1 };
    static struct span *holes[HOLES];
    options.dirty = 4 * OS_HUGE_PAGE;
    for (size_t i = 0; i < HOLES; i++) {
        holes[i] = span_get(1);
        alloc_by(span_alloc, SPAN_LARGE, 1, PAGE_BYTES);
    }
    for (size_t i = 0; i < HOLES; i++)
        span_put(holes[i]);
    fill_share();
    fill(4 * OS_HUGE_PAGE);
    assert_int_equal(page_heap_kept_pages(&page_heap), HOLES);
    assert_int_equal(page_heap_bound(&page_heap), 4 * HUGE_PAGES);
    assert_int_equal(shop.huge + shop.small, 0);
    alloc_by(span_alloc, SPAN_LARGE, 1, PAGE_BYTES); /* a page less */
    fill(4 * OS_HUGE_PAGE);
    assert_in_range(shop.huge, 2, 4);
    assert_int_equal(fake.purges, 0);
    give_all();
}

/* ---- Where ---- */

TEST(each_range_of_clean_memory_is_bought_while_that_is_cheap)
{
    fill_share();
    fill_rest();
    /* A few have small pages, to see what those cost. */
    assert_int_equal(shop.huge + shop.small - 1, ranges_from(shop.first_small_end));
    assert_in_range(shop.small, 2, 1 + shop.huge / HUGE_PRICE_AGE);
    assert_true(span_has_huge_pages(taken[0]));
    assert_int_equal(fake.takes, 1);
    give_all();
}

TEST(what_is_bought_is_dirty_and_used_next)
{
    fill_share();
    for (unsigned round = 0; round < 4; round++) {
        const struct span *piece = fill_to_huge();
        char *start = shop.last;
        size_t small = shop.small, huge = shop.huge;
        assert_ptr_equal(piece->start, start);
        assert_false(piece->zero);
        for (size_t used = PIECE; used < HUGE_PAGES; used += PIECE) {
            assert_int_equal(page_heap.dirty.pages, HUGE_PAGES - used);
            /* Whatever is taken. */
            piece =
                used % 3 == 0 ? alloc_by(span_alloc, SPAN_LARGE, PIECE, PAGE_BYTES) : piece_take();
            assert_ptr_equal(piece->start, start + (used << PAGE_SHIFT));
        }
        assert_int_equal(page_heap.dirty.pages, 0);
        assert_int_equal(shop.huge, huge);
        assert_int_equal(shop.small, small);
    }
    give_all();
}

/* What the other thread has, and what was being made present when it came. */
static struct span *others[3];
static size_t filling_meanwhile;

static void others_take(void)
{
    shop.meanwhile = NULL;
    filling_meanwhile = page_heap.busy_pages;
    others[0] = alloc_by(span_alloc, SPAN_LARGE, PIECE, PAGE_BYTES);
    others[1] = alloc_by(span_alloc, SPAN_LARGE, HUGE_PAGES, PAGE_BYTES);
    others[2] = piece_take();
    /* What is being made present is not purged, nor joined with its neighbours. */
    assert_int_equal(page_heap_purge(&page_heap, 0), 0);
    assert_packed_sound();
}

TEST(other_threads_take_and_free_while_one_buys)
{
    fill_share();
    fill_to_huge();
    while (page_heap.dirty.pages != 0) /* the next is bought, too */
        piece_take();
    size_t in_use = page_heap_in_use_pages(&page_heap);
    shop.meanwhile = others_take;
    const struct span *piece = piece_take();
    assert_null(shop.meanwhile);
    assert_int_equal(filling_meanwhile, HUGE_PAGES);
    assert_int_equal(page_heap.busy_pages, 0);
    /* Nobody has a page of the other's. */
    assert_int_equal(page_heap_kept_pages(&page_heap), HUGE_PAGES - PIECE);
    assert_int_equal(page_heap_in_use_pages(&page_heap) - in_use, HUGE_PAGES + 3 * PIECE);
    for (size_t i = 0; i < 3; i++)
        assert_true(span_end(others[i]) <= piece->start || others[i]->start >= span_end(piece));
    assert_packed_sound();
    give_all();
}

TEST(what_is_not_used_goes_like_all_that_is_dirty)
{
    fill_share();
    fill_to_huge();
    size_t clean = page_heap.clean.pages;
    assert_int_equal(page_heap_purge(&page_heap, 0), OS_HUGE_PAGE - PIECE_BYTES);
    assert_int_equal(page_heap.clean.pages - clean, HUGE_PAGES - PIECE);
    assert_int_equal(fake.purged_bytes, OS_HUGE_PAGE - PIECE_BYTES);
    assert_packed_sound();
    assert_true(piece_take()->zero);
    give_all();
}

TEST(ranges_that_are_not_clean_as_a_whole_are_not_bought)
{
    fill_share();
    fill_to_huge();
    char *next = shop.last + OS_HUGE_PAGE;
    while (page_heap.dirty.pages != 0)
        piece_take();
    /* Walls of a page on both sides of every other border, and nearly 4 MiB between them. */
    enum { GAPS = 8, GAP = 2 * HUGE_PAGES - 2 };
    struct span *gaps[GAPS];
    for (size_t i = 0; i < GAPS; i++) {
        struct span *wall;
        do /* first the pages before the first piece, where the segment begins at no multiple of one
            */
            wall = alloc_by(span_alloc, SPAN_LARGE, 1, PAGE_BYTES);
        while (i == 0 && wall->start < next && wall->start < taken[0]->start);
        assert_ptr_equal(wall->start, next + i * 2 * OS_HUGE_PAGE);
        gaps[i] = span_get(GAP);
        alloc_by(span_alloc, SPAN_LARGE, 1, PAGE_BYTES);
    }
    for (size_t i = 0; i < GAPS; i++)
        span_put(gaps[i]);
    page_heap_purge(&page_heap, 0);
    size_t huge = shop.huge;
    fill((GAPS - 2) * (GAP - PIECE) << PAGE_SHIFT);
    assert_int_equal(shop.huge, huge);
    assert_in_range((uintptr_t)taken[taken_count - 1]->start, (uintptr_t)next,
                    (uintptr_t)next + GAPS * 2 * OS_HUGE_PAGE);
    give_all();
}

TEST(the_end_of_a_segment_is_not_bought_beyond)
{
    options.prefault = SHARE_BYTES + 3 * OS_HUGE_PAGE;
    fill_share();
    fill_rest();
    for (struct list *node = page_heap.segments.next; node != &page_heap.segments;
         node = node->next)
        assert_true(CONTAINER_OF(node, struct segment, link)->pages >= HUGE_PAGES);
    assert_in_range(shop.huge, 1, 3);
    give_all();
}

TEST(a_long_span_lies_in_what_is_bought_and_leaves_what_is_before)
{
    enum { PAGES = CELL_SPAN_BYTES >> PAGE_SHIFT };
    alloc_by(span_alloc, SPAN_LARGE, 3, PAGE_BYTES); /* so that no span begins at a border */
    while (page_heap.shared_pages << PAGE_SHIFT < SHARE_BYTES)
        alloc_by(span_alloc_packed, SPAN_CELLS, PAGES, PAGE_BYTES);
    const struct span *span;
    do
        span = alloc_by(span_alloc_packed, SPAN_CELLS, PAGES, PAGE_BYTES);
    while (shop.huge == 0);
    assert_ptr_equal(span->start, shop.last);
    assert_int_equal(span->left->kind, SPAN_CLEAN); /* what is before it waits for a shorter one */
    assert_in_range(span->left->pages, 1, PAGES - 1);
    assert_int_equal(span->right->kind, SPAN_DIRTY);
    assert_int_equal(span->right->pages, HUGE_PAGES - PAGES);
    span = alloc_by(span_alloc_packed, SPAN_CELLS, PAGES, PAGE_BYTES);
    assert_ptr_equal(span_end(span), shop.last + OS_HUGE_PAGE);
    assert_int_equal(shop.huge, 1);
    give_all();
}

/* ---- Who ---- */

TEST(slabs_are_a_reason)
{
    enum { OBJECTS = 48 * 1024 };
    static uintptr_t objects[OBJECTS];
    struct bin bin;
    size_classes_init();
    bin_begin(&bin, class_of_size(1024));
    page_heap.untouched = true; /* so that it runs fast */
    objects_alloc(&bin, objects, OBJECTS);
    assert_in_range(shop.huge, 6, 8);
    assert_packed_sound();
    objects_free(objects, OBJECTS);
    bin_trim(&bin);
    give_all();
}

/* Takes cells of so many units until they are 48 MiB. Returns how many huge pages were bought. */
static size_t cells_fill(size_t units)
{
    static uintptr_t blocks[48 * MIB / (2 * KIB)];
    size_t count = 48 * MIB / (units * CELL_UNIT), huge = shop.huge;
    for (size_t i = 0; i < count; i++) {
        struct misuse misuse;
        blocks[i] = (uintptr_t)cells_alloc_any(&cells, units * CELL_UNIT - CELL_HEADER, MIN_ALIGN,
                                               true, &misuse);
        assert_true(blocks[i] != 0);
        cell_set_state(blocks[i], CELL_CACHED);
    }
    huge = shop.huge - huge;
    assert_cells_sound();
    cells_free(blocks, count);
    assert_cells_sound();
    assert_null(shop.wrong);
    return huge;
}

TEST(cells_of_a_page_are_a_reason)
{
    assert_in_range(cells_fill(PAGE_BYTES / CELL_UNIT), 6, 8);
}

TEST(an_eighth_more_than_a_page_is_the_most)
{
    assert_in_range(cells_fill(PAGE_BYTES / CELL_UNIT * 8 / 7), 5, 8);
    assert_int_equal(cells_fill(PAGE_BYTES / CELL_UNIT * 7 / 6), 0);
}

TEST(large_cells_are_none)
{
    assert_int_equal(cells_fill(40 * KIB / CELL_UNIT), 0);
    assert_int_equal(shop.small, 0);
}

/* The mean is as small as a page, but most of the bytes may stay untouched. */
TEST(large_cells_among_many_small_ones_are_counted_by_bytes)
{
    enum { LARGE = 400, EACH = 38 };
    static uintptr_t small[LARGE * EACH], large[LARGE];
    for (size_t i = 0; i < LARGE; i++) {
        large[i] = cell_get(100 * KIB);
        for (size_t j = 0; j < EACH; j++)
            small[i * EACH + j] = cell_get(1100);
    }
    assert_true(page_heap.shared_pages << PAGE_SHIFT > SHARE_BYTES);
    assert_true(page_heap.cells_loose > 8000);
    assert_int_equal(shop.huge + shop.small, 0);
    assert_cells_sound();
    /* Nor are they a reason for slabs, before these have enough. */
    fill(SHARE_BYTES / 4);
    assert_int_equal(shop.huge + shop.small, 0);
    fill(SHARE_BYTES);
    assert_true(shop.huge != 0);
    for (size_t i = 0; i < LARGE; i++) {
        cell_put(large[i]);
        for (size_t j = 0; j < EACH; j++)
            cell_put(small[i * EACH + j]);
    }
    cells_purge(&cells, true);
    give_all();
}

TEST(few_large_cells_among_many_small_ones_are_no_hindrance)
{
    static uintptr_t large[64];
    for (size_t i = 0; i < 64; i++)
        large[i] = cell_get(64 * KIB); /* 4 MiB */
    assert_in_range(cells_fill(2 * KIB / CELL_UNIT), 6, 10);
    for (size_t i = 0; i < 64; i++)
        cell_put(large[i]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(nothing_is_bought_before_slabs_and_cells_take_enough, packed_begin, packed_end),
        ROW_WITH(large_blocks_do_not_count_and_are_no_reason, packed_begin, packed_end),
        ROW_WITH(what_others_take_of_it_counts_as_unused, packed_begin, packed_end),
        ROW_WITH(dirty_memory_counts_where_huge_pages_are, packed_begin, packed_end),
        ROW_WITH(a_segment_that_went_back_as_a_whole_is_nobodys_loss, packed_begin, packed_end),
        ROW_WITH(what_went_back_counts_as_unused, packed_begin, packed_end),
        ROW_WITH(the_count_falls_with_what_is_given_back, packed_begin, packed_end),
        ROW_WITH(never_and_always_leave_no_choice, packed_begin, packed_end),
        ROW_WITH(a_provider_without_it_is_left_alone, packed_begin, packed_end),
        ROW_WITH(where_nothing_may_be_kept_nothing_is_bought, packed_begin, packed_end),
        ROW_WITH(never_beyond_what_may_be_kept, packed_begin, packed_end),
        ROW_WITH(each_range_of_clean_memory_is_bought_while_that_is_cheap, packed_begin,
                 packed_end),
        ROW_WITH(what_is_bought_is_dirty_and_used_next, packed_begin, packed_end),
        ROW_WITH(other_threads_take_and_free_while_one_buys, packed_begin, packed_end),
        ROW_WITH(what_is_not_used_goes_like_all_that_is_dirty, packed_begin, packed_end),
        ROW_WITH(ranges_that_are_not_clean_as_a_whole_are_not_bought, packed_begin, packed_end),
        ROW_WITH(the_end_of_a_segment_is_not_bought_beyond, packed_begin, packed_end),
        ROW_WITH(a_long_span_lies_in_what_is_bought_and_leaves_what_is_before, packed_begin,
                 packed_end),
        ROW_WITH(slabs_are_a_reason, packed_begin, packed_end),
        ROW_WITH(cells_of_a_page_are_a_reason, packed_begin, packed_end),
        ROW_WITH(an_eighth_more_than_a_page_is_the_most, packed_begin, packed_end),
        ROW_WITH(large_cells_are_none, packed_begin, packed_end),
        ROW_WITH(large_cells_among_many_small_ones_are_counted_by_bytes, packed_begin, packed_end),
        ROW_WITH(few_large_cells_among_many_small_ones_are_no_hindrance, packed_begin, packed_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
