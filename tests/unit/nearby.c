/*
 * Tests of pageheap/nearby.h: where threads wait for the page heap, a large block stays near the
 * processor that freed it. Which processor that is, a test says by where the page heap's pointer to
 * them leads.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "heap/totals.h"
#include "options/options.h"
#include "page_heap_support.h"
#include "pageheap/large.h"

enum { BLOCK = 200 * KIB, BLOCK_PAGES = BLOCK / PAGE_BYTES };

static struct nearby *both;

/* What comes is done by one of two processors. */
static void run_on(size_t processor)
{
    page_heap.nearby = both + processor;
    page_heap.nearby_log = 0;
}

static void run_on_any(void)
{
    page_heap.nearby = both;
    page_heap.nearby_log = 1;
}

static cpu_set_t processors;

/* Stays where the thread is, and says which of the two that is; and ends that. */
static size_t stay(void)
{
    assert_int_equal(sched_getaffinity(0, sizeof(processors), &processors), 0);
    int processor = sched_getcpu();
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)processor, &set);
    assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
    return (size_t)processor % 2;
}

static void stay_no_more(void)
{
    assert_int_equal(sched_setaffinity(0, sizeof(processors), &processors), 0);
}

static bool put(char *start)
{
    bool done = nearby_put(&page_heap, (uintptr_t)start);
    assert_page_heap_sound();
    return done;
}

/* As if a thread had waited for the page heap's lock. */
static void wait_once(void)
{
    __atomic_fetch_add(&lock_waits[RANK_PAGE_HEAP], 1, __ATOMIC_RELAXED);
}

static struct span *span_of(const char *start)
{
    return large_table_find(&page_heap.large, start);
}

/* A block that the processor knows. */
static char *take_known(size_t bytes)
{
    large_put(large_get(bytes));
    wait_once();
    char *start = large_get(bytes);
    assert_int_equal(page_heap.recent.count, 0);
    assert_non_null(nearby_of(span_of(start)));
    return start;
}

/* Setup: there are two processors, and the first is at hand. */
static int nearby_setup(void **state)
{
    if (page_heap_begin(state) != 0)
        return -1;
    options.dirty = GIB;
    nearby_begin(&page_heap, 2);
    large_put(large_get(BLOCK));
    wait_once();
    large_put(large_get(BLOCK)); /* it was known, and is no more */
    both = page_heap.nearby;
    run_on(0);
    return both != NULL ? 0 : -1;
}

static int nearby_teardown(void **state)
{
    run_on_any();
    bool empty = true;
    for (size_t i = 0; i < 2; i++)
        for (size_t known = 0; known < 1 << NEARBY_KNOWN_LOG; known++)
            empty = empty && both[i].known[known] == NULL && both[i].recent.count == 0;
    int ended = page_heap_end(state);
    return empty ? ended : -1;
}

/* ---- Who has any ---- */

TEST(nobody_has_any_before_a_thread_waits)
{
    nearby_begin(&page_heap, 2);
    wait_once();
    large_put(large_get(BLOCK));
    assert_true(nearby_is_wanted(&page_heap));
    assert_ptr_equal(page_heap.nearby, NULL);
    size_t dirty;
    char *start = large_alloc(&page_heap, BLOCK, MIN_ALIGN, &dirty); /* one that waits */
    assert_non_null(page_heap.nearby);
    assert_false(nearby_is_wanted(&page_heap));
    assert_int_equal(nearby_count(&page_heap), 2);
    large_put(start);
    start = large_get(BLOCK); /* nobody has waited since */
    assert_null(nearby_of(span_of(start)));
    large_put(start);
    assert_page_heap_empty();
}

TEST(a_heap_that_was_not_told_to_has_none)
{
    large_put(large_get(BLOCK));
    wait_once();
    char *start = large_get(BLOCK);
    assert_ptr_equal(page_heap.nearby, NULL);
    assert_null(nearby_of(span_of(start)));
    assert_false(nearby_is_wanted(&page_heap));
    large_put(start);
    assert_page_heap_empty();
}

TEST(as_many_as_processors)
{
    static const struct {
        unsigned processors;
        size_t count;
    } rows[] = {{1, 1}, {2, 2}, {3, 4}, {64, 64}, {65, 64}, {5000, NEARBY_MOST}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        nearby_begin(&page_heap, rows[i].processors);
        assert_int_equal((size_t)1 << page_heap.nearby_log, rows[i].count);
    }
}

