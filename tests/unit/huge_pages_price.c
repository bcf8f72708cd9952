/*
 * Tests of pageheap/huge_pages.h: what is bought at which price, how prices are measured, and what
 * is left of an attempt that failed.
 */
#include "huge_pages_support.h"

#include <string.h>

#include "meta/meta.h"
#include "options/options.h"

/* ---- At what price ---- */

/* How many huge pages are bought at so many occasions if all are dear. */
static size_t dear_buys(size_t occasions)
{
    size_t count = 0;
    for (size_t next = 1, wait = BACKOFF_LEAST; next <= occasions; next += wait + 1, wait *= 2)
        count++;
    return count;
}

TEST(dear_ones_are_tried_more_and_more_rarely)
{
    options.prefault = GIB;
    shop.huge_ns = 4000;
    fill_share();
    fill_rest();
    size_t occasions = ranges_from(shop.first_small_end);
    assert_in_range(occasions, 490, 496);
    assert_int_equal(shop.huge, 6); /* the 1st, 10th, 27th, 60th, 125th and 254th */
    assert_int_equal(shop.huge, dear_buys(occasions));
    assert_in_range(shop.small, occasions / HUGE_PRICE_AGE, occasions / HUGE_PRICE_AGE + 1);
    assert_int_equal(fake.takes, 1);
    assert_false(span_has_huge_pages(taken[0]));
    give_all();
}

TEST(three_quarters_of_small_pages_are_not_cheap_enough)
{
    shop.huge_ns = 760;
    fill_share();
    fill_rest();
    assert_int_equal(shop.huge, dear_buys(ranges_from(shop.first_small_end)));
    give_all();
}

TEST(when_they_are_cheap_again_all_are_bought_again)
{
    shop.huge_ns = 4000;
    fill_share();
    while (shop.huge < 1)
        piece_take();
    shop.huge_ns = 300; /* seven of them pay back what that cost */
    while (shop.huge < 1 + 7)
        piece_take();
    const char *from = shop.last;
    for (unsigned i = 0; i < 8; i++)
        fill_to_huge();
    assert_in_range((size_t)(shop.last - from) / OS_HUGE_PAGE, 8, 9); /* one to measure in */
    assert_true(span_has_huge_pages(taken[0]));
    give_all();
}

/* The first measurement may be one that was interrupted; and nothing else is measured where every
 * range is bought. */
TEST(small_pages_are_measured_again_where_all_memory_is_bought)
{
    shop.small_ns = 10000;
    shop.huge_ns = 4000;
    fill_share();
    fill_to_huge();
    shop.small_ns = 1000;
    fill_rest();
    assert_in_range(shop.huge, HUGE_PRICE_AGE, HUGE_PRICE_AGE + 4);
    assert_in_range(shop.small, 2, 3);
    give_all();
}

TEST(in_memory_that_was_used_before_the_price_says_nothing)
{
    fake.provider.populate = NULL;
    fill(SEGMENT / 2);
    while (taken_count > 1)
        span_put(taken[--taken_count]);
    page_heap_purge(&page_heap, 0);
    fake.provider.populate = shop_populate;
    shop.huge_ns = 4000;
    fill(SEGMENT / 2 - OS_HUGE_PAGE);
    assert_int_equal(page_heap.huge_price.backoff.waited, 0);
    assert_true(shop.huge >= (SEGMENT / 2 - SHARE_BYTES) / OS_HUGE_PAGE - 4);
    assert_true(span_has_huge_pages(taken[0]));
    give_all();
}

TEST(a_measurement_is_of_16_pages_and_of_a_whole_span)
{
    fill_share();
    while (shop.small == 0)
        piece_take();
    assert_int_equal(shop.last_bytes, 16 << PAGE_SHIFT);
    assert_int_equal(page_heap.dirty.pages, 16 - PIECE);
    assert_int_equal(page_heap.huge_price.small_ns, shop.small_ns + 1);
    give_all();
    memset(&page_heap.huge_price, 0, sizeof(page_heap.huge_price));
    memset(&shop, 0, sizeof(shop));
    shop.small_ns = 700;
    fill_share();
    while (shop.small == 0)
        alloc_by(span_alloc_packed, SPAN_CELLS, 64, PAGE_BYTES);
    assert_int_equal(shop.last_bytes, 64 << PAGE_SHIFT);
    assert_int_equal(page_heap.huge_price.small_ns, 701);
    give_all();
}

