/*
 * Tests of magazine/shared.h: the caches of processors.
 *
 * There is one arena, and so one such cache, but where it is said. A second thread waits all the
 * time, or the process would have one thread only, which shares nothing.
 */
#include "magazine/shared.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "cache_support.h"
#include "options/options.h"
#include "stats/stats.h"

enum { CLASS = 4 /* 64 bytes */ };

static pthread_mutex_t waiting = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_the_end(void *argument)
{
    pthread_mutex_lock(&waiting);
    return argument;
}

static int shared_begin(void **state)
{
    int result = arenas_begin(state);
    options.misuse = MISUSE_WARN;
    arenas.shares = true;
    return result;
}

static int shared_end(void **state)
{
    shared_do_all(&arenas, SHARED_FLUSH);
    assert_arenas_empty();
    return page_heap_end(state);
}

static struct shared *shared_of(unsigned index)
{
    return &arenas.list[index]->shared;
}

static size_t waits(void)
{
    return shared_of(0)->cache == NULL ? 0 : cache_count(NULL, shared_of(0)->cache, CLASS);
}

static uintptr_t get(void)
{
    uintptr_t object = (uintptr_t)shared_alloc(&arenas, CLASS);
    assert_true(object != 0);
    assert_int_equal(*object_key_word(object), 0);
    return object;
}

static void *put_by_another(void *object)
{
    return (void *)(uintptr_t)(shared_put(&arenas, (uintptr_t)object, CLASS, false) == SHARED_PUT);
}

TEST(what_one_thread_puts_another_takes)
{
    uintptr_t object = get();
    pthread_t other;
    void *was_put;
    assert_int_equal(pthread_create(&other, NULL, put_by_another, (void *)object), 0);
    pthread_join(other, &was_put);
    assert_non_null(was_put);
    assert_int_equal(*object_key_word(object), object_key(object));
    size_t before = waits();
    assert_int_equal(get(), object);
    assert_int_equal(waits(), before - 1);
    assert_int_equal(shared_put(&arenas, object, CLASS, false), SHARED_PUT);
    assert_null(shared_do_all(&arenas, SHARED_CHECK));
}

/* It belongs to no thread: none is counted, and what threads may hold is theirs. */
TEST(it_has_a_bound_of_its_own)
{
    enum { LIVE = 4000, CLASSES = 32 };
    static uintptr_t live[LIVE];
    options.processor_cache = 64 * KIB;
    size_t most = 0;
    for (size_t i = 0; i < LIVE; i++) {
        live[i] = (uintptr_t)shared_alloc(&arenas, 1 + i % CLASSES);
        most = size_max(most, shared_of(0)->cache->held_bytes);
    }
    for (size_t i = 0; i < LIVE; i++) {
        if (shared_put(&arenas, live[i], 1 + i % CLASSES, false) != SHARED_PUT)
            object_free(live[i]);
        most = size_max(most, shared_of(0)->cache->held_bytes);
    }
    ASSERT_THAT(most > 32 * KIB && most <= 64 * KIB, "%zu bytes", most);
    assert_int_equal(arenas.magazine_bytes, 0);
    assert_int_equal(arenas.threads, 0);
}

TEST(only_what_waits_is_popped)
{
    assert_null(shared_pop(&arenas, CLASS));
    assert_int_equal(arenas_totals(NULL, &arenas, CLASS).slabs, 0);
    uintptr_t object = get();
    size_t before = waits();
    assert_true(before > 0);
    uintptr_t popped[64];
    for (size_t i = 0; i < before; i++) {
        popped[i] = (uintptr_t)shared_pop(&arenas, CLASS);
        assert_int_equal(*object_key_word(popped[i]), 0);
    }
    assert_int_equal(waits(), 0);
    assert_null(shared_pop(&arenas, CLASS));
    while (before > 0)
        object_free(popped[--before]);
    object_free(object);
}

/* A thread's newest carries its key when it goes on. */
TEST(what_a_thread_has_no_magazine_for_waits_here)
{
    uintptr_t objects[2] = {get(), get()};
    struct cache *own = cache_new(&arenas, false);
    options.thread_cache = 0;
    size_t before = waits();
    assert_true(cache_put_slow(own, objects[0], CLASS));
    assert_int_equal(waits(), before);
    assert_true(cache_put_slow(own, objects[1], CLASS));
    assert_int_equal(waits(), before + 1);
    assert_int_equal(*object_key_word(objects[0]), object_key(objects[0]));
    assert_int_equal((uintptr_t)shared_pop(&arenas, CLASS), objects[0]);
    object_free(objects[0]);
    options.thread_cache = MIB;
    cache_free(own);
}