/* Nothing waits in the page heap then, and so nothing is taken from there. */
TEST(without_a_delay_nothing_becomes_known)
{
    options.purge_delay = 0;
    large_put(large_get(BLOCK));
    wait_once();
    char *start = large_get(BLOCK);
    assert_null(nearby_of(span_of(start)));
    assert_false(put(start));
    large_put(start);
    assert_page_heap_empty();
}

/* ---- Serving ---- */

TEST(a_block_waits_where_it_is_known)
{
    char *start = take_known(BLOCK);
    size_t used = page_heap.used_pages;
    assert_true(put(start));
    assert_int_equal(both[0].recent.count, 1);
    assert_int_equal(both[0].recent.pages, BLOCK_PAGES);
    assert_int_equal(both[0].recent.requested[0], BLOCK);
    assert_int_equal(page_heap.recent.count, 0);
    assert_int_equal(page_heap.used_pages, used); /* for the page heap it is in use */
    assert_int_equal(page_heap.sizes.blocks[0], 1);
    /* Any size that takes as many pages. */
    assert_ptr_equal(large_get(BLOCK - 100), start);
    assert_int_equal(span_of(start)->requested, BLOCK - 100);
    assert_int_equal(page_heap.sizes.bytes[0], BLOCK - 100);
    assert_int_equal(both[0].recent.count, 0);
    assert_true(put(start)); /* it stays known */
    assert_ptr_equal(large_get(BLOCK - 100), start);
    large_put(start);
    assert_page_heap_empty();
}

TEST(the_newest_comes_first_and_others_wait)
{
    char *first = take_known(BLOCK), *other = take_known(2 * BLOCK), *second = take_known(BLOCK);
    assert_true(put(first) && put(other) && put(second));
    assert_ptr_equal(large_get(BLOCK), second);
    assert_ptr_equal(large_get(BLOCK), first);
    assert_ptr_equal(large_get(2 * BLOCK), other);
    large_put(first);
    large_put(second);
    large_put(other);
    assert_page_heap_empty();
}

TEST(an_aligned_request_takes_only_what_is_aligned)
{
    char *wall = take_known(BLOCK), *start = take_known(BLOCK);
    if ((uintptr_t)start % (64 * KIB) == 0) {
        char *other = wall;
        wall = start;
        start = other;
    }
    assert_true(put(start));
    assert_null(large_alloc_near(&page_heap, BLOCK, 64 * KIB));
    assert_ptr_equal(large_alloc_near(&page_heap, BLOCK, PAGE_BYTES), start);
    large_put(start);
    large_put(wall);
    assert_page_heap_empty();
}

TEST(another_processor_neither_knows_nor_has_it)
{
    char *start = take_known(BLOCK);
    run_on(1);
    assert_false(put(start));
    run_on(0);
    assert_true(put(start));
    run_on(1);
    char *other = large_get(BLOCK);
    assert_ptr_not_equal(other, start);
    run_on(0);
    assert_ptr_equal(large_get(BLOCK), start);
    large_put(other);
    run_on(1);
    large_put(start); /* freed elsewhere, it is a block like any */
    assert_int_equal(page_heap.recent.count, 2);
    assert_page_heap_empty();
}

static void *sleep_until_told(void *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
    return NULL;
}

/* Where a known block has its place there may be another address. */
TEST(another_address_with_the_same_place_is_no_block)
{
    char *start = take_known(BLOCK), *other = start;
    size_t place = bits_spread((uintptr_t)start >> PAGE_SHIFT, NEARBY_KNOWN_LOG);
    do {
        other += PAGE_BYTES;
    } while (bits_spread((uintptr_t)other >> PAGE_SHIFT, NEARBY_KNOWN_LOG) != place);
    assert_false(put(other));
    assert_false(put(start + 16));
    assert_true(put(start));
    nearby_join(&page_heap);
    assert_page_heap_empty();
}

