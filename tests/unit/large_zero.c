/*
 * Tests of block_zero (pageheap/block_zero.h): a block is zero afterwards, whatever was in it, and
 * is made so in the way that costs less: by hand where it is short or mostly there, by the system
 * where it was hardly touched, or is long. Which way it was is told by the provider's calls, and by
 * what is resident.
 */
#include "page_heap_support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "options/options.h"
#include "pageheap/block_zero.h"
#include "pageheap/large.h"
#include "platform/memory.h"

/* ---- What is there ---- */

static size_t resident(const char *start, size_t bytes)
{
    size_t page = os_page_size(), pages = bytes / page, count = 0;
    unsigned char *present = malloc(pages + 1);
    assert_int_equal(mincore((void *)(uintptr_t)start, bytes, present), 0);
    for (size_t i = 0; i < pages; i++)
        count += present[i] & 1;
    free(present);
    return count * page;
}

/* From which pages of eight something was written; ONE: a page in the middle. */
enum touch { NONE = 0, HALF = 4, MOST = 6, ALL = 8, ONE = 9 };

static void touch(char *start, size_t bytes, enum touch how)
{
    size_t page = os_page_size(), pages = align_up(bytes, page) / page;
    for (size_t i = 0; i < pages; i++)
        if (how == ONE ? i == pages / 2 : i % 8 < (size_t)how)
            memset(start + i * page, 0xff, size_min(page, bytes - i * page));
}

/* A block without a page that is there. */
static char *take(size_t bytes)
{
    size_t dirty = SIZE_MAX;
    char *start = large_alloc(&page_heap, bytes, PAGE_BYTES, &dirty);
    assert_non_null(start);
    assert_int_equal(dirty, 0);
    assert_int_equal(resident(start, align_up(bytes, os_page_size())), 0);
    return start;
}

static void give(char *start)
{
    assert_int_equal(large_free(&page_heap, (uintptr_t)start).kind, MISUSE_NONE);
    page_heap_purge(&page_heap, 0);
}

enum way { BY_HAND, BY_SYSTEM };

static void assert_zero(const char *start, size_t bytes, const char *what)
{
    ASSERT_THAT(bytes == 0 || (start[0] == 0 && memcmp(start, start + 1, bytes - 1) == 0),
                "%zu bytes %s are not zero", bytes, what);
}

/* Makes the first `bytes` of a block zero that was touched so. */
static void zero(size_t bytes, enum touch how, enum way way)
{
    size_t page = os_page_size(), whole = align_down(bytes, page), all = align_up(bytes, page);
    char *start = take(bytes + 1); /* one byte more is not the caller's */
    touch(start, bytes + 1, how);
    char behind = start[bytes];
    unsigned purges = fake.purges;
    size_t purged = fake.purged_bytes;
    block_zero(&page_heap, start, bytes);
    ASSERT_THAT(fake.purges - purges == (way == BY_SYSTEM), "%zu bytes touched %d", bytes, how);
    ASSERT_THAT(fake.purged_bytes - purged == (way == BY_SYSTEM ? whole : 0),
                "%zu bytes touched %d", bytes, how);
    ASSERT_THAT(resident(start, whole) == (way == BY_SYSTEM ? 0 : whole), "%zu bytes touched %d",
                bytes, how);
    assert_true(all - whole == 0 || resident(start + whole, page) == page);
    assert_zero(start, bytes, "made zero");
    assert_int_equal(start[bytes], behind);
    assert_page_heap_sound();
    give(start);
}

/* ---- Which way ---- */

static const enum touch touches[] = {NONE, ONE, HALF, MOST, ALL};
enum { TOUCHES = sizeof(touches) / sizeof(touches[0]) };

TEST(what_is_short_is_written)
{
    static const size_t sizes[] = {1, 4095, 4096, 20000, 32 * KIB - 1};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (size_t j = 0; j < TOUCHES; j++)
            zero(sizes[i], touches[j], BY_HAND);
}

static const size_t short_sizes[] = {32 * KIB, 40000, 100001, 128 * KIB - 1};
enum { SHORT_SIZES = sizeof(short_sizes) / sizeof(short_sizes[0]) };

TEST(short_blocks_are_asked_about_while_that_pays)
{
    for (size_t i = 0; i < SHORT_SIZES; i++) {
        for (unsigned j = 0; j < 20; j++)
            zero(short_sizes[i], j % 2 == 0 ? NONE : ONE, BY_SYSTEM);
        /* One that is there is written, and so are the next, whatever they are. */
        zero(short_sizes[i], ALL, BY_HAND);
        for (unsigned j = 0; j < 8; j++)
            zero(short_sizes[i], NONE, BY_HAND);
        zero(short_sizes[i], NONE, BY_SYSTEM);
        zero(short_sizes[i], NONE, BY_SYSTEM);
    }
}

