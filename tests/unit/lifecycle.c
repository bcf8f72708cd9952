/*
 * Tests of heap/thread.c, heap/init.c and heap/fork.c: when a thread gets a cache and loses it,
 * what is left of it then, and a fork in the middle of everything.
 */
#include "heap_support.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "meta/meta.h"
#include "options/options.h"

/* Runs `body` in a thread and returns its result. */
static size_t in_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, body, argument), 0);
    pthread_join(thread, &result);
    return (size_t)result;
}

/* ---- Caches ---- */

/* How many blocks a thread takes before it has a cache; 1000 if it never gets one. */
static void *calls_before_cache(void *argument)
{
    (void)argument;
    size_t calls = 0;
    while (calls < 1000 && !cache_exists(thread_self.cache)) {
        heap_free(heap_alloc(64));
        calls += 2;
    }
    return (void *)calls;
}

TEST(a_thread_gets_a_cache_when_it_has_allocated_a_little)
{
    assert_in_range(in_thread(calls_before_cache, NULL), 2, 100);
    options.thread_cache = 0;
    assert_int_equal(in_thread(calls_before_cache, NULL), 1000);
    options_reset(NULL);
    options.check = CHECK_FULL;
    assert_int_equal(in_thread(calls_before_cache, NULL), 1000);
}

/* Of many threads most do little: such a one shares until it has shown that it does more. */
TEST(one_of_many_threads_gets_a_cache_later)
{
    uint32_t many = THREADS_OF_ARENA * heap_default.arenas.count;
    heap_default.arenas.threads += many;
    assert_in_range(in_thread(calls_before_cache, NULL), 200, 300);
    heap_default.arenas.shares = false;
    assert_in_range(in_thread(calls_before_cache, NULL), 2, 100);
    heap_default.arenas.shares = true;
    heap_default.arenas.threads -= many;
    assert_in_range(in_thread(calls_before_cache, NULL), 2, 100);
}

struct left {
    uint32_t threads;
    size_t magazine_bytes;
    size_t live;
};

static struct left what_is_left(void)
{
    struct heap_totals totals = heap_totals();
    return (struct left){heap_default.arenas.threads, heap_default.arenas.magazine_bytes,
                         totals.small_live + totals.cells_live};
}

static void *use_the_heap(void *argument)
{
    size_t failures = 0;
    uint64_t seed = (uint64_t)(uintptr_t)argument;
    char *blocks[100] = {NULL};
    for (unsigned turn = 0; turn < 5000; turn++) {
        size_t i = random_below(&seed, 100);
        heap_free(blocks[i]);
        size_t bytes = 1 + random_below(&seed, (size_t)1 << random_below(&seed, 15));
        blocks[i] = heap_alloc(bytes);
        failures += blocks[i] == NULL;
        blocks[i][0] = 1;
    }
    for (size_t i = 0; i < 100; i++)
        heap_free(blocks[i]);
    return (void *)failures;
}

TEST(the_end_of_a_thread_returns_everything)
{
    heap_free(block_get(64));
    struct left before = what_is_left();
    for (size_t i = 1; i <= 5; i++) {
        assert_int_equal(in_thread(use_the_heap, (void *)i), 0);
        struct left after = what_is_left();
        assert_int_equal(after.threads, before.threads);
        assert_int_equal(after.magazine_bytes, before.magazine_bytes);
        assert_int_equal(after.live, before.live);
        assert_heap_sound();
    }
}

TEST(many_threads_leave_no_metadata_behind)
{
    heap_trim(0);
    size_t used = meta_bytes_used();
    for (size_t i = 1; i <= 50; i++)
        in_thread(use_the_heap, (void *)(1 + i % 3));
    heap_trim(0);
    assert_int_equal(meta_bytes_used(), used);
}

/* ---- After a thread's end ---- */

static pthread_key_t late_key;
static size_t late_failures;

/* Runs after the cache is gone, as destructors of other libraries do. */
static void allocate_late(void *argument)
{
    static const size_t sizes[] = {16, 500, 5000, 300000};
    for (size_t i = 0; i < 400; i++) {
        char *block = heap_alloc(sizes[i % 4]);
        late_failures += block == NULL;
        block[0] = 1;
        block = heap_resize(block, sizes[i % 4] * 2);
        late_failures += block == NULL || block[0] != 1;
        heap_free(block);
    }
    if (!thread_self.ended) /* not gone yet: come again */
        pthread_setspecific(late_key, argument);
    else
        late_failures += cache_exists(thread_self.cache);
}

static void *arm_late_destructor(void *argument)
{
    pthread_setspecific(late_key, argument);
    return use_the_heap((void *)3);
}

TEST(a_thread_works_on_after_its_cache_is_gone)
{
    int argument;
    assert_int_equal(pthread_key_create(&late_key, allocate_late), 0);
    struct left before = what_is_left();
    late_failures = 0;
    assert_int_equal(in_thread(arm_late_destructor, &argument), 0);
    assert_int_equal(late_failures, 0);
    struct left after = what_is_left();
    assert_int_equal(after.threads, before.threads);
    assert_int_equal(after.magazine_bytes, before.magazine_bytes);
    assert_int_equal(after.live, before.live);
    assert_heap_sound();
    pthread_key_delete(late_key);
}