/* A peak is looked for when a block is live again, as it is not for the page heap. */
TEST(a_block_that_is_taken_again_may_be_a_peak)
{
    char *start = take_known(BLOCK);
    assert_true(put(start));
    pages_in_use.wanted = pages_in_use_now();
    events.wanted.peak = 0;
    assert_ptr_equal(large_alloc_near(&page_heap, BLOCK, 1), start);
    assert_int_equal(events.wanted.peak, 1);
    events.wanted.peak = 0;
    /* Not while another waits here, or in the page heap. */
    for (unsigned here = 0; here < 2; here++) {
        char *other = here ? take_known(2 * BLOCK) : large_get(2 * BLOCK);
        pages_in_use.wanted = pages_in_use_now();
        if (here)
            assert_true(put(other));
        else
            large_put(other);
        assert_true(put(start));
        events.wanted.peak = 0;
        assert_ptr_equal(large_alloc_near(&page_heap, BLOCK, 1), start);
        assert_int_equal(events.wanted.peak, 0);
        page_heap_join_waiting(&page_heap);
    }
    large_put(start);
    assert_page_heap_empty();
}

TEST(a_program_with_threads_uses_them)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    assert_int_equal(pthread_create(&thread, NULL, sleep_until_told, &mutex), 0);
    char *start = take_known(BLOCK);
    assert_true(large_free_recent(&page_heap, (uintptr_t)start));
    assert_int_equal(both[0].recent.count, 1);
    assert_ptr_equal(large_alloc_recent(&page_heap, BLOCK, 1), start);
    assert_int_equal(both[0].recent.count, 0);
    assert_true(large_free_recent(&page_heap, (uintptr_t)start));
    assert_false(large_free_recent(&page_heap, (uintptr_t)start)); /* twice */
    /* Those of the page heap: known from then on if somebody waited. */
    char *first = large_get(2 * BLOCK);
    assert_true(large_free_recent(&page_heap, (uintptr_t)first));
    assert_int_equal(page_heap.recent.count, 1);
    wait_once();
    assert_ptr_equal(large_alloc_recent(&page_heap, 2 * BLOCK, 1), first);
    assert_ptr_equal(nearby_of(span_of(first)), both);
    assert_true(large_free_recent(&page_heap, (uintptr_t)first));
    assert_int_equal(page_heap.recent.count, 0);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    assert_page_heap_sound();
    nearby_join(&page_heap);
    assert_page_heap_empty();
}

/* ---- What leaves ---- */

TEST(what_waits_is_no_block)
{
    char *start = take_known(BLOCK);
    assert_true(put(start));
    size_t bytes = 0;
    assert_false(put(start));
    assert_false(large_free_recent(&page_heap, (uintptr_t)start));
    struct misuse misuse = large_free(&page_heap, (uintptr_t)start);
    assert_int_equal(misuse.kind, MISUSE_DOUBLE_FREE);
    assert_int_equal(misuse.bytes, BLOCK);
    assert_int_equal(large_usable(&page_heap, (uintptr_t)start, &bytes).kind, MISUSE_DOUBLE_FREE);
    assert_int_equal(large_usable(&page_heap, (uintptr_t)start + 9, &bytes).kind,
                     MISUSE_DOUBLE_FREE);
    assert_false(large_has(&page_heap, (uintptr_t)start));
    struct block_extent extent;
    assert_true(large_extent(&page_heap, (uintptr_t)start + 9, &extent));
    assert_true(extent.is_free);
    assert_ptr_equal(large_get(BLOCK), start);
    assert_true(large_extent(&page_heap, (uintptr_t)start + 9, &extent));
    assert_false(extent.is_free);
    assert_int_equal(extent.end - extent.start, BLOCK);
    large_put(start);
    assert_page_heap_empty();
}

TEST(who_looks_at_a_block_leaves_it_known)
{
    char *start = take_known(BLOCK);
    size_t bytes = 0;
    assert_int_equal(large_usable(&page_heap, (uintptr_t)start, &bytes).kind, MISUSE_NONE);
    assert_int_equal(bytes, BLOCK);
    assert_true(large_has(&page_heap, (uintptr_t)start));
    assert_true(put(start));
    nearby_join(&page_heap);
    assert_page_heap_empty();
}

TEST(a_block_that_gets_another_length_is_not_known)
{
    char *start = take_known(BLOCK);
    assert_ptr_equal(large_resize(&page_heap, (uintptr_t)start, BLOCK / 2), start);
    assert_null(nearby_of(span_of(start)));
    assert_false(put(start));
    large_put(start);
    assert_page_heap_empty();
}

TEST(a_block_written_past_its_end_does_not_wait)
{
    char *start = take_known(BLOCK - 100);
    start[BLOCK - 100] ^= 7; /* whatever the margin is */
    assert_false(put(start));
    assert_int_equal(large_free(&page_heap, (uintptr_t)start).kind, MISUSE_OVERFLOW);
    assert_page_heap_empty();
}

