/*
 * Tests of lending (magazine/arena_idle.c): a class that would grow borrows objects of a larger
 * class of which much lies idle.
 */
#include "heap_support.h"

#include <string.h>

#include "api/sized.h"
#include "meta/page_map.h"

/* Blocks of one size, of which one in STAYS stays. */
enum { BLOCKS = 4000, SHORT_BLOCKS = 30000, STAYS = 20, LARGE = 1008 };

static char *kept[SHORT_BLOCKS];
static char *blocks[BLOCKS];

static size_t class_at(const char *block)
{
    return page_map_class((uintptr_t)block);
}

/* Takes so many and frees all but some, the oldest first; `kept` has the others. */
static void leave_idle(size_t bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        kept[i] = block_get(bytes);
    for (size_t i = 0; i < count; i++)
        if (i % STAYS != 0) {
            heap_free(kept[i]);
            kept[i] = NULL;
        }
}

static void give_back(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        heap_free(blocks[i]);
        blocks[i] = NULL;
    }
}

static int end(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHORT_BLOCKS; i++) {
        heap_free(kept[i]);
        kept[i] = NULL;
    }
    give_back(BLOCKS);
    cache_flush(thread_self.cache);
    heap_trim(0); /* nothing is left for the next test to borrow, and none has borrowed */
    memset(heap_default.arenas.lending, 0, sizeof(heap_default.arenas.lending));
    heap_default.arenas.loans = 0;
    assert_heap_sound();
    return 0;
}

/* How many of the blocks have the class of their size; the others must be of a class that is larger
 * by a quarter at most. */
static size_t count_own(size_t bytes, size_t count)
{
    size_t own = 0, class = class_of_size(bytes);
    for (size_t i = 0; i < count; i++) {
        assert_in_range(class_at(blocks[i]), class, class + class / 4);
        own += class_at(blocks[i]) == class;
    }
    return own;
}

static void take(size_t bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        blocks[i] = block_get(bytes);
}

/* The first requests are for cells, which must be over. */
static void warm(size_t bytes)
{
    static char *cells[200];
    for (size_t i = 0; i < 200; i++)
        cells[i] = block_get(bytes);
    for (size_t i = 0; i < 200; i++)
        heap_free(cells[i]);
}

TEST(what_grows_borrows_what_is_idle)
{
    enum { SMALLER = 976, COUNT = 2000 };
    warm(SMALLER);
    leave_idle(LARGE, BLOCKS);
    size_t slabs = class_totals(class_of_size(LARGE)).slabs;
    take(SMALLER, COUNT);
    size_t own = count_own(SMALLER, COUNT);
    /* One slab's worth for each eight that are borrowed, and what the class had before. */
    assert_in_range(own, COUNT / 5, COUNT / 6 + 200);
    assert_in_range(class_totals(class_of_size(LARGE)).slabs, slabs / 2, slabs);
}

/* Of these more than a depot may hold. */
TEST(so_do_short_ones)
{
    enum { SMALLER = 96, SHORT = 112, COUNT = 3000 };
    leave_idle(SHORT, SHORT_BLOCKS);
    take(SMALLER, COUNT);
    assert_in_range(count_own(SMALLER, COUNT), 1, COUNT / 2);
}

TEST(it_grows_when_that_is_used_up)
{
    enum { SMALLER = 976 };
    warm(SMALLER);
    leave_idle(LARGE, BLOCKS);
    size_t slabs = class_totals(class_of_size(LARGE)).slabs;
    take(SMALLER, BLOCKS);
    heap_free(block_get(LARGE)); /* which still has some */
    struct class_totals lender = class_totals(class_of_size(LARGE));
    assert_in_range(lender.slabs, 1, slabs);
    assert_in_range(count_own(SMALLER, BLOCKS), BLOCKS / 8, BLOCKS / 2);
}

