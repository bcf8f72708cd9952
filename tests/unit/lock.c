/*
 * Tests of platform/lock.h: exclusion among threads, sleeping and waking, ranks, and what a lock
 * does while the process forks.
 */
#include "support.h"

#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "platform/lock.h"

static unsigned held(struct lock *lock)
{
    return __atomic_load_n(&lock->held, __ATOMIC_RELAXED);
}

/* Waits until so many have announced that they sleep; false after 20 seconds. */
static bool wait_for_sleepers(struct lock *lock, unsigned count)
{
    for (unsigned i = 0; i < 20000; i++) {
        if (__atomic_load_n(&lock->asleep, __ATOMIC_RELAXED) == count)
            return true;
        usleep(1000);
    }
    return false;
}

/* ---- One thread ---- */

TEST(a_lock_is_held_by_one)
{
    struct lock lock;
    lock_init(&lock, RANK_BIN);
    assert_int_equal(held(&lock), 0);
    assert_true(lock_try(&lock));
    assert_int_equal(held(&lock), 1);
    assert_false(lock_try(&lock));
    lock_release(&lock);
    assert_int_equal(held(&lock), 0);
    lock_acquire(&lock);
    assert_false(lock_try(&lock));
    lock_release(&lock);
    assert_true(lock_try(&lock));
    lock_release(&lock);
}

TEST(a_static_lock_is_free)
{
    static struct lock lock = LOCK_INIT(RANK_META);
    assert_int_equal(lock.rank, RANK_META);
    assert_true(lock_try(&lock));
    lock_release(&lock);
}

TEST(locks_of_rising_rank_are_taken_together)
{
    struct lock locks[RANK_COUNT];
    for (unsigned i = 0; i < RANK_COUNT; i++) {
        lock_init(&locks[i], (enum lock_rank)i);
        lock_acquire(&locks[i]);
    }
    for (unsigned i = 0; i < RANK_COUNT; i++)
        lock_release(&locks[i]);
    /* Released out of order, they leave nothing behind. */
    lock_acquire(&locks[0]);
    lock_release(&locks[0]);
}

/* ---- Several threads ---- */

enum { THREADS = 4, TURNS = 20000 };

static struct {
    struct lock lock;
    unsigned long count; /* guarded by the lock alone */
    unsigned long other;
} shared;

static void *count_up(void *argument)
{
    for (unsigned i = 0; i < TURNS; i++) {
        lock_acquire(&shared.lock);
        shared.count++;
        if (i % 512 == 0)
            usleep(1); /* so that the others have to sleep too */
        shared.other = shared.count;
        lock_release(&shared.lock);
    }
    return argument;
}

TEST(threads_exclude_each_other)
{
    lock_init(&shared.lock, RANK_DEPOT);
    shared.count = 0;
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(shared.count, THREADS * TURNS);
    assert_int_equal(shared.other, THREADS * TURNS);
    assert_int_equal(held(&shared.lock), 0);
}

enum { LINES = 16, OTHER_WORK = 100, MANY_TURNS = 300000, ROUNDS = 3 };

static struct {
    struct lock lock;
    unsigned holder; /* who had the lock last */
    unsigned long swaps;
    uint64_t lines[LINES][8]; /* what the lock guards */
    unsigned running;
} contended;

/* Takes the lock again and again, with less time between than it takes to look at it once more. */
static void *hold_often(void *argument)
{
    unsigned self = __atomic_add_fetch(&contended.running, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&contended.running, __ATOMIC_RELAXED) < 2)
        continue;
    for (unsigned i = 0; i < MANY_TURNS; i++) {
        lock_acquire(&contended.lock);
        contended.swaps += contended.holder != self;
        contended.holder = self;
        for (unsigned line = 0; line < LINES; line++)
            contended.lines[line][0]++;
        lock_release(&contended.lock);
        for (volatile unsigned other = 0; other < OTHER_WORK; other++)
            continue;
    }
    return argument;
}

