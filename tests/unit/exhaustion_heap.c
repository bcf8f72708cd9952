/*
 * Tests of a heap as a whole when the system has no memory to give: that it recovers, that short
 * requests are served longest, and that what becomes shorter needs none. The processes that run out
 * are children; sanitizers need too much address space for it.
 */
#include "heap_support.h"

#include <string.h>

#include "exhaustion_support.h"
#include "heap/alloc.h"
#include "heap/totals.h"
#include "heap/user_heaps.h"
#include "heap_calls.h"
#include "pageheap/meta_pages.h"
#include "platform/clock.h"
#include "snug/snug.h"

struct link {
    struct link *next;
};

/* Takes blocks of one size until there are no more. */
static struct link *take_all(size_t bytes, size_t *count)
{
    struct link *first = NULL, *block;
    *count = 0;
    while ((block = heap_alloc(bytes)) != NULL) {
        block->next = first;
        first = block;
        ++*count;
    }
    return first;
}

static void give_all(struct link *first)
{
    while (first != NULL) {
        struct link *next = first->next;
        heap_free(first);
        first = next;
    }
}

#define LIMIT (64 * MIB)

static void exhaust(void *argument)
{
    size_t bytes = *(const size_t *)argument, count, again;
    limit_memory(LIMIT);
    struct link *all = take_all(bytes, &count);
    CHILD_CHECK(heap_check() == NULL);
    CHILD_CHECK(count * bytes > LIMIT / 2); /* most of it was had */
    CHILD_CHECK(heap_alloc(bytes) == NULL);
    CHILD_CHECK(heap_resize(all, 2 * LIMIT) == NULL);
    give_all(all);
    CHILD_CHECK(heap_check() == NULL);
    /* All of it can be had again, in the same size and in one piece. */
    give_all(take_all(bytes, &again));
    CHILD_CHECK(again >= count - count / 16);
    void *one = heap_alloc(LIMIT / 2);
    CHILD_CHECK(one != NULL);
    heap_free(one);
    CHILD_CHECK(heap_check() == NULL);
}

TEST(the_heap_runs_out_of_memory_and_recovers)
{
    static const size_t sizes[] = {16,   64,    208,    700,    1024, 1500,
                                   5000, 40000, 120000, 200000, MIB,  3 * MIB};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        assert_succeeds(exhaust, (void *)&sizes[i]);
}

/* A block that creeps is to get more than it asks for. Where there is room for what it asks for
 * alone, between two others, it gets that. */
static void creep(void *argument)
{
    enum { ALL = 16, BYTES = 510000 };
    char *all[ALL], *block;
    size_t hole = ALL, count;
    (void)argument;
    limit_memory(LIMIT);
    CHILD_CHECK((block = heap_alloc(BYTES - 10000)) != NULL);
    for (size_t i = 0; i < ALL; i++)
        CHILD_CHECK((all[i] = heap_alloc(BYTES)) != NULL);
    for (size_t i = 2; i < ALL; i++)
        if ((is_behind(all[i - 2], all[i - 1], BYTES) && is_behind(all[i - 1], all[i], BYTES)) ||
            (is_behind(all[i], all[i - 1], BYTES) && is_behind(all[i - 1], all[i - 2], BYTES)))
            hole = i - 1;
    CHILD_CHECK(hole < ALL);
    struct link *rest = take_all(200000, &count);
    heap_free(all[hole]);
    uint64_t advices = os_calls.madvise_calls;
    CHILD_CHECK(heap_resize(block, BYTES - 5000) == all[hole]);
    CHILD_CHECK(os_calls.madvise_calls == advices); /* nothing was given back for more */
    for (size_t i = 0; i < ALL; i++)
        heap_free(all[i]); /* the block is in the hole */
    give_all(rest);
    CHILD_CHECK(heap_check() == NULL);
}

TEST(a_block_that_creeps_needs_no_more_than_it_asks_for)
{
    assert_succeeds(creep, NULL);
}

static void exhaust_at_random(void *argument)
{
    enum { BLOCKS = 2000 };
    static char *blocks[BLOCKS];
    uint64_t seed = *(const uint64_t *)argument;
    size_t failures = 0;
    limit_memory(LIMIT / 4);
    for (unsigned turn = 0; turn < 40000; turn++) {
        size_t i = random_below(&seed, BLOCKS);
        size_t bytes = 1 + random_below(&seed, (size_t)1 << (4 + random_below(&seed, 18)));
        if (blocks[i] != NULL && random_below(&seed, 3) == 0) {
            heap_free(blocks[i]);
            blocks[i] = NULL;
            continue;
        }
        char *block = blocks[i] == NULL ? heap_alloc(bytes) : heap_resize(blocks[i], bytes);
        failures += block == NULL;
        if (block != NULL)
            blocks[i] = block;
        if (turn % 500 == 0)
            CHILD_CHECK(heap_check() == NULL);
    }
    CHILD_CHECK(failures > 100);
    for (size_t i = 0; i < BLOCKS; i++)
        heap_free(blocks[i]);
    heap_trim(0);
    CHILD_CHECK(heap_check() == NULL);
    CHILD_CHECK(heap_totals().segments == 0 && heap_totals().huge == 0);
}