TEST(a_block_written_while_it_waits_is_found)
{
    char *start = take_known(BLOCK);
    assert_true(put(start));
    assert_int_equal(large_inspect(&page_heap).kind, MISUSE_NONE);
    start[8] ^= 7;
    struct misuse misuse = large_inspect(&page_heap);
    assert_int_equal(misuse.kind, MISUSE_WRITTEN);
    assert_int_equal(misuse.address, start);
    assert_ptr_equal(large_get(BLOCK), start);
    large_put(start);
    assert_page_heap_empty();
}

/* ---- What stays, and for how long ---- */

TEST(no_more_than_a_few_wait)
{
    enum { COUNT = RECENT_MOST + 4 };
    char *blocks[COUNT];
    size_t put_count = 0;
    for (size_t i = 0; i < COUNT; i++)
        blocks[i] = take_known(BLOCK);
    for (size_t i = 0; i < COUNT; i++) {
        if (put(blocks[i]))
            put_count++;
        else
            large_put(blocks[i]);
    }
    /* Two may have one place among the known. */
    assert_true(put_count <= RECENT_MOST && put_count >= RECENT_MOST / 2);
    assert_int_equal(both[0].recent.count, put_count);
    nearby_join(&page_heap);
    assert_page_heap_empty();
}

TEST(so_many_pages_wait_as_are_a_processors_share)
{
    size_t here = stay();
    run_on_any();
    char *blocks[3];
    for (size_t i = 0; i < 3; i++)
        blocks[i] = take_known(BLOCK);
    assert_int_equal(both[here].room, GIB / PAGE_BYTES / 2 / 2);
    options.dirty = 8 * BLOCK; /* half of that half */
    nearby_join(&page_heap);
    assert_int_equal(both[here].room, 2 * BLOCK_PAGES);
    assert_true(put(blocks[0]));
    assert_true(put(blocks[1]));
    assert_false(put(blocks[2]));
    large_put(blocks[2]);
    page_heap.used_pages += 1000 * SLACK_SHARE; /* as if so much were in use */
    nearby_join(&page_heap);
    page_heap.used_pages -= 1000 * SLACK_SHARE;
    assert_in_range(both[here].room, 250, 251);
    nearby_join(&page_heap);
    stay_no_more();
    assert_page_heap_empty();
}

TEST(nothing_waits_where_memory_was_refused)
{
    char *start = take_known(BLOCK);
    page_heap.refused = true;
    nearby_join(&page_heap); /* as for a request that cannot be served */
    assert_false(put(start));
    large_put(start);
    wait_once();
    start = large_get(BLOCK);
    assert_null(nearby_of(span_of(start)));
    page_heap.refused = false;
    large_put(start);
    assert_true(put(take_known(BLOCK)));
    nearby_join(&page_heap);
    assert_page_heap_empty();
}

TEST(a_request_of_another_length_joins_those_at_hand)
{
    size_t here = stay();
    run_on(1 - here);
    char *there = take_known(BLOCK / 2);
    assert_true(put(there));
    run_on_any();
    char *blocks[3];
    for (size_t i = 0; i < 3; i++)
        blocks[i] = take_known(BLOCK);
    for (size_t i = 0; i < 3; i++)
        assert_true(put(blocks[i]));
    char *longer = large_get(3 * BLOCK);
    assert_ptr_equal(longer, blocks[0]);
    assert_int_equal(both[here].recent.count, 0);
    assert_int_equal(both[1 - here].recent.count, 1);
    large_put(longer);
    run_on(1 - here);
    assert_ptr_equal(large_get(BLOCK / 2), there);
    large_put(there);
    stay_no_more();
    assert_page_heap_empty();
}

static void wait_on_both(void)
{
    for (size_t i = 0; i < 2; i++) {
        run_on(i);
        assert_true(put(take_known(BLOCK)));
    }
    run_on_any();
    assert_int_equal(both[0].recent.count + both[1].recent.count, 2);
    assert_page_heap_sound();
}

static void assert_all_joined(void)
{
    assert_int_equal(both[0].recent.count + both[1].recent.count, 0);
    assert_int_equal(page_heap.used_pages, 0);
    assert_page_heap_empty();
}

TEST(a_purge_joins_all)
{
    wait_on_both();
    page_heap_purge(&page_heap, 1);
    assert_all_joined();
}

