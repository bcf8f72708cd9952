/*
 * Tests of stats/: counters add up, among threads too.
 */
#include "support.h"

#include <pthread.h>

#include "stats/stats.h"

TEST(a_counter_counts_itself_only)
{
    struct counters before = counters_read(NULL, &tallies);
#define COUNTER(name, text) \
    COUNT(name, 3); \
    COUNT(name, 0); \
    assert_int_equal(COUNTED(name), before.name + 3);
#include "stats/counters.def"
#undef COUNTER
}

/* Threads: of those without a tally some share one. */
enum { THREADS = 8, MOST = 8 * TALLIES_SHARED, TURNS = 2000000 };

static pthread_barrier_t begin;

/* The shared tally of whoever came first. */
static struct tally *chosen;

struct counting {
    pthread_t thread;
    bool own;     /* it has a tally of its own */
    bool counted; /* it had, or the chosen one */
};

static void *count(void *argument)
{
    struct counting *counting = argument;
    struct tally *nobody = NULL;
    if (counting->own)
        tally_begin();
    else
        tally_spread();
    if (!counting->own)
        __atomic_compare_exchange_n(&chosen, &nobody, tally_shared(), false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
    pthread_barrier_wait(&begin);
    counting->counted = counting->own || tally_shared() == chosen;
    for (unsigned i = 0; counting->counted && i < TURNS; i++) {
        COUNT(refills, 1);
        COUNT(purge_bytes, 4096);
    }
    tally_end();
    return NULL;
}

TEST(no_thread_is_lost)
{
    static struct counting all[MOST];
    uint64_t refills = COUNTED(refills), bytes = COUNTED(purge_bytes), counted = 0, shared = 0;
    pthread_attr_t small;
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, 64 * 1024), 0);
    assert_int_equal(pthread_barrier_init(&begin, NULL, MOST), 0);
    for (unsigned i = 0; i < MOST; i++) {
        all[i].own = i < THREADS;
        assert_int_equal(pthread_create(&all[i].thread, &small, count, &all[i]), 0);
    }
    for (unsigned i = 0; i < MOST; i++) {
        pthread_join(all[i].thread, NULL);
        counted += all[i].counted;
        shared += all[i].counted && !all[i].own;
    }
    assert_true(shared >= 2);
    assert_int_equal(COUNTED(refills) - refills, counted * TURNS);
    assert_int_equal(COUNTED(purge_bytes) - bytes, counted * TURNS * 4096);
}

TEST(a_tally_is_of_one_thread_at_a_time)
{
    tally_begin();
    struct tally *first = tally_own;
    assert_non_null(first);
    assert_in_range(first - tallies.own, 0, TALLIES - 1);
    tally_begin();
    assert_ptr_equal(tally_own, first);
    tally_own = NULL; /* as another thread would be */
    tally_begin();
    assert_ptr_not_equal(tally_own, first);
    tally_end();
    tally_own = first;
    uint64_t flushes = COUNTED(flushes);
    COUNT(flushes, 5);
    tally_end();
    assert_null(tally_own);
    assert_int_equal(COUNTED(flushes), flushes + 5);
    tally_begin();
    assert_ptr_equal(tally_own, first); /* which goes on with what it had */
    assert_int_equal(COUNTED(flushes), flushes + 5);
    tally_end();
}

TEST(who_gets_no_tally_counts_all_the_same)
{
    struct tally *own[TALLIES];
    for (size_t i = 0; i < TALLIES; i++) {
        tally_own = NULL;
        tally_begin();
        own[i] = tally_own;
        assert_non_null(own[i]);
        assert_in_range(own[i] - tallies.own, 0, TALLIES - 1);
        assert_true(i == 0 || own[i] != own[i - 1]);
    }
    tally_own = NULL;
    tally_begin();
    assert_null(tally_own);
    uint64_t flushes = COUNTED(flushes), shared = tally_shared()->counters.flushes;
    COUNT(flushes, 2);
    assert_int_equal(COUNTED(flushes), flushes + 2);
    assert_int_equal(tally_shared()->counters.flushes, shared + 2);
    /* A child has the thread that forked, and no other. */
    tally_own = own[7];
    tally_keep_own();
    for (size_t i = 0; i < TALLIES - 1; i++) {
        tally_own = NULL;
        tally_begin();
        assert_non_null(tally_own);
        assert_ptr_not_equal(tally_own, own[7]);
    }
    tally_own = NULL;
    tally_begin();
    assert_null(tally_own);
    tally_keep_own();
}

enum { MANY = 512 };

static struct tally *shared_by[MANY];

static void *note_shared(void *place)
{
    tally_spread();
    *(struct tally **)place = tally_shared();
    pthread_barrier_wait(&begin); /* all at once, or the next would have the same address */
    return NULL;
}

/* Of so many threads none has more than a few times its part, whatever their addresses are. */
TEST(threads_without_a_tally_are_spread_over_the_shared_ones)
{
    static pthread_t threads[MANY];
    size_t users[TALLIES_SHARED] = {0};
    pthread_attr_t small;
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, 64 * 1024), 0);
    assert_int_equal(pthread_barrier_init(&begin, NULL, MANY), 0);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(pthread_create(&threads[i], &small, note_shared, &shared_by[i]), 0);
    for (size_t i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < MANY; i++) {
        assert_in_range(shared_by[i] - tallies.shared, 0, TALLIES_SHARED - 1);
        users[shared_by[i] - tallies.shared]++;
    }
    for (size_t i = 0; i < TALLIES_SHARED; i++)
        ASSERT_THAT(users[i] <= 4 * MANY / TALLIES_SHARED, "%zu of %d share %zu", users[i], MANY,
                    i);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(a_counter_counts_itself_only),
        ROW(no_thread_is_lost),
        ROW(a_tally_is_of_one_thread_at_a_time),
        ROW(who_gets_no_tally_counts_all_the_same),
        ROW(threads_without_a_tally_are_spread_over_the_shared_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