/* How often the lock goes from one of two threads to the other. */
static unsigned long swaps_of_two(void)
{
    memset(&contended, 0, sizeof(contended));
    lock_init(&contended.lock, RANK_PAGE_HEAP);
    pthread_t threads[2];
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hold_often, NULL), 0);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(contended.lines[0][0], 2 * MANY_TURNS);
    return contended.swaps;
}

/* What a lock guards is in one processor's cache: who waits leaves it there for several turns. With
 * a look at each pause about half of all turns are swaps; there are fewer where both threads are on
 * one processor, so in one round of them they may be few. */
TEST(who_waits_lets_the_holder_go_on)
{
    for (unsigned i = 0; i < ROUNDS; i++)
        assert_true(swaps_of_two() * 5 < 2 * (2 * MANY_TURNS));
}

static void *take_and_release(void *argument)
{
    struct lock *lock = argument;
    lock_acquire(lock);
    lock_release(lock);
    return NULL;
}

TEST(a_waiter_sleeps_and_is_woken)
{
    struct lock lock;
    lock_init(&lock, RANK_PAGE_HEAP);
    uint64_t waits = __atomic_load_n(&lock_waits[RANK_PAGE_HEAP], __ATOMIC_RELAXED);
    pthread_t waiters[3];
    lock_acquire(&lock);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&waiters[i], NULL, take_and_release, &lock), 0);
    assert_true(wait_for_sleepers(&lock, 3));
    usleep(20000); /* they look again meanwhile, and do not announce themselves again */
    assert_true(wait_for_sleepers(&lock, 3));
    assert_int_equal(held(&lock), 1);
    lock_release(&lock);
    for (unsigned i = 0; i < 3; i++)
        pthread_join(waiters[i], NULL);
    assert_true(lock.wakes >= 1);
    /* Who looked by himself may have announced himself twice: that is taken off at once. */
    for (unsigned i = 0; lock.asleep != 0; i++) {
        assert_true(i < 1000);
        lock_acquire(&lock);
        lock_release(&lock);
    }
    assert_int_equal(held(&lock), 0);
    assert_true(__atomic_load_n(&lock_waits[RANK_PAGE_HEAP], __ATOMIC_RELAXED) - waits >= 1);
}

/* However many sleep, in a millisecond one of them looks. */
TEST(many_sleepers_seldom_look)
{
    enum { SLEEPERS = 200, MILLISECONDS = 200 };
    struct lock lock;
    lock_init(&lock, RANK_PAGE_HEAP);
    pthread_t waiters[SLEEPERS];
    lock_acquire(&lock);
    for (unsigned i = 0; i < SLEEPERS; i++)
        assert_int_equal(pthread_create(&waiters[i], NULL, take_and_release, &lock), 0);
    assert_true(wait_for_sleepers(&lock, SLEEPERS));
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    usleep(MILLISECONDS * 1000);
    getrusage(RUSAGE_SELF, &after);
    lock_release(&lock);
    for (unsigned i = 0; i < SLEEPERS; i++)
        pthread_join(waiters[i], NULL);
    /* the first MILLISECONDS times, the second half as often: six times as many together */
    assert_true(after.ru_nvcsw - before.ru_nvcsw < 20 * MILLISECONDS);
}

TEST(a_free_lock_is_not_waited_for)
{
    struct lock lock;
    lock_init(&lock, RANK_PAGE_HEAP);
    uint64_t waits = __atomic_load_n(&lock_waits[RANK_PAGE_HEAP], __ATOMIC_RELAXED);
    for (unsigned i = 0; i < 1000; i++) {
        lock_acquire(&lock);
        lock_release(&lock);
    }
    assert_int_equal(__atomic_load_n(&lock_waits[RANK_PAGE_HEAP], __ATOMIC_RELAXED), waits);
}

/* ---- Fork ---- */

TEST(the_forking_thread_holds_every_lock)
{
    struct lock lock;
    lock_init(&lock, RANK_BIN);
    assert_false(lock_is_forker());
    lock_acquire(&lock);
    lock_fork_begin();
    assert_true(lock_is_forker());
    /* It is its own; taking it again neither waits nor changes it, and nor does releasing it. */
    lock_acquire(&lock);
    assert_int_equal(held(&lock), 1);
    lock_release(&lock);
    assert_int_equal(held(&lock), 1);
    lock_fork_end();
    assert_false(lock_is_forker());
    lock_release(&lock);
    assert_int_equal(held(&lock), 0);
}

