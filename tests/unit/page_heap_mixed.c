/*
 * Tests of requests that are made of kept and of clean pages (span.c), and of purging where there
 * are huge pages (page_heap_purge.h).
 */
#include "pageheap/sparse.h" /* before names of ours that its parameters have too */

#include "page_heap_support.h"

#include <string.h>

#include "options/options.h"
#include "pageheap/large.h"
#include "platform/memory.h"

/* ---- Dirty and clean pages in one span ---- */

TEST(a_long_request_takes_what_is_dirty_and_what_is_clean_beside_it)
{
    struct span *wall = span_get(1);
    struct span *dirty = span_get(60);
    char *start = dirty->start;
    memset(start, 1, span_bytes_of(dirty));
    span_put(dirty);
    size_t clean = page_heap.clean.pages;
    struct span *span = span_get(100);
    assert_ptr_equal(span->start, start);
    assert_false(span->zero);
    assert_int_equal(page_heap.dirty.pages, 0);
    assert_int_equal(clean - page_heap.clean.pages, 40);
    assert_page_heap_sound();
    span_put(span);
    span_put(wall);
    assert_page_heap_empty();
}

/* wall | dirty | clean | dirty | wall, 40 pages each. */
static struct span *walls[2];

static char *chain_make(void)
{
    struct span *part[3];
    walls[0] = span_get(1);
    for (size_t i = 0; i < 3; i++)
        part[i] = span_get(40);
    walls[1] = span_get(1);
    char *start = part[0]->start;
    span_put(part[1]);
    page_heap_purge(&page_heap, 0);
    span_put(part[0]);
    span_put(part[2]);
    assert_int_equal(page_heap.dirty.pages, 80);
    return start;
}

static void chain_end(struct span *span)
{
    assert_page_heap_sound();
    if (span != NULL)
        span_put(span);
    span_put(walls[0]);
    span_put(walls[1]);
    assert_page_heap_empty();
}

TEST(a_chain_of_free_runs_serves_as_one)
{
    NEED_SMALL_PAGES;
    char *start = chain_make();
    struct span *span = span_get(120);
    assert_ptr_equal(span->start, start);
    assert_int_equal(page_heap.dirty.pages, 0);
    chain_end(span);
}

TEST(of_a_chain_no_more_is_taken_than_is_asked_for)
{
    NEED_SMALL_PAGES;
    char *start = chain_make();
    size_t clean = page_heap.clean.pages;
    struct span *span = span_get(100);
    assert_true(span->start >= start && span_end(span) <= start + (120 << PAGE_SHIFT));
    assert_int_equal(page_heap.dirty.pages, 80 - (100 - (clean - page_heap.clean.pages)));
    chain_end(span);
}

/* How a request that no run has room for is served while there is the chain: by it, or not. */
static void assert_served(size_t pages, size_t alignment, bool by_chain)
{
    char *start = chain_make();
    struct span *span = span_new(SPAN_LARGE, pages, alignment);
    assert_non_null(span);
    assert_int_equal((uintptr_t)span->start % alignment, 0);
    assert_int_equal(span->start >= start && span_end(span) <= start + (120 << PAGE_SHIFT),
                     by_chain);
    assert_int_equal(span->zero, !by_chain);
    assert_true(by_chain ? page_heap.dirty.pages < 80 : page_heap.dirty.pages == 80);
    assert_page_heap_sound();
    span_put(span);
    page_heap_purge(&page_heap, 80);
    chain_end(NULL);
}

TEST(an_aligned_request_is_made_of_parts_that_have_room_wherever_they_begin)
{
    NEED_SMALL_PAGES;
    assert_served(64, 16 * PAGE_BYTES, true);
    assert_served(89, 32 * PAGE_BYTES, true);
    assert_served(90, 32 * PAGE_BYTES, false);
    assert_served(64, 64 * PAGE_BYTES, false);
}

/* The dirty run has all that is free on its left, and less on its right than the next multiple
 * takes.
 */
