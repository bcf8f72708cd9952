/*
 * Tests of stats/event.h, from where programs are: whichever function a program calls, it looks
 * once whether something is asked for, unless what it wants waits in the thread's cache.
 */
#include "heap_support.h"

#include "heap/tick.h"
#include "heap/user_heaps.h"
#include "options/options.h"
#include "pageheap/pages_in_use.h"
#include "snug/snug.h"
#include "stats/event.h"

static unsigned polls, takings;
static snug_heap *heap;

static void count_poll(void)
{
    polls++;
}

static void count_taking(void)
{
    takings++;
}

static int begin(void **state)
{
    options_reset(state);
    heap_taking_handler = count_taking;
    heap = snug_heap_create(NULL);
    events_handler = count_poll;
    pages_in_use.wanted = SIZE_MAX; /* or a look at the peak would be asked for, and never taken */
    events.wanted.peak = 0;
    events.wanted.watch = 1;
    return heap == NULL ? -1 : 0;
}

static int end(void **state)
{
    events.wanted.watch = 0;
    events_handler = heap_taking_handler = NULL;
    snug_heap_destroy(heap);
    return options_reset(state);
}

/* Nothing waits for the thread, and nothing finds room to. */
static void flush(void)
{
    struct cache *caches[] = {thread_self.cache, heap_cache_fast((struct heap *)heap)};
    for (size_t i = 0; i < 2; i++)
        if (cache_exists(caches[i]))
            cache_flush(caches[i]);
    polls = takings = 0;
}

/* What must not happen where libc frees something of its own is told by `takes`. */
static void assert_polled_once(const char *function, size_t bytes, bool takes)
{
    ASSERT_THAT(polls == 1, "%s, %zu bytes: %u polls", function, bytes, polls);
    ASSERT_THAT(takings == takes, "%s, %zu bytes: %u takings", function, bytes, takings);
    flush();
}

/* ---- Malloc's heap, and others ---- */

static void *calloc_one(size_t bytes)
{
    return snug_calloc(1, bytes);
}

static void *realloc_null(size_t bytes)
{
    return snug_realloc(NULL, bytes);
}

static void *aligned_to_64(size_t bytes)
{
    return snug_aligned_alloc(64, bytes);
}

static void *aligned_to_64_kib(size_t bytes)
{
    return snug_memalign(64 * KIB, bytes);
}

static void *posix_memalign_64(size_t bytes)
{
    void *block;
    return snug_posix_memalign(&block, 64, bytes) == 0 ? block : NULL;
}

static void *heap_malloc(size_t bytes)
{
    return snug_heap_malloc(heap, bytes);
}

static void *heap_calloc_one(size_t bytes)
{
    return snug_heap_calloc(heap, 1, bytes);
}

static void *heap_aligned_to_64(size_t bytes)
{
    return snug_heap_aligned_alloc(heap, 64, bytes);
}

static void *heap_realloc_null(size_t bytes)
{
    return snug_heap_realloc(heap, NULL, bytes);
}

static const struct {
    const char *name;
    void *(*take)(size_t bytes);
} takers[] = {
    {"malloc", snug_malloc},
    {"calloc", calloc_one},
    {"realloc", realloc_null},
    {"aligned_alloc", aligned_to_64},
    {"memalign", aligned_to_64_kib},
    {"posix_memalign", posix_memalign_64},
    {"valloc", snug_valloc},
    {"pvalloc", snug_pvalloc},
    {"heap_malloc", heap_malloc},
    {"heap_calloc", heap_calloc_one},
    {"heap_aligned_alloc", heap_aligned_to_64},
    {"heap_realloc", heap_realloc_null},
};

static void take_and_give(const char *name, void *(*take)(size_t bytes), size_t bytes)
{
    flush();
    void *block = take(bytes);
    assert_non_null(block);
    assert_polled_once(name, bytes, true);
    bool in_heap = snug_heap_of(block) == heap;
    if (in_heap)
        snug_heap_free(heap, block);
    else
        snug_free(block);
    assert_polled_once(in_heap ? "heap_free" : "free", bytes, false);
    block = take(bytes);
    flush();
    snug_free(block);
    assert_polled_once("free", bytes, false);
}

static void take_and_give_in_all_ways(void)
{
    for (unsigned i = 0; i < 100; i++) /* the heap's cache, if there is to be one */
        snug_heap_free(heap, snug_heap_malloc(heap, 16));
    for (size_t i = 0; i < sizeof(takers) / sizeof(*takers); i++)
        for (const size_t *bytes = border_sizes; *bytes != 0; bytes++)
            take_and_give(takers[i].name, takers[i].take, *bytes);
}

TEST(taking_and_freeing_polls_once)
{
    with_and_without_cache(take_and_give_in_all_ways);
}

