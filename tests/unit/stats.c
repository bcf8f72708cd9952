/*
 * Tests of stats/: counters add up, among threads too.
 */
#include "support.h"

#include <pthread.h>

#include "stats/stats.h"

TEST(a_counter_counts_itself_only)
{
    struct counters before = counters;
#define COUNTER(name, text) \
    COUNT(name, 3); \
    COUNT(name, 0); \
    assert_int_equal(COUNTED(name), before.name + 3);
#include "stats/counters.def"
#undef COUNTER
}

enum { THREADS = 4, TURNS = 10000 };

static void *count(void *argument)
{
    for (unsigned i = 0; i < TURNS; i++) {
        COUNT(refills, 1);
        COUNT(purge_bytes, 4096);
    }
    return argument;
}

TEST(no_thread_is_lost)
{
    uint64_t refills = COUNTED(refills), bytes = COUNTED(purge_bytes);
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(COUNTED(refills) - refills, THREADS * TURNS);
    assert_int_equal(COUNTED(purge_bytes) - bytes, (uint64_t)THREADS * TURNS * 4096);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(a_counter_counts_itself_only),
        ROW(no_thread_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