TEST(an_aligned_request_takes_what_is_on_the_left_as_well)
{
    NEED_SMALL_PAGES;
    enum { STEP = 16 };
    struct span *front[STEP + 1], *span;
    size_t count = 0;
    do {
        assert_true(count <= STEP);
        front[count] = span_get(1);
    } while ((uintptr_t)front[count++]->start % (STEP * PAGE_BYTES) != 0);
    struct span *clean = span_get(3 * STEP), *dirty = span_get(2), *back = span_get(3 * STEP - 4),
                *wall = span_get(1);
    char *start = front[count - 1]->start;
    assert_ptr_equal(wall->start, start + (6 * STEP - 1) * PAGE_BYTES);
    span_put(clean);
    span_put(back);
    page_heap_purge(&page_heap, 0);
    span_put(dirty);
    assert_int_equal(page_heap.dirty.pages, 2);
    retention_released(&page_heap.retention, 8 * STEP, page_heap.now());
    page_heap.retention.wanted = 0;
    page_heap.retention.cramped = false;
    /* The first of these pages is one behind a multiple, the last two before one, so there is one
     * place. */
    assert_non_null(span = span_new(SPAN_LARGE, 4 * STEP, STEP * PAGE_BYTES));
    assert_ptr_equal(span->start, start + STEP * PAGE_BYTES);
    /* No more was missed than was taken. */
    assert_in_range(page_heap.retention.wanted, 1, 4 * STEP + 4 * STEP / SLACK_SHARE);
    assert_page_heap_sound();
    span_put(span);
    span_put(wall);
    while (count != 0)
        span_put(front[--count]);
    assert_page_heap_empty();
}

/* Where blocks stay empty, short ones leave what others left in between to the next purge. */
TEST(of_blocks_that_stay_empty_only_long_ones_are_made_of_parts)
{
    NEED_SMALL_PAGES;
    page_heap.sparse_seen = SPARSE_SEEN;
    assert_served(64, 16 * PAGE_BYTES, false);
    page_heap.sparse_seen = SPARSE_SEEN;
    assert_served(100, PAGE_BYTES, true);
    struct span *wall = span_get(1), *all = span_get(2100);
    char *start = all->start;
    span_put(all);
    page_heap_purge(&page_heap, 1); /* leaves the segment */
    struct span *dirty = span_get(1000), *clean = span_get(1000);
    assert_ptr_equal(dirty->start, start);
    span_put(clean);
    page_heap_purge(&page_heap, 1);
    span_put(dirty);
    page_heap.sparse_seen = SPARSE_SEEN;
    struct span *span = span_new(SPAN_LARGE, 1200, OS_HUGE_PAGE);
    assert_true(span->start < start + 1000 * PAGE_BYTES);
    assert_false(span->zero);
    span_put(span);
    span_put(wall);
    assert_page_heap_empty();
}

TEST(short_requests_are_not_made_of_parts)
{
    NEED_SMALL_PAGES;
    struct span *wall = span_get(1), *dirty = span_get(20), *clean = span_get(20),
                *other = span_get(1);
    span_put(clean);
    page_heap_purge(&page_heap, 0);
    span_put(dirty);
    struct span *span = span_get(31);
    assert_true(span->zero);
    assert_int_equal(page_heap.dirty.pages, 20);
    span_put(span);
    span_put(wall);
    span_put(other);
    assert_page_heap_empty();
}

TEST(what_only_what_is_kept_may_serve_is_refused_without)
{
    struct span *span = span_get(50), *wall = span_get(1);
    struct span other = {.units = 1};
    lock_acquire(&page_heap.lock);
    bool taken = span_alloc_large(&page_heap, &other, 50, PAGE_BYTES, true);
    lock_release(&page_heap.lock);
    assert_false(taken);
    char *start = span->start;
    span_put(span);
    struct span *again = span_new(SPAN_LARGE, 1, PAGE_BYTES); /* a descriptor to use */
    span_free(&page_heap, again, 0);
    assert_true(page_heap.dirty.pages >= 50);
    size_t dirty;
    char *block = large_alloc_grown(&page_heap, 50 << PAGE_SHIFT, &dirty);
    assert_ptr_equal(block, start);
    assert_int_equal(large_free(&page_heap, (uintptr_t)block).kind, MISUSE_NONE);
    span_put(wall);
    assert_page_heap_empty();
}

TEST(what_grows_has_its_own_mapping_unless_it_fits_into_what_is_kept)
{
    size_t dirty;
    page_heap.large_most = LARGE_MOST;
    char *fresh = large_alloc_grown(&page_heap, 3 * MIB, &dirty);
    assert_int_equal(page_heap.huge_count, 1);
    assert_int_equal(large_free(&page_heap, (uintptr_t)fresh).kind, MISUSE_NONE);
    char *kept = large_alloc_grown(&page_heap, 2 * MIB, &dirty);
    assert_int_equal(page_heap.huge_count, 0);
    assert_ptr_equal(kept, fresh);
    assert_int_equal(large_free(&page_heap, (uintptr_t)kept).kind, MISUSE_NONE);
    assert_page_heap_empty();
}

