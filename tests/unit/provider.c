/*
 * Tests of the provider that takes from the system: what it hands out, and that it counts.
 */
#include "support.h"

#include <string.h>
#include <sys/mman.h>

#include "options/options.h"
#include "platform/memory.h"
#include "provider/provider.h"
#include "stats/stats.h"

static const struct provider *const os = &provider_os;

/* The counters that changed since `before`, by how much. */
static void assert_counted(const struct counters *before, uint64_t map_calls, uint64_t map_bytes,
                           uint64_t unmap_calls, uint64_t unmap_bytes)
{
    assert_int_equal(COUNTED(map_calls) - before->map_calls, map_calls);
    assert_int_equal(COUNTED(map_bytes) - before->map_bytes, map_bytes);
    assert_int_equal(COUNTED(unmap_calls) - before->unmap_calls, unmap_calls);
    assert_int_equal(COUNTED(unmap_bytes) - before->unmap_bytes, unmap_bytes);
}

TEST(memory_is_taken_and_given)
{
    size_t bytes = 16 * os_page_size();
    for (size_t alignment = os_page_size(); alignment <= 64 * MIB; alignment *= 8) {
        struct counters before = counters_read(NULL, &tallies);
        char *start = os->take(os, bytes, alignment);
        assert_non_null(start);
        assert_int_equal((uintptr_t)start % alignment, 0);
        for (size_t i = 0; i < bytes; i++)
            ASSERT_THAT(start[i] == 0, "at %zu", i);
        memset(start, 1, bytes);
        assert_counted(&before, 1, bytes, 0, 0);
        assert_true(os->give(os, start, bytes));
        assert_counted(&before, 1, bytes, 1, bytes);
    }
}

TEST(purges_are_counted)
{
    size_t page = os_page_size();
    char *start = os->take(os, 4 * page, page);
    struct counters before = counters_read(NULL, &tallies);
    memset(start, 1, 4 * page);
    assert_true(os->purge(os, start + page, 2 * page));
    assert_int_equal(start[page - 1], 1);
    assert_int_equal(start[page], 0);
    assert_int_equal(start[3 * page - 1], 0);
    assert_int_equal(start[3 * page], 1);
    assert_int_equal(COUNTED(purge_calls) - before.purge_calls, 1);
    assert_int_equal(COUNTED(purge_bytes) - before.purge_bytes, 2 * page);
    assert_true(os->give(os, start, 4 * page));
}

TEST(resizes_are_counted_as_what_comes_and_goes)
{
    size_t page = os_page_size();
    char *start = os->take(os, 4 * page, page);
    struct counters before = counters_read(NULL, &tallies);
    memset(start, 1, 4 * page);
    char *grown = os->resize(os, start, 4 * page, 64 * page, true);
    assert_non_null(grown);
    assert_int_equal(grown[4 * page - 1], 1);
    assert_int_equal(grown[4 * page], 0);
    assert_counted(&before, 0, 60 * page, 0, 0);
    char *shrunk = os->resize(os, grown, 64 * page, page, true);
    assert_non_null(shrunk);
    assert_counted(&before, 0, 60 * page, 0, 63 * page);
    assert_int_equal(COUNTED(remap_calls) - before.remap_calls, 2);
    assert_true(os->give(os, shrunk, page));
}

TEST(what_fails_is_not_counted)
{
    struct counters before = counters_read(NULL, &tallies);
    size_t page = os_page_size();
    assert_null(os->take(os, (size_t)1 << 60, page));
    assert_null(os->take(os, (size_t)1 << 60, 64 * MIB));
    assert_false(os->give(os, NOWHERE, page));
    assert_null(os->resize(os, NOWHERE, page, 2 * page, true));
    struct counters after = counters_read(NULL, &tallies);
    assert_memory_equal(&after, &before, sizeof(after));
    NEED(kernel_refuses_advice(), "what agrees to any advice drops what is not there");
    assert_false(os->purge(os, NOWHERE, page));
    after = counters_read(NULL, &tallies);
    assert_memory_equal(&after, &before, sizeof(after));
}

/* How many pages of a range are there. */
static size_t pages_present(char *start, size_t bytes)
{
    static unsigned char present[4096];
    size_t count = 0;
    assert_true(bytes / os_page_size() <= sizeof(present));
    assert_int_equal(mincore(start, bytes, present), 0);
    for (size_t i = 0; i < bytes / os_page_size(); i++)
        count += present[i] & 1;
    return count;
}

TEST(what_might_be_had_is_asked_without_taking_it)
{
    size_t page = os_page_size(), too_much = (size_t)1 << 50;
    struct counters before = counters_read(NULL, &tallies);
    struct os_calls calls = os_calls;
    assert_true(provider_might_take(os, 16 * page, 0));
    assert_false(provider_might_take(os, too_much, 0));
    assert_false(provider_might_take(os, too_much, too_much / 2));
    assert_int_equal(os_calls.mmap_calls - calls.mmap_calls, 3);
    assert_int_equal(os_calls.munmap_calls - calls.munmap_calls, 1);
    /* For what would come back the system need not be asked. */
    assert_true(provider_might_take(os, too_much, too_much));
    assert_int_equal(os_calls.mmap_calls - calls.mmap_calls, 3);
    assert_counted(&before, 0, 0, 0, 0);
    options.limit = 8 * page;
    assert_false(provider_might_take(os, 16 * page, 0));
    assert_true(provider_might_take(os, 16 * page, 12 * page));
    options.limit = LIMIT_NONE;
}

TEST(memory_is_made_present_as_far_as_the_option_says)
{
    size_t page = os_page_size();
    NEED(kernel_refuses_advice(), "what agrees to any advice makes nothing present");
    options.huge_pages = HUGE_PAGES_NEVER;
    char *start = os->take(os, 100 * page, page);
    os->prepare(os, start, 100 * page);
    assert_int_equal(pages_present(start, 100 * page), 0);
    options.prefault = 40 * page;
    os->prepare(os, start, 100 * page);
    assert_int_equal(pages_present(start, 100 * page), 40);
    memset(start, 1, page);
    options.prefault = GIB;
    os->prepare(os, start, 100 * page);
    assert_int_equal(pages_present(start, 100 * page), 100);
    assert_int_equal(start[0], 1); /* what was there stays */
    assert_int_equal(start[page], 0);
    assert_true(os->give(os, start, 100 * page));
}

TEST(huge_pages_are_asked_for_as_the_option_says)
{
    char *start = os->take(os, 8 * MIB, os_page_size());
    options.huge_pages = HUGE_PAGES_NEVER;
    assert_false(os->want_huge(os, start, 8 * MIB, true));
    options.huge_pages = HUGE_PAGES_ALWAYS;
    assert_true(os->want_huge(os, start, 8 * MIB, true));
    assert_false(os->want_huge(os, start, MIB, true)); /* none fits */
    assert_false(os->want_huge(os, start, 8 * MIB, false));
    options.huge_pages = HUGE_PAGES_AUTO; /* they are bought one by one: see huge_pages.c */
    char *more = os->take(os, 64 * MIB, os_page_size());
    assert_false(os->want_huge(os, start, 8 * MIB, true));
    assert_true(os->give(os, start, 8 * MIB));
    assert_true(os->give(os, more, 64 * MIB));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(memory_is_taken_and_given),
        ROW(purges_are_counted),
        ROW(resizes_are_counted_as_what_comes_and_goes),
        ROW(what_fails_is_not_counted),
        ROW(what_might_be_had_is_asked_without_taking_it),
        ROW(memory_is_made_present_as_far_as_the_option_says),
        ROW(huge_pages_are_asked_for_as_the_option_says),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