TEST(while_somebody_has_it_the_slabs_serve)
{
    uintptr_t first = get();
    struct shared *shared = shared_of(0);
    size_t before = waits();
    shared->holder = 1;
    uintptr_t object = get();
    assert_true(object != first);
    assert_int_equal(shared_put(&arenas, object, CLASS, false), SHARED_NO_ROOM);
    shared_do_all(&arenas, SHARED_FLUSH);
    assert_int_equal(waits(), before);
    assert_int_equal(shared->holder, 1);
    shared->holder = 0;
    object_free(object);
    object_free(first);
}

TEST(nothing_is_shared_where_it_is_not_asked_for)
{
    arenas.shares = false;
    uintptr_t object = get();
    assert_int_equal(shared_put(&arenas, object, CLASS, false), SHARED_NO_ROOM);
    assert_null(shared_of(0)->cache);
    object_free(object);
}

TEST(what_is_wrong_is_refused_and_not_written)
{
    uintptr_t object = get();
    memset((void *)object, 0x33, 64);
    assert_int_equal(shared_put(&arenas, object + 16, CLASS, false), SHARED_REFUSED);
    assert_int_equal(*object_key_word(object), 0x3333333333333333);
    uintptr_t between = get();
    assert_int_equal(shared_put(&arenas, object, CLASS, false), SHARED_PUT);
    assert_int_equal(shared_put(&arenas, object, CLASS, false), SHARED_REFUSED);
    assert_int_equal(shared_put(&arenas, between, CLASS, false), SHARED_PUT);
    assert_int_equal(shared_put(&arenas, object, CLASS, false), SHARED_REFUSED);
}

/* The slabs know of an object that waits here only that it is not with them. */
TEST(a_second_free_that_comes_to_the_slabs_is_said)
{
    char line[128];
    uintptr_t object = get();
    assert_int_equal(shared_put(&arenas, object, CLASS, false), SHARED_PUT);
    stderr_capture();
    object_free(object);
    snprintf(line, sizeof(line), "snug: double free: %#zx, a 64-byte object\n", object);
    assert_string_equal(stderr_restore(), line);
    assert_int_equal(get(), object);
    object_free(object);
}

/* The program's own handler need not return, and may allocate. */
static jmp_buf before_report;
static uintptr_t taken_in_report;

static void jump(const struct misuse_report *report)
{
    assert_int_equal(report->misuse->kind, MISUSE_DOUBLE_FREE);
    assert_int_equal(shared_of(0)->holder, 0);
    taken_in_report = get();
    longjmp(before_report, 1);
}

TEST(a_handler_that_jumps_out_leaves_it_for_others)
{
    uintptr_t object = get();
    assert_int_equal(shared_put(&arenas, object, CLASS, false), SHARED_PUT);
    shared_do_all(&arenas, SHARED_FLUSH);
    *object_key_word(object) = 0; /* so that only the slab tells */
    assert_int_equal(shared_put(&arenas, object, CLASS, false), SHARED_PUT);
    misuse_set_listener(jump);
    taken_in_report = 0;
    if (setjmp(before_report) == 0)
        shared_do_all(&arenas, SHARED_FLUSH);
    misuse_set_listener(NULL);
    assert_true(taken_in_report != 0);
    assert_int_equal(shared_put(&arenas, taken_in_report, CLASS, false), SHARED_PUT);
}

TEST(a_tick_takes_what_nobody_used)
{
    object_free(get());
    size_t before = waits();
    assert_true(before > 0);
    shared_do_all(&arenas, SHARED_TICK);
    assert_int_equal(waits(), before); /* it was used until then */
    shared_do_all(&arenas, SHARED_TICK);
    assert_int_equal(waits(), 0);
    assert_int_equal(shared_of(0)->cache->held_bytes, 0);
    assert_int_equal(shared_put(&arenas, get(), CLASS, false), SHARED_PUT);
    assert_true(waits() > 0);
}

TEST(a_write_to_what_waits_is_found)
{
    uintptr_t object = get();
    assert_int_equal(shared_put(&arenas, object, CLASS, false), SHARED_PUT);
    assert_null(shared_do_all(&arenas, SHARED_CHECK));
    uint64_t key = *object_key_word(object);
    *object_key_word(object) = 5;
    assert_non_null(shared_do_all(&arenas, SHARED_CHECK));
    stderr_capture();
    shared_do_all(&arenas, SHARED_INSPECT);
    assert_contains(stderr_restore(), "use after free");
    assert_int_equal(*object_key_word(object), key); /* it is said once */
    assert_int_equal(waits(), 0);
}