TEST(what_is_bought_counts_as_missed)
{
    fill_share();
    fill_to_huge();
    while (page_heap.dirty.pages != 0)
        piece_take();
    retention_released(&page_heap.retention, 4 * HUGE_PAGES, fake_now);
    fill_to_huge();
    assert_int_equal(page_heap.retention.ghosts, 3 * HUGE_PAGES);
    assert_in_range(page_heap.retention.wanted, HUGE_PAGES, 2 * HUGE_PAGES);
    give_all();
}

TEST(a_measurement_has_room_in_its_run)
{
    fill_share();
    const char *hole = taken[100]->start;
    span_put(taken[100]);
    page_heap_purge(&page_heap, 0);
    taken[100] = taken[--taken_count];
    alloc_by(span_alloc_packed, SPAN_SLAB, 2 * PIECE,
             PAGE_BYTES); /* so that they are enough again */
    assert_int_equal(shop.small, 0);
    const struct span *piece = piece_take();
    assert_ptr_equal(piece->start, hole);
    assert_int_equal(shop.small, 0);
    piece_take();
    assert_int_equal(shop.small, 1);
    give_all();
}

/* What comes next would lose its huge page. */
TEST(a_measurement_does_not_reach_into_the_next_range)
{
    fill_share();
    const char *next = span_end(taken[taken_count - 1]);
    size_t before =
        (size_t)(align_up((uintptr_t)next, OS_HUGE_PAGE) - (uintptr_t)next) >> PAGE_SHIFT;
    before = before >= PIECE ? before : before + HUGE_PAGES;
    if (before > PIECE)
        alloc_by(span_alloc, SPAN_LARGE, before - PIECE, PAGE_BYTES);
    const struct span *piece = piece_take();
    assert_int_equal((uintptr_t)span_end(piece) % OS_HUGE_PAGE, 0);
    assert_int_equal(shop.small, 0);
    piece_take();
    piece_take();
    assert_int_equal(shop.small, 1);
    give_all();
}

/* ---- When it cannot be done ---- */

/* Takes a piece for which something is asked in vain. */
static void refused_take(size_t bytes)
{
    size_t clean, dirty, used = meta_bytes_used(), refused = shop.refused;
    unsigned purges = fake.purges;
    size_t purged = fake.purged_bytes;
    const struct span *piece;
    do {
        clean = page_heap.clean.pages;
        dirty = page_heap.dirty.pages;
        used = meta_bytes_used();
        piece = piece_take();
    } while (shop.refused == refused);
    assert_int_equal(shop.refused, refused + 1);
    assert_int_equal(page_heap.clean.pages, clean - PIECE);
    assert_int_equal(page_heap.dirty.pages, dirty);
    assert_true(piece->zero);
    assert_int_equal(meta_bytes_used(), used + META_LEAST);
    /* Some of it may be there. */
    assert_int_equal(fake.purges, purges + 1);
    assert_int_equal(fake.purged_bytes, purged + bytes);
}

TEST(a_huge_page_that_is_refused_leaves_all_as_it_was)
{
    fill_share();
    fill_to_huge();
    struct huge_price price = page_heap.huge_price;
    shop.huge_ns = 0;
    refused_take(OS_HUGE_PAGE);
    assert_int_equal(page_heap.huge_price.backoff.wait,
                     BACKOFF_LEAST); /* it is not asked for at every range */
    refused_take(OS_HUGE_PAGE);
    assert_int_equal(page_heap.huge_price.backoff.wait, 2 * BACKOFF_LEAST);
    assert_int_equal(page_heap.huge_price.small_ns, price.small_ns);
    shop.huge_ns = 300;
    fill_to_huge();
    give_all();
}

TEST(a_measurement_that_is_refused_leaves_all_as_it_was)
{
    shop.small_ns = 0;
    fill_share();
    for (unsigned i = 0; i < 5; i++)
        refused_take(16 << PAGE_SHIFT);
    assert_int_equal(page_heap.huge_price.small_ns, 0);
    assert_int_equal(shop.huge, 0);
    give_all();
}