TEST(they_are_asked_about_more_and_more_rarely_where_it_does_not_pay)
{
    size_t waited = 8;
    for (unsigned round = 0; round < 9; round++, waited = size_min(2 * waited, 1024)) {
        zero(40000, ALL, BY_HAND);
        assert_int_equal(page_heap.zero_asked.wait, waited);
        page_heap.zero_asked.wait = 0;
    }
    assert_int_equal(page_heap.zero_asked.waited, 1024);
    zero(40000, NONE, BY_SYSTEM);
    assert_int_equal(page_heap.zero_asked.waited, 0);
}

static const size_t middle_sizes[] = {
    128 * KIB,     128 * KIB + 1,       300001,      MIB - 1, MIB + 1, 5 * MIB,
    5 * MIB + 777, 32 * MIB - 8 * 4096, 32 * MIB - 1};
enum { MIDDLE_SIZES = sizeof(middle_sizes) / sizeof(middle_sizes[0]) };

TEST(of_what_was_hardly_touched_nothing_is_left)
{
    for (size_t i = 0; i < MIDDLE_SIZES; i++)
        for (size_t j = 0; j < TOUCHES; j++)
            if (touches[j] == NONE || touches[j] == ONE || touches[j] == HALF)
                zero(middle_sizes[i], touches[j], BY_SYSTEM);
}

TEST(what_is_mostly_there_is_written)
{
    for (size_t i = 0; i < MIDDLE_SIZES; i++) {
        zero(middle_sizes[i], MOST, BY_HAND);
        zero(middle_sizes[i], ALL, BY_HAND);
    }
}

TEST(what_is_long_is_left_to_the_system)
{
    static const size_t sizes[] = {32 * MIB, 32 * MIB + 1, 40 * MIB + 12345};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (size_t j = 0; j < TOUCHES; j++)
            zero(sizes[i], touches[j], BY_SYSTEM);
}

TEST(five_of_eight_pages_are_the_border)
{
    static const size_t sizes[] = {512 * KIB, 4 * MIB};
    for (size_t i = 0; i < 2; i++)
        for (size_t less = 0; less < 2; less++) {
            char *start = take(sizes[i]);
            memset(start + less * os_page_size(), 1, sizes[i] / 8 * 5 - less * os_page_size());
            unsigned purges = fake.purges;
            block_zero(&page_heap, start, sizes[i]);
            assert_int_equal(fake.purges - purges, less);
            assert_int_equal(resident(start, sizes[i]), less ? 0 : sizes[i]);
            assert_zero(start, sizes[i], "at the border");
            give(start);
        }
}

TEST(a_provider_that_refuses_leaves_it_to_be_written)
{
    static const size_t sizes[] = {128 * KIB, 300001, 5 * MIB + 777, 33 * MIB + 1};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (size_t j = 0; j < TOUCHES; j++) {
            char *start = take(sizes[i]);
            touch(start, sizes[i], touches[j]);
            unsigned calls = fake.calls, purges = fake.purges;
            fake.refuse_purge = true;
            block_zero(&page_heap, start, sizes[i]);
            fake.refuse_purge = false;
            bool asked = sizes[i] >= 32 * MIB || (touches[j] != MOST && touches[j] != ALL);
            assert_int_equal(fake.calls - calls, asked);
            assert_int_equal(fake.purges, purges);
            assert_zero(start, sizes[i], "by hand");
            size_t all = align_up(sizes[i], os_page_size());
            assert_int_equal(resident(start, all), all);
            give(start);
        }
}

/* ---- Blocks that come again ---- */

/* As calloc does. */
static char *take_zero(size_t bytes, size_t *dirty)
{
    char *start = large_alloc(&page_heap, bytes, PAGE_BYTES, dirty);
    assert_non_null(start);
    assert_zero(start + size_min(*dirty, bytes), bytes - size_min(*dirty, bytes),
                "said to be zero");
    if (*dirty != 0)
        block_zero(&page_heap, start, size_min(bytes, *dirty));
    return start;
}

/* What is kept of a block that was freed is not less after calloc took it and nobody wrote to it.
 */
TEST(a_block_of_which_a_page_is_touched_at_each_turn_takes_a_page)
{
    static const size_t sizes[] = {300000, 900 * KIB, 5 * MIB, 64 * MIB};
    options.dirty = 256 * MIB; /* so that all comes again */
    size_t dirty;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *start = large_alloc(&page_heap, sizes[i], PAGE_BYTES, &dirty);
        for (unsigned turn = 0; turn < 20; turn++) {
            touch(start, sizes[i], ONE);
            assert_int_equal(large_free(&page_heap, (uintptr_t)start).kind, MISUSE_NONE);
            char *again = large_alloc(&page_heap, sizes[i], PAGE_BYTES, &dirty);
            assert_ptr_equal(again, start);
            assert_true(dirty >= sizes[i]);
            block_zero(&page_heap, again, sizes[i]);
            size_t all = align_up(sizes[i], os_page_size());
            assert_in_range(resident(start, all), 0, os_page_size());
        }
        assert_zero(start, sizes[i], "taken again");
        give(start);
    }
    assert_page_heap_empty();
}

