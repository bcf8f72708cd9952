/*
 * Tests of heap/all_locks.c and heap/outside_call.c: what a thread does for another process happens
 * where all locks are free, and not at all where one is held.
 */
#include "heap_support.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "heap/all_locks.h"
#include "heap/outside_call.h"
#include "heap/user_heaps.h"
#include "options/options.h"
#include "provider/provider_prealloc.h"
#include "stats/event.h"

static struct outside_call *called(uint32_t what, struct cache *cache)
{
    static struct outside_call call;
    memset(&call, 0, sizeof(call));
    call.what = what;
    if (cache != NULL)
        call.caches[call.cache_count++] = cache;
    errno = 4711;
    outside_call_run(&call.borrow);
    assert_int_equal(errno, 4711);
    return &call;
}

/* Bytes that wait in the magazines and quick lists of all threads. */
static size_t waiting(void)
{
    struct heap_totals totals = heap_totals();
    return totals.small_cached + totals.cells_cached;
}

/* Frees so much of several kinds that something is kept, and waits in magazines. */
static void keep_some(void)
{
    static char *blocks[8000]; /* more than may wait */
    for (size_t i = 0; i < 8000; i++) {
        blocks[i] = block_get(100 + i % 7 * 700);
        memset(blocks[i], 1, 100);
    }
    for (size_t i = 0; i < 8000; i++)
        heap_free(blocks[i]);
    char *large = block_get(900 * KIB);
    memset(large, 1, 900 * KIB);
    heap_free(large);
    assert_true(cache_exists(thread_self.cache));
}

TEST(a_trim_empties_the_caches_it_is_given_and_gives_pages_back)
{
    size_t before = options.dirty;
    options.dirty = 64 * MIB; /* more than waits in lists, which counts as kept */
    keep_some();
    assert_true(waiting() != 0);
    assert_true(heap_default.page_heap.dirty.pages + heap_default.page_heap.cache.dirty_pages != 0);
    uint64_t trims = events.trims;
    assert_int_equal(called(OUTSIDE_TRIM, thread_self.cache)->outcome, OUTSIDE_MADE);
    assert_int_equal(waiting(), 0);
    assert_int_equal(heap_default.page_heap.dirty.pages, 0);
    assert_int_equal(heap_default.page_heap.cache.dirty_pages, 0);
    assert_int_equal(events.trims, trims + 1);
    options.dirty = before;
    assert_heap_sound();
}

TEST(caches_that_it_is_not_given_stay)
{
    keep_some();
    size_t cached = waiting();
    assert_true(cached != 0);
    assert_int_equal(called(OUTSIDE_TRIM, NULL)->outcome, OUTSIDE_MADE);
    assert_int_equal(waiting(), cached);
    /* One that is no cache of this heap, as of a thread that has none. */
    assert_int_equal(called(OUTSIDE_TRIM, (struct cache *)&cache_none)->outcome, OUTSIDE_MADE);
}

static void *call_in_thread(void *outcome)
{
    *(uint32_t *)outcome = called(OUTSIDE_TRIM, NULL)->outcome;
    return NULL;
}

/* What comes of a call in another thread while this one has a lock. */
static uint32_t outcome_with(struct lock *lock)
{
    pthread_t thread;
    uint32_t outcome = OUTSIDE_UNKNOWN;
    lock_acquire(lock);
    assert_int_equal(pthread_create(&thread, NULL, call_in_thread, &outcome), 0);
    pthread_join(thread, NULL);
    lock_release(lock);
    return outcome;
}

static size_t lock_count;

static void count_lock(struct lock *lock)
{
    lock_count++;
    assert_int_equal(outcome_with(lock), OUTSIDE_BUSY);
}

TEST(nothing_is_done_while_any_lock_is_held)
{
    struct heap *other = heap_create(&(struct heap_settings){.provider = NULL});
    struct pool pool;
    assert_true(provider_prealloc_init(&pool, MIB, NULL));
    assert_non_null(other);
    heap_free(heap_alloc_in(other, 100));
    keep_some();
    uint64_t trims = events.trims;
    static const enum lock_rank ranks[] = {RANK_DEPOT, RANK_BIN, RANK_CELLS};
    for (size_t i = 0; i < 3; i++) {
        arenas_each_lock_of(&heap_default.arenas, ranks[i], count_lock);
        heaps_each_lock_of(ranks[i], count_lock);
    }
    assert_true(lock_count >= 3); /* at least one of each kind */
    count_lock(heap_init_lock());
    heaps_each_lock_of(RANK_HEAPS, count_lock);
    count_lock(&heap_default.arenas.lock);
    heaps_each_lock_of(RANK_ARENAS, count_lock);
    count_lock(&heap_default.page_heap.lock);
    heaps_each_lock_of(RANK_PAGE_HEAP, count_lock);
    count_lock(provider_locks_lock());
    count_lock(&pool.lock.lock);
    count_lock(&meta_system.lock);
    assert_int_equal(events.trims, trims);
    heap_destroy(other);
    pool_end(&pool);
    /* And none of them is held afterwards. */
    all_locks_take();
    all_locks_release(lock_release);
    assert_int_equal(called(OUTSIDE_TRIM, NULL)->outcome, OUTSIDE_MADE);
}

/* Has large blocks near processors, as after a wait. */
static void near_some(void)
{
    size_t dirty;
    heap_free(block_get(300 * KIB));
    __atomic_fetch_add(&lock_waits[RANK_PAGE_HEAP], 1, __ATOMIC_RELAXED);
    void *block = large_alloc(&heap_default.page_heap, 300 * KIB, MIN_ALIGN, &dirty);
    assert_true(nearby_there(&heap_default.page_heap));
    heap_free(block);
}

static bool in_order;

static void release_in_order(struct lock *lock)
{
    const struct page_heap *page_heap = &heap_default.page_heap;
    if (lock == &page_heap->lock)
        for (size_t i = 0; i < nearby_count(page_heap); i++)
            in_order = in_order && page_heap->nearby[i].lock.held == 0;
    lock_release(lock);
}

/* Who gets a page heap's lock may make those near processors: no fork may release them that did not
 * take them. */
TEST(locks_that_others_guard_are_released_before_those)
{
    near_some();
    all_locks_take();
    in_order = heap_default.page_heap.nearby[0].lock.held == 1;
    all_locks_release(release_in_order);
    assert_true(in_order);
}

TEST(a_thread_that_forks_is_left_alone)
{
    heap_free(block_get(100));
    all_locks_take();
    assert_int_equal(called(OUTSIDE_TRIM, thread_self.cache)->outcome, OUTSIDE_BUSY);
    all_locks_release(lock_release);
}

TEST(a_check_says_what_is_wrong)
{
    heap_free(block_get(100));
    struct outside_call *call = called(OUTSIDE_CHECK, thread_self.cache);
    assert_int_equal(call->outcome, OUTSIDE_MADE);
    assert_null(call->wrong);
    char *block = block_get(5000);
    block[-8] ^= 1; /* its header */
    assert_non_null(called(OUTSIDE_CHECK, NULL)->wrong);
    block[-8] ^= 1;
    heap_free(block);
    assert_heap_sound();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(a_trim_empties_the_caches_it_is_given_and_gives_pages_back),
        ROW(caches_that_it_is_not_given_stay),
        ROW(nothing_is_done_while_any_lock_is_held),
        ROW(locks_that_others_guard_are_released_before_those),
        ROW(a_thread_that_forks_is_left_alone),
        ROW(a_check_says_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