static char area[64 * KIB] __attribute__((aligned(4096)));
static struct meta fixed;

/* Leaves so many descriptors. */
static void meta_leave(size_t count)
{
    void *left[4];
    for (size_t i = 0; i < count; i++) {
        left[i] = meta_alloc_from(&fixed, META_LEAST);
        assert_non_null(left[i]);
    }
    while (meta_alloc_from(&fixed, META_LEAST) != NULL)
        continue;
    for (size_t i = 0; i < count; i++)
        meta_free_to(&fixed, left[i], META_LEAST);
}

/* A span that begins before a range of which all is clean, with so many descriptors left. */
static void take_with_descriptors(size_t count)
{
    enum { PAGES = CELL_SPAN_BYTES >> PAGE_SHIFT };
    memset(area, 0, sizeof(area));
    meta_init(&fixed, area, sizeof(area));
    page_heap.meta = &fixed;
    alloc_by(span_alloc, SPAN_LARGE, 3, PAGE_BYTES);
    const char *next, *border;
    do {
        next = span_end(alloc_by(span_alloc_packed, SPAN_CELLS, PAGES, PAGE_BYTES));
        border = (const char *)align_up((uintptr_t)next, OS_HUGE_PAGE);
    } while (shop.small == 0 || border >= next + CELL_SPAN_BYTES);
    assert_int_equal(shop.huge, 0);
    assert_true(border != next);
    size_t clean = page_heap.clean.pages, huge = shop.huge;
    unsigned purges = fake.purges;
    struct span *span = meta_alloc_from(&fixed, sizeof(*span));
    span->units = 1;
    meta_leave(count);
    size_t used = fixed.used;
    assert_true(span_alloc_packed(&page_heap, span, SPAN_CELLS, PAGES, PAGE_BYTES));
    taken[taken_count++] = span;
    assert_packed_sound();
    bool bought = count >= 2;
    assert_int_equal(shop.huge, huge + bought);
    assert_int_equal(page_heap.clean.pages, clean - (bought ? HUGE_PAGES : PAGES));
    assert_int_equal(page_heap.dirty.pages, bought ? HUGE_PAGES - PAGES : 0);
    assert_int_equal(fake.purges, purges); /* nothing was populated in vain */
    assert_int_equal(fake.purged_bytes, 0);
    assert_int_equal(fixed.used, used + (bought ? 2 * META_LEAST : 0));
}

TEST(without_a_descriptor_nothing_is_asked_for)
{
    take_with_descriptors(0);
    give_all();
}

TEST(without_a_descriptor_for_what_is_left_neither)
{
    take_with_descriptors(1);
    give_all();
}

TEST(two_descriptors_are_enough)
{
    take_with_descriptors(2);
    give_all();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(dear_ones_are_tried_more_and_more_rarely, packed_begin, packed_end),
        ROW_WITH(three_quarters_of_small_pages_are_not_cheap_enough, packed_begin, packed_end),
        ROW_WITH(when_they_are_cheap_again_all_are_bought_again, packed_begin, packed_end),
        ROW_WITH(small_pages_are_measured_again_where_all_memory_is_bought, packed_begin,
                 packed_end),
        ROW_WITH(in_memory_that_was_used_before_the_price_says_nothing, packed_begin, packed_end),
        ROW_WITH(a_measurement_is_of_16_pages_and_of_a_whole_span, packed_begin, packed_end),
        ROW_WITH(what_is_bought_counts_as_missed, packed_begin, packed_end),
        ROW_WITH(a_measurement_has_room_in_its_run, packed_begin, packed_end),
        ROW_WITH(a_measurement_does_not_reach_into_the_next_range, packed_begin, packed_end),
        ROW_WITH(a_huge_page_that_is_refused_leaves_all_as_it_was, packed_begin, packed_end),
        ROW_WITH(a_measurement_that_is_refused_leaves_all_as_it_was, packed_begin, packed_end),
        ROW_WITH(without_a_descriptor_nothing_is_asked_for, packed_begin, packed_end),
        ROW_WITH(without_a_descriptor_for_what_is_left_neither, packed_begin, packed_end),
        ROW_WITH(two_descriptors_are_enough, packed_begin, packed_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