TEST(random_use_at_the_limit_breaks_nothing)
{
    for (uint64_t seed = 1; seed <= 3; seed++)
        assert_succeeds(exhaust_at_random, &seed);
}

/* What longer requests have left over serves short ones: when these fail, no longer one is served.
 */
static void exhaust_by_length(void *argument)
{
    static const size_t longer[] = {24, 300, 1000, 2000, 4000, 8000, 40000};
    size_t first = *(const size_t *)argument, many, few;
    limit_memory(LIMIT / 16);
    struct link *all = take_all(first, &many), *rest = take_all(8, &few);
    CHILD_CHECK(many > 100);
    for (size_t i = 0; i < sizeof(longer) / sizeof(longer[0]); i++)
        CHILD_CHECK(heap_alloc(longer[i]) == NULL);
    CHILD_CHECK(heap_check() == NULL);
    give_all(rest);
    give_all(all);
    CHILD_CHECK(heap_check() == NULL);
}

TEST(short_requests_fail_last)
{
    static const size_t sizes[] = {2000, 3000, 4104};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        assert_succeeds(exhaust_by_length, (void *)&sizes[i]);
}

/* A block that cannot grow stays as it is: what it never touched is not touched then either. */
static void refuse_growth(void *argument)
{
    (void)argument;
    heap_default.page_heap.large_most = LARGE_MOST;
    char *block = heap_alloc(20 * MIB), *wall = heap_alloc(300000);
    CHILD_CHECK(block != NULL && wall != NULL);
    memset(block, 1, MIB);
    limit_memory(25 * MIB); /* more than is added, and not so much in one piece */
    uint64_t calls = os_calls.mremap_calls;
    CHILD_CHECK(heap_resize(block, 40 * MIB) == NULL);
    CHILD_CHECK(os_calls.mremap_calls == calls);
    CHILD_CHECK(os_resident_bytes(block, 20 * MIB) <= 2 * MIB);
    CHILD_CHECK(block[MIB - 1] == 1 && block[MIB] == 0);
    CHILD_CHECK(heap_check() == NULL);
}

TEST(a_block_that_cannot_grow_stays_as_it_is)
{
    assert_succeeds(refuse_growth, NULL);
}

static struct link *small_blocks;

/* Takes so many small blocks, or fewer if there are no more. Returns how often the system was asked
 * for memory. */
static uint64_t take_small(size_t count, size_t *taken)
{
    uint64_t calls = os_calls.mmap_calls;
    struct link *block;
    for (*taken = 0; *taken < count && (block = heap_alloc(100)) != NULL; ++*taken) {
        block->next = small_blocks;
        small_blocks = block;
    }
    return os_calls.mmap_calls - calls;
}

static uint64_t much_later(void)
{
    return os_clock() + 1000 * DRY_TIME;
}

/* All memory is taken by medium blocks, and every other one is freed: the others keep their pages.
 */
static void use_up(void)
{
    size_t count;
    for (struct link *block = take_all(5000, &count); block != NULL && block->next != NULL;) {
        struct link *after = block->next->next;
        heap_free(block->next);
        block = after;
    }
}

static void live_at_the_limit(void *argument)
{
    size_t taken;
    char *others = os_map(8 * MIB, OS_PAGES_SMALL);
    (void)argument;
    CHILD_CHECK(others != NULL);
    limit_memory(LIMIT);
    use_up();
    take_small(1000, &taken);
    CHILD_CHECK(taken == 1000);
    CHILD_CHECK(take_small(100000, &taken) < 10000);
    CHILD_CHECK(taken == 100000);
    /* After a while the system is asked again. */
    heap_default.page_heap.now = much_later;
    CHILD_CHECK(take_small(20000, &taken) > 0 && taken == 20000);
    /* What others give back is had before a request fails, even though nobody asks just now. */
    CHILD_CHECK(page_heap_is_dry(&heap_default.page_heap));
    os_unmap(others, 8 * MIB);
    CHILD_CHECK(heap_alloc(4 * MIB) != NULL);
    take_small(SIZE_MAX, &taken);
    CHILD_CHECK(os_map(MIB, OS_PAGES_SMALL) == NULL);
    give_all(small_blocks);
    CHILD_CHECK(heap_check() == NULL);
}

TEST(small_requests_at_the_limit_do_not_ask_each_time)
{
    assert_succeeds(live_at_the_limit, NULL);
}

