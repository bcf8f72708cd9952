/*
 * Tests of magazine/cache_totals.c: what waits in a thread's magazines is known to other threads,
 * at every moment about and, when the thread rests, exactly.
 */
#include "cache_support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { BLOCKS = 3000 };

/* How many objects of a class are in the magazines of `of`, by looking at them as only its thread
 * may. */
static size_t count_by_owner(const struct cache *of, size_t class)
{
    size_t count;
    const struct magazine *loaded = loaded_anywhere(of, class, &count);
    if (loaded != NULL && class < CLASS_COUNT && loaded->link != NULL)
        count += loaded->link->count;
    return count + (of->newest != 0 && of->newest_class == class);
}

static void assert_counts_right(const struct cache *of)
{
    for (size_t class = 1; class < CLASS_COUNT; class++)
        assert_int_equal(cache_count(NULL, of, class), count_by_owner(of, class));
}

TEST(every_step_of_a_magazine_is_seen)
{
    static uintptr_t objects[BLOCKS];
    static const size_t classes[] = {1, 4, 17, 64};
    for (size_t c = 0; c < 4; c++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            objects[i] = object_get(cache, classes[c]);
            assert_int_equal(cache_count(NULL, cache, classes[c]),
                             count_by_owner(cache, classes[c]));
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            object_put(cache, objects[i]);
            assert_int_equal(cache_count(NULL, cache, classes[c]),
                             count_by_owner(cache, classes[c]));
        }
        assert_true(cache_count(NULL, cache, classes[c]) > 0);
    }
    assert_counts_right(cache);
    cache_flush(cache);
    assert_counts_right(cache);
    for (size_t class = 0; class < CLASS_COUNT; class++)
        assert_int_equal(cache_count(NULL, cache, class), 0);
}

TEST(cells_are_known_exactly)
{
    struct misuse misuse;
    size_t dirty;
    static uintptr_t blocks[400];
    for (size_t size = 1100; size < 30000; size += size / 7) {
        for (size_t i = 0; i < 400; i++) {
            blocks[i] =
                (uintptr_t)arenas_alloc_cell(&arenas, size, MIN_ALIGN, CELLS_NEW, &misuse, &dirty);
            assert_true(blocks[i] != 0);
        }
        for (size_t i = 0; i < 400; i++)
            cache_free_cell(cache, blocks[i]);
        struct cached_cells seen = cache_cells(NULL, cache), exact = {0, 0};
        for (size_t i = 0; i < 400; i++)
            if (page_map_is_cell(blocks[i]) && cell_of(blocks[i])->state == CELL_CACHED) {
                exact.count++;
                exact.bytes += cell_of(blocks[i])->units * CELL_UNIT;
            }
        assert_true(exact.count > 0);
        assert_int_equal(seen.count, exact.count);
        assert_int_equal(seen.bytes, exact.bytes);
        cache_flush(cache);
    }
    assert_counts_right(cache);
}

/* ---- Seen by another thread ---- */

static atomic_int turn;
static struct cache *worker;

static void wait_for(int wanted)
{
    while (atomic_load(&turn) < wanted)
        sched_yield();
}

static void *work(void *argument)
{
    static uintptr_t objects[BLOCKS];
    (void)argument;
    worker = cache_new(&arenas, false);
    for (unsigned round = 0; round < 60; round++) {
        for (size_t i = 0; i < BLOCKS; i++)
            objects[i] = object_get(worker, 4);
        for (size_t i = 0; i < BLOCKS; i++)
            object_put(worker, objects[i]);
        if (round == 0)
            atomic_store(&turn, 1);
    }
    atomic_store(&turn, 2);
    wait_for(3);
    cache_free(worker);
    return NULL;
}

TEST(another_thread_counts_without_a_lock)
{
    pthread_t thread;
    atomic_store(&turn, 0);
    assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
    wait_for(1);
    /* While it works, the number is one that two magazines can have. */
    while (atomic_load(&turn) == 1)
        assert_in_range(cache_count(NULL, worker, 4), 0, 2 * MAGAZINE_SLOTS_MOST);
    assert_counts_right(worker);
    assert_true(cache_count(NULL, worker, 4) > 0);
    atomic_store(&turn, 3);
    pthread_join(thread, NULL);
    assert_int_equal(cache_count(NULL, worker, 4), 0);
}

/* ---- Of another process, as far as this can be one ---- */

static size_t reads;

static bool read_here(void *context, uintptr_t address, void *value, size_t bytes)
{
    reads++;
    memcpy(value, (const void *)address, bytes);
    return context == NULL;
}

TEST(a_reader_of_its_own_is_asked_for_every_word)
{
    object_put(cache, object_get(cache, 4));
    struct peek peek = {.read = read_here};
    reads = 0;
    assert_int_equal(cache_count(&peek, cache, 4), cache_count(NULL, cache, 4));
    assert_int_equal(reads, 3);
    assert_false(peek.failed);
    struct arena_totals there = arenas_totals(&peek, &arenas, 4);
    struct arena_totals here = arenas_totals(NULL, &arenas, 4);
    assert_memory_equal(&there, &here, sizeof(here));
}

TEST(a_reader_that_fails_is_not_asked_again)
{
    struct peek peek = {.read = read_here, .context = &peek};
    reads = 0;
    assert_int_equal(cache_count(&peek, cache, 4), 0);
    cache_cells(&peek, cache);
    arenas_cell_totals(&peek, &arenas);
    assert_true(peek.failed);
    assert_int_equal(reads, 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(every_step_of_a_magazine_is_seen, cache_begin, cache_end),
        ROW_WITH(cells_are_known_exactly, cache_begin, cache_end),
        ROW_WITH(another_thread_counts_without_a_lock, cache_begin, cache_end),
        ROW_WITH(a_reader_of_its_own_is_asked_for_every_word, cache_begin, cache_end),
        ROW_WITH(a_reader_that_fails_is_not_asked_again, cache_begin, cache_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
