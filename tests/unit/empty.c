/*
 * Tests of heap/empty.h: blocks of size zero, by the library's own functions.
 */
#include "heap_support.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap/empty.h"
#include "heap/thread.h"
#include "options/options.h"
#include "snug/snug.h"

enum { RANGE_BLOCKS = 65536, MORE = 1000 };

static void *blocks[RANGE_BLOCKS + MORE];

/* How a child ends that touches the byte. */
static int signal_of_touching(volatile char *byte, bool writes)
{
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        if (writes)
            *byte = 1;
        else
            (void)*byte;
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(nobody_can_use_them)
{
    void *few[] = {snug_malloc(0),
                   snug_calloc(0, 8),
                   snug_calloc(8, 0),
                   snug_realloc(NULL, 0),
                   snug_reallocarray(NULL, 0, 7),
                   snug_aligned_alloc(16, 0)};
    for (size_t i = 0; i < 6; i++) {
        assert_non_null(few[i]);
        assert_int_equal((uintptr_t)few[i] % 16, 0);
        assert_int_equal(snug_malloc_usable_size(few[i]), 0);
        assert_int_equal(signal_of_touching(few[i], false), SIGSEGV);
        assert_int_equal(signal_of_touching(few[i], true), SIGSEGV);
        for (size_t j = 0; j < i; j++)
            assert_ptr_not_equal(few[i], few[j]);
    }
    for (size_t i = 0; i < 6; i++)
        snug_free(few[i]);
    assert_int_equal(snug_check(), 0);
}

/* Nor a look at all heaps that there are, for which their list is locked. */
TEST(their_free_waits_for_nobody)
{
    snug_heap *heap = snug_heap_create(NULL);
    void *block = snug_malloc(0);
    lock_acquire(&heaps_lock);
    alarm(20); /* if it waits for that */
    snug_free(block);
    alarm(0);
    lock_release(&heaps_lock);
    snug_heap_destroy(heap);
}

TEST(they_can_be_resized)
{
    void *block = snug_malloc(0);
    char *bytes = snug_realloc(block, 100);
    assert_non_null(bytes);
    memset(bytes, 1, 100);
    assert_false(empty_covers((uintptr_t)bytes));
    assert_int_equal(empty_misuse((uintptr_t)block).kind, MISUSE_DOUBLE_FREE); /* it is free */
    snug_free(bytes);
    assert_null(snug_realloc(snug_malloc(0), 0));
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return x < y ? -1 : x > y;
}

/* How many requests are ordinary, or the first that is none, when one of the range is free. */
static size_t requests_until_found(void)
{
    static void *ordinary[RANGE_BLOCKS];
    size_t count = 0;
    while (!empty_covers((uintptr_t)(ordinary[count++] = snug_malloc(0))))
        assert_true(count < RANGE_BLOCKS);
    for (size_t i = 0; i + 1 < count; i++)
        snug_free(ordinary[i]);
    return count;
}

/* Each request would look through all of the range for a block that hardly ever is there. */
TEST(where_there_are_nearly_too_many_nobody_looks_far)
{
    enum { TIMES = 50, APART = 1237 };
    size_t requests = 0;
    for (size_t i = 0; i < RANGE_BLOCKS; i++)
        blocks[i] = snug_malloc(0);
    for (size_t i = 0; i < TIMES; i++) {
        snug_free(blocks[i * APART]);
        requests += requests_until_found(); /* which has the same address */
    }
    assert_true(requests > (size_t)8 * TIMES);
    for (size_t i = 0; i < RANGE_BLOCKS; i++)
        snug_free(blocks[i]);
}

TEST(where_there_are_too_many_they_are_ordinary)
{
    size_t ordinary = 0, count = RANGE_BLOCKS + MORE;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = snug_malloc(0);
        assert_non_null(blocks[i]);
        ordinary += !empty_covers((uintptr_t)blocks[i]);
    }
    assert_true(ordinary >= MORE && ordinary <= MORE + RANGE_BLOCKS / 64);
    qsort(blocks, count, sizeof(*blocks), by_address);
    for (size_t i = 1; i < count; i++)
        assert_ptr_not_equal(blocks[i], blocks[i - 1]);
    for (size_t i = 0; i < count; i++)
        snug_free(blocks[i]);
    void *again = snug_malloc(0);
    assert_true(empty_covers((uintptr_t)again));
    snug_free(again);
}