TEST(other_threads_wait_for_the_forking_one)
{
    struct lock lock;
    lock_init(&lock, RANK_BIN);
    pthread_t waiter;
    lock_acquire(&lock);
    lock_fork_begin();
    assert_int_equal(pthread_create(&waiter, NULL, take_and_release, &lock), 0);
    assert_true(wait_for_sleepers(&lock, 1));
    lock_acquire(&lock);
    lock_release(&lock);
    assert_int_equal(held(&lock), 1); /* still held, still with a sleeper */
    assert_int_equal(__atomic_load_n(&lock.asleep, __ATOMIC_RELAXED), 1);
    lock_fork_end();
    lock_release(&lock);
    pthread_join(waiter, NULL);
    assert_int_equal(held(&lock), 0);
}

TEST(a_reset_frees_without_waking)
{
    struct lock lock;
    lock_init(&lock, RANK_BIN);
    lock_acquire(&lock);
    __atomic_store_n(&lock.asleep, 1, __ATOMIC_RELAXED); /* which the child does not have */
    lock_reset(&lock);
    assert_int_equal(held(&lock), 0);
    assert_int_equal(lock.asleep, 0);
    lock_acquire(&lock);
    lock_release(&lock);
}

/* ---- Ranks: planted faults, which only the debug build looks for ---- */

#if defined(SNUG_DEBUG)

struct pair {
    enum lock_rank first, second;
};

static void take_pair(void *argument)
{
    const struct pair *pair = argument;
    struct lock first, second;
    lock_init(&first, pair->first);
    lock_init(&second, pair->second);
    lock_acquire(&first);
    lock_acquire(&second);
}

TEST(a_wrong_order_is_found)
{
    for (unsigned first = 0; first < RANK_COUNT; first++)
        for (unsigned second = 0; second < RANK_COUNT; second++) {
            struct pair pair = {(enum lock_rank)first, (enum lock_rank)second};
            if (second > first)
                assert_succeeds(take_pair, &pair);
            else
                assert_aborts(take_pair, &pair, "held[rank] == 0 does not hold");
        }
}

static void release_unheld(void *argument)
{
    (void)argument;
    struct lock lock;
    lock_init(&lock, RANK_BIN);
    lock_release(&lock);
}

TEST(releasing_what_is_not_held_is_found)
{
    assert_aborts(release_unheld, NULL, "does not hold");
}

TEST(many_of_a_rank_are_allowed_for_fork)
{
    struct lock locks[3];
    lock_rank_allow_many(true);
    for (unsigned i = 0; i < 3; i++) {
        lock_init(&locks[i], RANK_BIN);
        lock_acquire(&locks[i]);
    }
    for (unsigned i = 0; i < 3; i++)
        lock_release(&locks[i]);
    lock_rank_allow_many(false);
    struct pair pair = {RANK_BIN, RANK_BIN};
    assert_aborts(take_pair, &pair, "held[rank] == 0 does not hold");
}

#endif

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(a_lock_is_held_by_one),
        ROW(a_static_lock_is_free),
        ROW(locks_of_rising_rank_are_taken_together),
        ROW(threads_exclude_each_other),
        ROW(who_waits_lets_the_holder_go_on),
        ROW(a_waiter_sleeps_and_is_woken),
        ROW(many_sleepers_seldom_look),
        ROW(a_free_lock_is_not_waited_for),
        ROW(the_forking_thread_holds_every_lock),
        ROW(other_threads_wait_for_the_forking_one),
        ROW(a_reset_frees_without_waking),
#if defined(SNUG_DEBUG)
        ROW(a_wrong_order_is_found),
        ROW(releasing_what_is_not_held_is_found),
        ROW(many_of_a_rank_are_allowed_for_fork),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