TEST(an_exiting_process_looks_at_its_magazines)
{
    for (unsigned i = 0; i < 100; i++)
        heap_free(block_get(64));
    assert_true(class_totals(class_of_size(64)).cached > 0);
    heap_exit();
    assert_int_equal(class_totals(class_of_size(64)).cached, 0);
    heap_free(block_get(64)); /* and goes on */
    assert_heap_sound();
}

TEST(a_second_start_changes_nothing)
{
    struct left before = what_is_left();
    uint64_t key = page_map.key;
    unsigned count = heap_default.arenas.count;
    heap_init();
    assert_true(page_map.key == key);
    assert_int_equal(heap_default.arenas.count, count);
    assert_int_equal(what_is_left().live, before.live);
}

/* ---- Fork ---- */

static size_t locks_held;

static void count_held(struct lock *lock)
{
    locks_held += __atomic_load_n(&lock->held, __ATOMIC_RELAXED) != 0;
}

static void each_arena_lock(void (*act)(struct lock *lock))
{
    for (enum lock_rank rank = 0; rank < RANK_COUNT; rank++)
        arenas_each_lock_of(&heap_default.arenas, rank, act);
}

static size_t held_now(void)
{
    locks_held = 0;
    count_held(heap_init_lock());
    count_held(&heap_default.arenas.lock);
    each_arena_lock(count_held);
    count_held(&heap_default.page_heap.purge_lock);
    count_held(&heap_default.page_heap.lock);
    count_held(&meta_system.lock);
    return locks_held;
}

static size_t lock_total;

static void count_lock(struct lock *lock)
{
    (void)lock;
    lock_total++;
}

TEST(every_lock_is_held_while_the_process_forks)
{
    heap_free(block_get(64));
    heap_free(block_get(5000));
    lock_total = 5;
    each_arena_lock(count_lock);
    assert_int_equal(held_now(), 0);
    heap_fork_before();
    size_t held = held_now();
    heap_fork_in_parent();
    assert_int_equal(held, lock_total);
    assert_int_equal(held_now(), 0);
    assert_heap_sound();
}

/* Handlers of other libraries may allocate in between; also what nobody has used before. */
static void use_while_forking(void (*after)(void))
{
    heap_fork_before();
    for (size_t bytes = 16; bytes < 3 * MIB; bytes += 16 + bytes / 4)
        for (unsigned i = 0; i < 20; i++) {
            char *block = heap_alloc(bytes);
            CHILD_CHECK(block != NULL);
            block[0] = 1;
            block = heap_resize(block, bytes + bytes / 2);
            CHILD_CHECK(block != NULL && block[0] == 1);
            heap_free(block);
        }
    after();
    CHILD_CHECK(held_now() == 0);
    CHILD_CHECK(heap_check() == NULL);
}

static void use_before_and_after(void *argument)
{
    (void)argument;
    use_while_forking(heap_fork_in_parent);
    use_while_forking(heap_fork_in_parent);
    use_while_forking(heap_fork_in_child);
    CHILD_CHECK(use_the_heap((void *)5) == NULL);
    CHILD_CHECK(heap_check() == NULL);
}

TEST(the_forking_thread_can_use_the_heap)
{
    assert_succeeds(use_before_and_after, NULL);
}

static void use_in_child(void *argument)
{
    (void)argument;
    CHILD_CHECK(held_now() == 0);
    CHILD_CHECK(heap_default.arenas.threads == (cache_exists(thread_self.cache) ? 1 : 0));
    CHILD_CHECK(use_the_heap((void *)5) == NULL);
    CHILD_CHECK(heap_check() == NULL);
    CHILD_CHECK(heap_trim(0) > 0);
    CHILD_CHECK(heap_check() == NULL);
}

static uint32_t stop;

static void *use_until_stopped(void *argument)
{
    size_t failures = 0;
    while (__atomic_load_n(&stop, __ATOMIC_RELAXED) == 0)
        failures += (size_t)use_the_heap(argument);
    return (void *)failures;
}

TEST(a_child_of_a_busy_process_has_a_sound_heap)
{
    pthread_t threads[2];
    stop = 0;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_until_stopped, (void *)(i + 7)), 0);
    for (unsigned i = 0; i < 20; i++)
        assert_succeeds(use_in_child, NULL);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < 2; i++) {
        void *failures;
        pthread_join(threads[i], &failures);
        assert_null(failures);
    }
    assert_heap_sound();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(the_forking_thread_can_use_the_heap), /* the first: all sizes are new */
        ROW(a_thread_gets_a_cache_when_it_has_allocated_a_little),
        ROW(one_of_many_threads_gets_a_cache_later),
        ROW(the_end_of_a_thread_returns_everything),
        ROW(many_threads_leave_no_metadata_behind),
        ROW(a_thread_works_on_after_its_cache_is_gone),
        ROW(an_exiting_process_looks_at_its_magazines),
        ROW(a_second_start_changes_nothing),
        ROW(every_lock_is_held_while_the_process_forks),
        ROW(a_child_of_a_busy_process_has_a_sound_heap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