/* Nor do they where there is no memory for descriptors either. */
static void live_without_metadata(void *argument)
{
    size_t taken;
    (void)argument;
    limit_memory(LIMIT);
    use_up();
    heap_trim(0);
    do
        while (meta_alloc(META_LEAST) != NULL)
            continue;
    while (page_heap_feed_meta(&heap_default.page_heap));
    take_small(1000, &taken);
    CHILD_CHECK(taken == 1000);
    CHILD_CHECK(take_small(100000, &taken) < 10000);
    CHILD_CHECK(taken == 100000);
    CHILD_CHECK(heap_check() == NULL);
}

TEST(small_requests_at_the_limit_do_not_ask_for_descriptors)
{
    assert_succeeds(live_without_metadata, NULL);
}

static uint64_t at_once(void)
{
    return DRY_TIME;
}

/* What is free lies in pieces of a thousand blocks, and there is no memory for descriptors: small
 * and larger blocks in turn have most of it all the same, and ask the system seldom. */
static void live_in_pieces(void *argument)
{
    size_t count, freed = 0, taken = 0, rounds = 0;
    (void)argument;
    heap_free(heap_alloc(20000)); /* the table for such blocks is there */
    limit_memory(LIMIT);
    struct link *all = take_all(200, &count), *kept = NULL;
    while (meta_alloc(META_LEAST) != NULL)
        continue;
    for (size_t i = 0; all != NULL; i++) {
        struct link *next = all->next;
        all->next = kept;
        if (i / 1000 % 2 == 0)
            kept = all;
        else
            heap_free(all);
        freed += i / 1000 % 2 * 200;
        all = next;
    }
    heap_default.page_heap.now = at_once;
    uint64_t calls = os_calls.mmap_calls + os_calls.madvise_calls;
    for (; heap_alloc(20000) != NULL; rounds++, taken += 20000)
        for (size_t i = 0; i < 100 && heap_alloc(48) != NULL; i++)
            taken += 48;
    calls = os_calls.mmap_calls + os_calls.madvise_calls - calls;
    CHILD_CHECK(taken > freed / 4 * 3);
    CHILD_CHECK(calls < rounds / 3 * 2);
    CHILD_CHECK(heap_check() == NULL);
}

TEST(pieces_between_small_blocks_serve_others_at_the_limit)
{
    assert_succeeds(live_in_pieces, NULL);
}

struct shortened {
    bool hardened;
    void *(*resize)(void *block, size_t bytes);
};

static void shorten_without_memory(void *argument)
{
    enum { SIZES = 10 };
    static const size_t sizes[SIZES] = {1,    24,    100,    300,    1000,
                                        3000, 20000, 100000, 500000, 5000000};
    static char *blocks[SIZES][SIZES];
    struct heap_settings settings = {.name = "short", .hardened = true};
    const struct shortened *how = argument;
    struct heap *heap = how->hardened ? heap_create(&settings) : &heap_default;
    CHILD_CHECK(heap != NULL);
    for (size_t i = 0; i < SIZES; i++)
        for (size_t j = 0; j < i; j++) {
            blocks[i][j] = heap_alloc_slow(sizes[i], heap);
            CHILD_CHECK(blocks[i][j] != NULL);
            memset(blocks[i][j], (int)(16 * i + j), sizes[i]);
        }
    limit_memory(0);
    for (size_t bytes = 16 * MIB; bytes >= 8; bytes /= 2)
        while (heap_alloc_slow(bytes, heap) != NULL)
            continue;
    for (size_t i = 0; i < SIZES; i++)
        for (size_t j = 0; j < i; j++) {
            char *block = how->resize(blocks[i][j], sizes[j]);
            CHILD_CHECK(block != NULL && heap_usable(block, "test") >= sizes[j]);
            CHILD_CHECK(block[0] == (char)(16 * i + j) && block[sizes[j] - 1] == block[0]);
            heap_free(block);
        }
    CHILD_CHECK(heap_check() == NULL);
}

TEST(a_block_can_become_shorter_without_memory)
{
    static const struct shortened ways[] = {
        {false, snug_realloc}, {false, heap_resize}, {true, heap_resize}};
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
        assert_succeeds(shorten_without_memory, (void *)&ways[i]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(the_heap_runs_out_of_memory_and_recovers),
        ROW(a_block_that_creeps_needs_no_more_than_it_asks_for),
        ROW(random_use_at_the_limit_breaks_nothing),
        ROW(short_requests_fail_last),
        ROW(a_block_that_cannot_grow_stays_as_it_is),
        ROW(small_requests_at_the_limit_do_not_ask_each_time),
        ROW(small_requests_at_the_limit_do_not_ask_for_descriptors),
        ROW(pieces_between_small_blocks_serve_others_at_the_limit),
        ROW(a_block_can_become_shorter_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