TEST(a_tick_joins_all)
{
    wait_on_both();
    page_heap_ask_tick(&page_heap, fake_now);
    assert_true(page_heap_tick(&page_heap));
    assert_all_joined();
}

TEST(where_too_much_is_kept_all_are_joined)
{
    wait_on_both();
    char *other = large_get(4 * BLOCK);
    options.dirty = BLOCK;
    large_put(other);
    assert_all_joined();
}

/* ---- Statistics ---- */

TEST(what_waits_is_counted)
{
    wait_on_both();
    size_t blocks = 1;
    assert_int_equal(heap_waiting_pages(NULL, &page_heap, &blocks), 2 * BLOCK_PAGES);
    assert_int_equal(blocks, 3);
    nearby_join(&page_heap);
    blocks = 0;
    assert_int_equal(heap_waiting_pages(NULL, &page_heap, &blocks), 0);
    assert_int_equal(blocks, 0);
    assert_page_heap_empty();
}

/* ---- Locks ---- */

static size_t acted;

static void act(struct lock *lock)
{
    assert_int_equal(lock->rank, RANK_NEARBY);
    acted++;
}

TEST(fork_reaches_all_locks)
{
    run_on_any();
    acted = 0;
    nearby_each_lock(&page_heap, act);
    assert_int_equal(acted, 2);
    assert_page_heap_empty();
}

/* ---- The check ---- */

TEST(damage_is_found)
{
    char *first = take_known(BLOCK), *second = take_known(BLOCK);
    assert_true(put(first));
    struct recent *recent = &both[0].recent;
    struct span *span = recent->spans[0], *live = span_of(second);
#define PLANT(field, damage, expected) \
    ASSERT_FOUND(field, damage, page_heap_check(&page_heap), expected)
    PLANT(recent->pages, BLOCK_PAGES + 1, "the pages that wait near a processor are wrong");
    PLANT(recent->count, 0, "the pages that wait near a processor are wrong");
    PLANT(recent->requested[0], BLOCK + 1, "a block that waits near a processor is none there");
    PLANT(span->owner, NULL, "a block that waits near a processor is none there");
    PLANT(live->owner, NULL, "a block that a processor knows is not live");
    PLANT(both[0].known[0], span, "a block that a processor knows is not live");
    large_put(second);
    nearby_join(&page_heap);
    assert_page_heap_empty();
}

#define NEARBY_ROW(name) ROW_WITH(name, nearby_setup, nearby_teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(nobody_has_any_before_a_thread_waits, page_heap_begin, page_heap_end),
        ROW_WITH(a_heap_that_was_not_told_to_has_none, page_heap_begin, page_heap_end),
        ROW_WITH(as_many_as_processors, page_heap_begin, page_heap_end),
        NEARBY_ROW(without_a_delay_nothing_becomes_known),
        NEARBY_ROW(a_block_waits_where_it_is_known),
        NEARBY_ROW(the_newest_comes_first_and_others_wait),
        NEARBY_ROW(an_aligned_request_takes_only_what_is_aligned),
        NEARBY_ROW(another_processor_neither_knows_nor_has_it),
        NEARBY_ROW(another_address_with_the_same_place_is_no_block),
        NEARBY_ROW(a_block_that_is_taken_again_may_be_a_peak),
        NEARBY_ROW(a_program_with_threads_uses_them),
        NEARBY_ROW(what_waits_is_no_block),
        NEARBY_ROW(who_looks_at_a_block_leaves_it_known),
        NEARBY_ROW(a_block_that_gets_another_length_is_not_known),
        NEARBY_ROW(a_block_written_past_its_end_does_not_wait),
        NEARBY_ROW(a_block_written_while_it_waits_is_found),
        NEARBY_ROW(no_more_than_a_few_wait),
        NEARBY_ROW(so_many_pages_wait_as_are_a_processors_share),
        NEARBY_ROW(nothing_waits_where_memory_was_refused),
        NEARBY_ROW(a_request_of_another_length_joins_those_at_hand),
        NEARBY_ROW(a_purge_joins_all),
        NEARBY_ROW(a_tick_joins_all),
        NEARBY_ROW(where_too_much_is_kept_all_are_joined),
        NEARBY_ROW(what_waits_is_counted),
        NEARBY_ROW(fork_reaches_all_locks),
        NEARBY_ROW(damage_is_found),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