/* wall | dirty | clean | dirty | wall: a block that is all three is zero in none of the two. */
TEST(a_block_of_dirty_and_clean_pages_is_zero_behind_the_last_dirty_one)
{
    static const size_t lengths[][3] = {{60, 40, 30}, {30, 40, 60}, {40, 5, 40}, {50, 60, 1}};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct span *walls[2] = {span_get(1), NULL}, *parts[3];
        for (size_t j = 0; j < 3; j++) {
            parts[j] = span_get(lengths[i][j]);
            memset(parts[j]->start, 0xff, span_bytes_of(parts[j]));
        }
        walls[1] = span_get(1);
        char *start = parts[0]->start;
        span_put(parts[1]);
        page_heap_purge(&page_heap, 0);
        span_put(parts[0]);
        span_put(parts[2]);
        size_t dirty, bytes = (lengths[i][0] + lengths[i][1] + lengths[i][2]) << PAGE_SHIFT;
        assert_ptr_equal(take_zero(bytes, &dirty), start);
        assert_int_equal(dirty, bytes);
        assert_zero(start, bytes, "of three parts");
        give(start);
        span_put(walls[0]);
        span_put(walls[1]);
        assert_page_heap_empty();
    }
}

TEST(random_use_gives_zero_throughout)
{
    enum { LIVE = 24 };
    static struct {
        char *start;
        size_t bytes;
    } live[LIVE];
    uint64_t seed = 11;
    size_t said_zero = 0, in_part = 0, said_dirty = 0;
    options.dirty = 64 * MIB;
    for (unsigned turn = 0; turn < 9000; turn++) {
        size_t i = random_below(&seed, LIVE), dirty;
        if (live[i].start != NULL) {
            assert_int_equal(large_free(&page_heap, (uintptr_t)live[i].start).kind, MISUSE_NONE);
            live[i].start = NULL;
        } else {
            live[i].bytes = 1 + random_below(&seed, (size_t)1 << (12 + random_below(&seed, 11)));
            live[i].start = take_zero(live[i].bytes, &dirty);
            said_zero += dirty == 0;
            in_part += dirty != 0 && dirty < live[i].bytes;
            said_dirty += dirty >= live[i].bytes;
            assert_zero(live[i].start, live[i].bytes, "of a new block");
            size_t usable = 0;
            large_usable(&page_heap, (uintptr_t)live[i].start, &usable);
            touch(live[i].start, usable, touches[random_below(&seed, TOUCHES)]);
        }
        if (turn % 500 == 0)
            page_heap_purge(&page_heap, random_below(&seed, 1000));
        fake.refuse_purge = turn % 7 == 0;
        if (turn % 64 == 0)
            assert_page_heap_sound();
    }
    fake.refuse_purge = false;
    assert_in_range(said_zero, 30, 9000); /* none of the three was for nothing */
    assert_in_range(in_part, 5, 9000);
    assert_in_range(said_dirty, 300, 9000);
    for (size_t i = 0; i < LIVE; i++)
        if (live[i].start != NULL)
            give(live[i].start);
    assert_page_heap_empty();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(what_is_short_is_written, page_heap_begin, page_heap_end),
        ROW_WITH(short_blocks_are_asked_about_while_that_pays, page_heap_begin, page_heap_end),
        ROW_WITH(they_are_asked_about_more_and_more_rarely_where_it_does_not_pay, page_heap_begin,
                 page_heap_end),
        ROW_WITH(of_what_was_hardly_touched_nothing_is_left, page_heap_begin, page_heap_end),
        ROW_WITH(what_is_mostly_there_is_written, page_heap_begin, page_heap_end),
        ROW_WITH(what_is_long_is_left_to_the_system, page_heap_begin, page_heap_end),
        ROW_WITH(five_of_eight_pages_are_the_border, page_heap_begin, page_heap_end),
        ROW_WITH(a_provider_that_refuses_leaves_it_to_be_written, page_heap_begin, page_heap_end),
        ROW_WITH(a_block_of_which_a_page_is_touched_at_each_turn_takes_a_page, page_heap_begin,
                 page_heap_end),
        ROW_WITH(a_block_of_dirty_and_clean_pages_is_zero_behind_the_last_dirty_one,
                 page_heap_begin, page_heap_end),
        ROW_WITH(random_use_gives_zero_throughout, page_heap_begin, page_heap_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