TEST(what_is_idle_of_its_own_comes_first)
{
    enum { SMALLER = 976, COUNT = 2000 };
    static char *larger[COUNT];
    warm(SMALLER);
    leave_idle(SMALLER, BLOCKS);
    warm(LARGE);
    for (size_t i = 0; i < COUNT; i++)
        larger[i] = block_get(LARGE);
    for (size_t i = 0; i < COUNT; i++)
        if (i % STAYS != 0)
            heap_free(larger[i]);
    take(SMALLER, COUNT);
    assert_int_equal(count_own(SMALLER, COUNT), COUNT);
    for (size_t i = 0; i < COUNT; i += STAYS)
        heap_free(larger[i]);
}

TEST(what_is_much_larger_does_not_lend)
{
    enum { SMALLER = 784 };
    warm(SMALLER);
    leave_idle(LARGE, BLOCKS);
    take(SMALLER, BLOCKS / 2);
    assert_int_equal(count_own(SMALLER, BLOCKS / 2), BLOCKS / 2);
}

TEST(what_is_in_use_does_not_lend)
{
    enum { SMALLER = 976 };
    warm(SMALLER);
    for (size_t i = 0; i < BLOCKS; i++)
        kept[i] = block_get(LARGE);
    take(SMALLER, BLOCKS / 2);
    assert_int_equal(count_own(SMALLER, BLOCKS / 2), BLOCKS / 2);
}

TEST(what_must_be_aligned_is_not_borrowed)
{
    enum { SMALLER = 960 };
    warm(SMALLER);
    leave_idle(LARGE, BLOCKS);
    for (size_t i = 0; i < 1000; i++) {
        blocks[i] = heap_alloc_aligned(64, SMALLER);
        assert_int_equal((uintptr_t)blocks[i] % 64, 0);
        assert_int_equal(class_at(blocks[i]), class_of_size(SMALLER));
    }
}

/* A third of two smaller classes is idle, of no use for what is larger, but that is nothing
 * unusual. */
TEST(what_is_little_idle_below_changes_nothing)
{
    enum { LARGER = 976 };
    static char *smaller[BLOCKS];
    warm(LARGER);
    for (size_t i = 0; i < BLOCKS; i++) {
        kept[i] = block_get(LARGER - 16);
        smaller[i] = block_get(LARGER - 32);
    }
    for (size_t i = 0; i < BLOCKS; i += 3) {
        heap_free(kept[i]);
        kept[i] = NULL;
        heap_free(smaller[i]);
        smaller[i] = NULL;
    }
    take(LARGER, BLOCKS / 2);
    assert_int_equal(count_own(LARGER, BLOCKS / 2), BLOCKS / 2);
    for (size_t i = 0; i < BLOCKS; i++)
        heap_free(smaller[i]);
}

/* Each of the requests that borrow is a slow one, so what a class has borrowed once it makes. */
TEST(what_borrows_the_same_again_has_its_own)
{
    enum { SMALLER = 976, COUNT = 3000, ROUNDS = 10 };
    size_t own = 0;
    warm(SMALLER);
    leave_idle(LARGE, BLOCKS);
    for (size_t round = 0; round < ROUNDS; round++) {
        take(SMALLER, COUNT);
        own = count_own(SMALLER, COUNT);
        assert_true(round != 0 || own < COUNT / 2);
        give_back(COUNT);
    }
    assert_int_equal(own, COUNT);
}

/* A larger class grew for all of these, to leave nothing behind beside what is hardly anything. */
TEST(little_that_is_idle_below_changes_little)
{
    enum { LARGER = 976, IDLE = 300 };
    static char *smaller[IDLE];
    warm(LARGER);
    warm(LARGER - 16);
    warm(LARGER - 32);
    leave_idle(LARGER - 16, IDLE);
    for (size_t i = 0; i < IDLE; i++)
        smaller[i] = block_get(LARGER - 32);
    for (size_t i = 1; i < IDLE; i++)
        heap_free(smaller[i]);
    take(LARGER, BLOCKS);
    assert_in_range(count_own(LARGER, BLOCKS), BLOCKS - 1000, BLOCKS);
    heap_free(smaller[0]);
}

/* Of two sizes in turn none moves on. */
TEST(one_size_below_is_not_followed)
{
    enum { LARGER = 976 };
    warm(LARGER);
    warm(LARGER - 16);
    leave_idle(LARGER - 16, BLOCKS);
    take(LARGER, BLOCKS);
    assert_int_equal(count_own(LARGER, BLOCKS), BLOCKS);
}