/* ---- Huge pages ---- */

static unsigned asked, declined;

static bool want_huge(const struct provider *provider, void *start, size_t bytes, bool huge)
{
    (void)provider, (void)start, (void)bytes;
    asked += huge;
    declined += !huge;
    return huge;
}

/* Spans of 16 pages that fill segments whose huge pages were asked for. */
enum { PIECES = 1024, PIECE = 16 };
static struct span *pieces[PIECES];

static int begin_huge(void **state)
{
    int result = page_heap_begin(state);
    asked = declined = 0;
    fake.provider.want_huge = want_huge;
    options.prefault = 4 * MIB; /* the first segment is long */
    for (size_t i = 0; i < PIECES; i++)
        pieces[i] = span_get(PIECE);
    return result;
}

static void pieces_give(size_t first, size_t step)
{
    for (size_t i = first; i < PIECES; i += step) {
        span_put(pieces[i]);
        pieces[i] = NULL;
    }
}

static void pieces_give_rest(void)
{
    for (size_t i = 0; i < PIECES; i++)
        if (pieces[i] != NULL)
            span_put(pieces[i]);
    assert_page_heap_empty();
}

TEST(in_order_only_whole_huge_pages_are_purged)
{
    assert_true(asked >= 4);
    for (size_t i = 0; i < PIECES - 1; i++) {
        span_put(pieces[i]);
        pieces[i] = NULL;
        if (i % 64 == 0)
            assert_page_heap_sound();
    }
    assert_true(fake.purges > 0);
    assert_int_equal(fake.purged_bytes % OS_HUGE_PAGE, 0);
    assert_int_equal(declined, 0);
    pieces_give_rest();
}

TEST(what_is_scattered_goes_when_it_is_much)
{
    pieces_give(0, 2); /* 32 MiB in pieces: no huge page is free as a whole */
    assert_page_heap_sound();
    assert_true(declined > 0);
    assert_true(page_heap_kept_pages(&page_heap) <= 2 * size_max(1024, page_heap.used_pages / 8));
    unsigned before = asked;
    pieces_give(1, 2);
    for (size_t i = 0; i < PIECES; i++)
        pieces[i] = span_get(PIECE);
    assert_true(asked > before); /* what is taken anew may have huge pages again */
    pieces_give_rest();
}

TEST(what_is_scattered_goes_when_it_stays_free)
{
    pieces_give(0, 8); /* 8 MiB: more than the base, and not twice that */
    size_t base = size_max(1024, page_heap.used_pages / 8);
    assert_true(page_heap_kept_pages(&page_heap) > base);
    for (unsigned i = 0; i < 3 && page_heap_tick_is_due(&page_heap); i++) {
        page_heap_tick(&page_heap);
        fake_now += FAKE_SECOND;
    }
    assert_true(page_heap_kept_pages(&page_heap) <= base);
    assert_false(page_heap_tick_is_due(&page_heap));
    assert_page_heap_sound();
    pieces_give_rest();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(a_long_request_takes_what_is_dirty_and_what_is_clean_beside_it, page_heap_begin,
                 page_heap_end),
        ROW_WITH(a_chain_of_free_runs_serves_as_one, page_heap_begin, page_heap_end),
        ROW_WITH(of_a_chain_no_more_is_taken_than_is_asked_for, page_heap_begin, page_heap_end),
        ROW_WITH(an_aligned_request_is_made_of_parts_that_have_room_wherever_they_begin,
                 page_heap_begin, page_heap_end),
        ROW_WITH(an_aligned_request_takes_what_is_on_the_left_as_well, page_heap_begin,
                 page_heap_end),
        ROW_WITH(of_blocks_that_stay_empty_only_long_ones_are_made_of_parts, page_heap_begin,
                 page_heap_end),
        ROW_WITH(short_requests_are_not_made_of_parts, page_heap_begin, page_heap_end),
        ROW_WITH(what_only_what_is_kept_may_serve_is_refused_without, page_heap_begin,
                 page_heap_end),
        ROW_WITH(what_grows_has_its_own_mapping_unless_it_fits_into_what_is_kept, page_heap_begin,
                 page_heap_end),
        ROW_WITH(in_order_only_whole_huge_pages_are_purged, begin_huge, page_heap_end),
        ROW_WITH(what_is_scattered_goes_when_it_is_much, begin_huge, page_heap_end),
        ROW_WITH(what_is_scattered_goes_when_it_stays_free, begin_huge, page_heap_end),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