/* Where it is, and by moving it. */
static void resize_in_all_ways(void)
{
    for (unsigned other = 0; other < 2; other++)
        for (const size_t *bytes = border_sizes; *bytes != 0; bytes++) {
            void *block = other ? heap_malloc(*bytes) : snug_malloc(*bytes);
            const size_t sizes[] = {*bytes + *bytes / 50, *bytes * 3, *bytes * 3 - 1, *bytes};
            flush();
            for (size_t i = 0; i < 4; i++) {
                block = snug_realloc(block, sizes[i]);
                assert_non_null(block);
                assert_polled_once("realloc", sizes[i], true);
            }
            snug_free(block);
        }
}

TEST(resizing_polls_once)
{
    with_and_without_cache(resize_in_all_ways);
}

/* ---- The tick ---- */

/* A heap ticks in one of the next slow calls after it is due, all its parts, and no other heap
 * does. */
static void tick_in(struct heap *ticking, struct heap *other, void *(*take)(size_t bytes))
{
    snug_free(take(3000));
    flush();
    const struct cells *cells = &ticking->arenas.list[0]->cells;
    uint32_t looks = cells->looks, others = other->arenas.list[0]->cells.looks;
    page_heap_ask_tick(&ticking->page_heap, 1);
    assert_true(events.wanted.ticking != 0);
    thread_self.polls = 0;
    void *block = take(3000); /* too soon: nobody has looked at the clock */
    assert_int_equal(cells->looks, looks);
    snug_free(block);
    flush();
    thread_self.polls = POLLS_PER_LOOK - 1;
    block = take(3000);
    assert_int_equal(cells->looks, looks + 1);
    assert_int_equal(other->arenas.list[0]->cells.looks, others);
    snug_free(block);
}

TEST(a_slow_call_ticks_when_that_is_due)
{
    struct heap *mine = (struct heap *)heap;
    snug_free(snug_malloc(3000));
    snug_free(heap_malloc(3000));
    events.wanted.watch = 0; /* nothing else is asked for */
    tick_in(mine, &heap_default, heap_malloc);
    tick_in(&heap_default, mine, snug_malloc);
}

/* A program that only resizes ticks as well: where its blocks are, and by moving them. */
static void resize_ticks(size_t from, size_t to, bool stays)
{
    for (unsigned i = 0; i < 20; i++) /* magazines and quick lists serve */
        snug_free(snug_realloc(snug_malloc(from), to));
    char *block = snug_malloc(from);
    const struct cells *cells = &heap_default.arenas.list[0]->cells;
    uint32_t looks = cells->looks;
    page_heap_ask_tick(&heap_default.page_heap, 1);
    thread_self.polls = POLLS_PER_LOOK - 1;
    char *resized = snug_realloc(block, to);
    ASSERT_THAT((resized == block) == stays, "%zu to %zu bytes", from, to);
    ASSERT_THAT(cells->looks == looks + 1, "%zu to %zu bytes: no tick", from, to);
    snug_free(resized);
}

TEST(who_only_resizes_ticks)
{
    events.wanted.watch = 0;
    resize_ticks(3000, 2900, true);
    resize_ticks(3000, 400, false);
    resize_ticks(200, 2000, false);
}

/* ---- What waits in the cache ---- */

enum { BLOCKS = 1000 };

/* A program that only takes, or only frees: it never lives from its cache for long. */
static void go_one_way(void *(*take)(size_t bytes), size_t bytes)
{
    static void *blocks[BLOCKS];
    flush();
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = take(bytes);
    unsigned most = BLOCKS;
    ASSERT_THAT(polls >= 4 && polls <= most, "%zu bytes taken: %u polls", bytes, polls);
    polls = 0;
    for (size_t i = 0; i < BLOCKS; i++)
        snug_free(blocks[i]);
    ASSERT_THAT(polls >= 4 && polls <= most, "%zu bytes freed: %u polls", bytes, polls);
}

TEST(who_goes_one_way_polls)
{
    static const size_t sizes[] = {64, 1024, 1025, 3000, 20000, CELL_MOST};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        go_one_way(snug_malloc, sizes[i]);
        go_one_way(heap_malloc, sizes[i]);
    }
}

/* Nobody is asked to look at anything where a magazine or a quick list serves. */
TEST(what_the_cache_serves_polls_never)
{
    static const size_t sizes[] = {64, 1024, 1500, 3000, 20000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        void *wall = snug_malloc(sizes[i]); /* so that the block is not at a page's beginning */
        for (unsigned round = 0; round < 1000; round++) {
            if (round == 100)
                polls = 0;
            snug_free(snug_malloc(sizes[i]));
        }
        ASSERT_THAT(polls == 0, "%zu bytes: %u polls", sizes[i], polls);
        snug_free(wall);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(taking_and_freeing_polls_once, begin, end),
        ROW_WITH(resizing_polls_once, begin, end),
        ROW_WITH(a_slow_call_ticks_when_that_is_due, begin, end),
        ROW_WITH(who_only_resizes_ticks, begin, end),
        ROW_WITH(who_goes_one_way_polls, begin, end),
        ROW_WITH(what_the_cache_serves_polls_never, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