TEST(a_stated_size_is_the_one_that_was_asked_for)
{
    enum { SMALLER = 976, COUNT = 2000 };
    warm(SMALLER);
    leave_idle(LARGE, BLOCKS);
    take(SMALLER, COUNT);
    assert_true(count_own(SMALLER, COUNT) < COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(size_is_possible(blocks[i], 1, SMALLER, MADE_BY_NEW));
}

/* The sizes of a program move on, and a few of each stay. Returns the pages that it had at most. */
static size_t pages_of_sizes(size_t first, ptrdiff_t step)
{
    enum { SIZES = 32, BYTES = 1 << 20 };
    static char *live[SIZES * BLOCKS / STAYS];
    size_t count = 0, before = heap_default.page_heap.used_pages, most = before, bytes = first;
    for (size_t size = 0; size < SIZES; size++, bytes += (size_t)step) {
        warm(bytes);
        take(bytes, BYTES / bytes);
        most = size_max(most, heap_default.page_heap.used_pages);
        for (size_t i = 0; i < BYTES / bytes; i++) {
            if (i % STAYS == 0)
                live[count++] = blocks[i];
            else
                heap_free(blocks[i]);
            blocks[i] = NULL;
        }
    }
    while (count != 0)
        heap_free(live[--count]);
    return most - before;
}

/* These have 32 MiB with slabs that serve one size for good. */
TEST(sizes_that_move_down_take_what_others_left)
{
    assert_in_range(pages_of_sizes(LARGE, -16), 1, 14 * MIB / PAGE_BYTES);
}

TEST(what_borrowed_long_before_others_did_borrows_again)
{
    enum { SMALLER = 976, COUNT = 3000, ROUNDS = 5 };
    warm(SMALLER);
    leave_idle(LARGE, BLOCKS);
    for (size_t round = 0; round < ROUNDS; round++) {
        take(SMALLER, COUNT);
        give_back(COUNT);
        pages_of_sizes(SMALLER * 4 / 5, 0); /* these borrow nothing */
    }
    take(SMALLER, COUNT);
    assert_int_equal(count_own(SMALLER, COUNT), COUNT);
    give_back(COUNT);
    for (size_t round = 0; round < 4 * ROUNDS; round++)
        pages_of_sizes(SMALLER * 4 / 5, -16);
    cache_flush(thread_self.cache);
    heap_trim(0);
    take(SMALLER, COUNT);
    assert_in_range(count_own(SMALLER, COUNT), 1, COUNT / 2);
}

TEST(sizes_that_move_up_share_slabs)
{
    assert_in_range(pages_of_sizes(LARGE - 31 * 16, 16), 1, 14 * MIB / PAGE_BYTES);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(what_grows_borrows_what_is_idle, options_reset, end),
        ROW_WITH(so_do_short_ones, options_reset, end),
        ROW_WITH(it_grows_when_that_is_used_up, options_reset, end),
        ROW_WITH(what_is_idle_of_its_own_comes_first, options_reset, end),
        ROW_WITH(what_is_much_larger_does_not_lend, options_reset, end),
        ROW_WITH(what_is_in_use_does_not_lend, options_reset, end),
        ROW_WITH(what_must_be_aligned_is_not_borrowed, options_reset, end),
        ROW_WITH(what_is_little_idle_below_changes_nothing, options_reset, end),
        ROW_WITH(sizes_that_move_down_take_what_others_left, options_reset, end),
        ROW_WITH(what_borrows_the_same_again_has_its_own, options_reset, end),
        ROW_WITH(little_that_is_idle_below_changes_little, options_reset, end),
        ROW_WITH(one_size_below_is_not_followed, options_reset, end),
        ROW_WITH(a_stated_size_is_the_one_that_was_asked_for, options_reset, end),
        ROW_WITH(what_borrowed_long_before_others_did_borrows_again, options_reset, end),
        ROW_WITH(sizes_that_move_up_share_slabs, options_reset, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