/* In a child of fork. */
TEST(a_child_keeps_what_its_thread_has_and_no_other)
{
    uintptr_t object = get();
    assert_int_equal(shared_put(&arenas, object, CLASS, false), SHARED_PUT);
    struct shared *shared = shared_of(0);
    struct cache *former = shared->cache;
    shared->holder = (uintptr_t)&thread_self; /* it forks in the middle, as in a signal handler */
    caches_orphan();
    arenas_orphan(&arenas, arenas_end_orphans);
    shared_orphan(&arenas, arenas_end_orphans);
    assert_ptr_equal(shared->cache, former);
    assert_false(cache_is_orphan(former));
    assert_int_equal(arenas.threads, 0);
    shared->holder = 1; /* another thread does */
    caches_orphan();
    arenas_orphan(&arenas, arenas_end_orphans);
    shared_orphan(&arenas, arenas_end_orphans);
    assert_null(shared->cache);
    assert_int_equal(shared->holder, 0);
    assert_true(cache_is_orphan(former));
    assert_non_null(arenas.end_orphans); /* though no thread had one of its own */
    arenas_end_orphans(&arenas);
    assert_int_equal(former->held_bytes, 0);
    assert_int_equal(arenas_totals(NULL, &arenas, CLASS).free,
                     arenas_totals(NULL, &arenas, CLASS).total);
    assert_true(get() != 0); /* in a new one, or that one anew */
    assert_non_null(shared->cache);
    arenas_empty_depots(&arenas, CLASS);
    object_free(object);
}

/* ---- Many threads ---- */

enum { THREADS = 8, TURNS = 40000, EACH = 40 };

static size_t wrong;

static void *take_and_put(void *number)
{
    uint64_t seed = 1 + (uintptr_t)number;
    uintptr_t own[EACH] = {0};
    for (size_t turn = 0; turn < TURNS; turn++) {
        uintptr_t *slot = &own[random_below(&seed, EACH)];
        if (*slot != 0) {
            /* Nobody else has had it. */
            if (((uintptr_t *)*slot)[1] != (uintptr_t)slot)
                __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
            if (shared_put(&arenas, *slot, CLASS, false) != SHARED_PUT)
                object_free(*slot);
            *slot = 0;
        } else {
            *slot = (uintptr_t)shared_alloc(&arenas, CLASS);
            ((uintptr_t *)*slot)[1] = (uintptr_t)slot;
        }
    }
    for (size_t i = 0; i < EACH; i++)
        if (own[i] != 0 && shared_put(&arenas, own[i], CLASS, false) != SHARED_PUT)
            object_free(own[i]);
    return NULL;
}

static int two_begin(void **state)
{
    int result = two_arenas_begin(state);
    arenas.shares = true;
    arenas.threads = 2; /* by processor from now on */
    return result;
}

static int two_end(void **state)
{
    arenas.threads = 0;
    return shared_end(state);
}

TEST(no_object_is_two_threads)
{
    pthread_t threads[THREADS];
    wrong = 0;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_put, (void *)i), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
    assert_null(shared_do_all(&arenas, SHARED_CHECK));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(what_one_thread_puts_another_takes, shared_begin, shared_end),
        ROW_WITH(it_has_a_bound_of_its_own, shared_begin, shared_end),
        ROW_WITH(only_what_waits_is_popped, shared_begin, shared_end),
        ROW_WITH(what_a_thread_has_no_magazine_for_waits_here, shared_begin, shared_end),
        ROW_WITH(while_somebody_has_it_the_slabs_serve, shared_begin, shared_end),
        ROW_WITH(nothing_is_shared_where_it_is_not_asked_for, shared_begin, shared_end),
        ROW_WITH(what_is_wrong_is_refused_and_not_written, shared_begin, shared_end),
        ROW_WITH(a_second_free_that_comes_to_the_slabs_is_said, shared_begin, shared_end),
        ROW_WITH(a_handler_that_jumps_out_leaves_it_for_others, shared_begin, shared_end),
        ROW_WITH(a_tick_takes_what_nobody_used, shared_begin, shared_end),
        ROW_WITH(a_write_to_what_waits_is_found, shared_begin, shared_end),
        ROW_WITH(a_child_keeps_what_its_thread_has_and_no_other, shared_begin, shared_end),
        ROW_WITH(no_object_is_two_threads, two_begin, two_end),
    };
    pthread_t other;
    pthread_mutex_lock(&waiting);
    if (pthread_create(&other, NULL, wait_for_the_end, NULL) != 0)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pthread_mutex_unlock(&waiting);
    pthread_join(other, NULL);
    return failed;
}