TEST(an_address_is_not_given_again_soon)
{
    void *block = snug_malloc(0);
    snug_free(block);
    for (size_t i = 0; i < 1000; i++) {
        void *other = snug_malloc(0);
        assert_ptr_not_equal(other, block);
        snug_free(other);
    }
}

/* There the page heap would be locked for each. */
TEST(hardly_any_begins_where_large_blocks_do)
{
    enum { FEW = RANGE_BLOCKS * 63 / 64 };
    size_t at_pages = 0;
    for (size_t i = 0; i < FEW; i++) {
        blocks[i] = snug_malloc(0);
        at_pages += (uintptr_t)blocks[i] % PAGE_BYTES == 0;
    }
    for (size_t i = 0; i < FEW; i++)
        snug_free(blocks[i]);
    assert_int_equal(at_pages, 0);
}

enum { THREADS = 8, LINE_BLOCKS = 64 * 8 }; /* what the bits in one line of a cache stand for */

static pthread_barrier_t all_have_one;

static void *take_one(void *block)
{
    *(void **)block = snug_malloc(0);
    pthread_barrier_wait(&all_have_one); /* so that no two have the same stack */
    return NULL;
}

/* Threads that take and free many would wait for each other's lines. */
TEST(threads_begin_apart)
{
    pthread_t threads[THREADS];
    size_t apart = 0, pairs = THREADS * (THREADS - 1) / 2;
    assert_int_equal(pthread_barrier_init(&all_have_one, NULL, THREADS), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_one, &blocks[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    qsort(blocks, THREADS, sizeof(*blocks), by_address);
    for (size_t i = 0; i < THREADS; i++)
        for (size_t j = 0; j < i; j++)
            apart += (uintptr_t)blocks[i] - (uintptr_t)blocks[j] >= LINE_BLOCKS * MIN_ALIGN;
    for (size_t i = 0; i < THREADS; i++)
        snug_free(blocks[i]);
    pthread_barrier_destroy(&all_have_one);
    assert_true(apart >= pairs * 3 / 4);
}

static void assert_act_says(void (*act)(void *block), void *block, const char *format,
                            size_t address)
{
    char line[128];
    snprintf(line, sizeof(line), format, address, address - 3);
    stderr_capture();
    act(block);
    assert_string_equal(stderr_restore(), line);
}

static void resize(void *block)
{
    assert_null(snug_realloc(block, 10));
}

TEST(wrong_frees_are_said)
{
    options.misuse = MISUSE_WARN;
    volatile size_t none = 0; /* of a plain 0 compilers warn */
    char *block = snug_malloc(none);
    assert_act_says(snug_free, block + 3,
                    "snug: invalid free: %#zx is inside a 0-byte object that starts at %#zx\n",
                    (size_t)block + 3);
    assert_act_says(resize, block + 3,
                    "snug: invalid realloc: %#zx is inside a 0-byte object that starts at %#zx\n",
                    (size_t)block + 3);
    assert_act_says(snug_free, block, "", 0);
    assert_act_says(snug_free, block, "snug: invalid free: %#zx is in free memory\n",
                    (size_t)block);
    assert_act_says(resize, block, "snug: invalid realloc: %#zx is in free memory\n",
                    (size_t)block);
    options.misuse = MISUSE_ABORT;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(nobody_can_use_them),
        ROW(their_free_waits_for_nobody),
        ROW(they_can_be_resized),
        ROW(where_there_are_nearly_too_many_nobody_looks_far),
        ROW(where_there_are_too_many_they_are_ordinary),
        ROW(an_address_is_not_given_again_soon),
        ROW(hardly_any_begins_where_large_blocks_do),
        ROW(threads_begin_apart),
        ROW(wrong_frees_are_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
