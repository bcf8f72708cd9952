/*
 * Tests of magazine/orphans.c: what a child of fork takes back from the caches of threads that it
 * does not have. Here the thread is this one, and the caches are called orphans without a fork.
 */
#include "cache_support.h"

#include "cell_calls.h"
#include "platform/check.h"

enum { TAKEN = 20, PUT = 10 };

static uintptr_t taken[TAKEN];

/* Takes objects and puts the last of them into the magazine again. */
static void take_and_put(void)
{
    for (size_t i = 0; i < TAKEN; i++)
        taken[i] = object_get(cache, CLASS_64);
    for (size_t i = TAKEN - PUT; i < TAKEN; i++)
        object_put(cache, taken[i]);
}

static void cache_becomes_orphan(void)
{
    caches_orphan();
    arenas_orphan(&arenas, arenas_end_orphans);
    assert_true(cache_is_orphan(cache));
    assert_true(arenas_end_orphans_once(&arenas));
    assert_false(cache_is_orphan(cache));
    assert_false(arenas_end_orphans_once(&arenas));
    struct cache *left = cache;
    cache = cache_new(&arenas, false);
    assert_ptr_equal(cache, left); /* for the next thread */
    assert_int_equal(cache->held_bytes, 0);
}

static size_t live_objects(void)
{
    struct arena_totals totals = arenas_totals(NULL, &arenas, CLASS_64);
    return totals.total - totals.free;
}

TEST(what_waits_goes_back_and_what_is_below_the_top_does_not)
{
    take_and_put();
    cache_becomes_orphan();
    assert_int_equal(live_objects(), TAKEN - PUT);
    for (size_t i = 0; i < TAKEN - PUT; i++)
        object_free(taken[i]);
    assert_int_equal(live_objects(), 0);
}

/* Frees an object as free does, so that it is the newest. */
static void free_newest(uintptr_t object)
{
    assert_true(cache_put_slow(cache, object, page_map_class(object)));
    assert_int_equal(cache->newest, object);
}

TEST(the_newest_goes_back)
{
    take_and_put();
    free_newest(taken[0]);
    cache_becomes_orphan();
    assert_int_equal(cache->newest, 0);
    assert_int_equal(live_objects(), TAKEN - PUT - 1);
    for (size_t i = 1; i < TAKEN - PUT; i++)
        object_free(taken[i]);
    assert_int_equal(live_objects(), 0);
}

/* The thread was between its stores: the object is the newest, its class that of the one before. */
TEST(the_newest_of_another_class_stays)
{
    take_and_put();
    free_newest(taken[0]);
    cache->newest_class = CLASS_64 + 1;
    cache_becomes_orphan();
    assert_int_equal(live_objects(), TAKEN - PUT);
    for (size_t i = 1; i < TAKEN - PUT; i++)
        object_free(taken[i]);
    assert_int_equal(live_objects(), 1);
    *object_key_word(taken[0]) = 0;
    object_free(taken[0]);
}

TEST(an_object_without_its_key_stays)
{
    take_and_put();
    /* This one was about to be handed out. */
    *object_key_word(taken[TAKEN - 1]) = 0;
    cache_becomes_orphan();
    assert_int_equal(live_objects(), TAKEN - PUT + 1);
    object_free(taken[TAKEN - 1]);
    for (size_t i = 0; i < TAKEN - PUT; i++)
        object_free(taken[i]);
}

TEST(a_cell_on_its_way_out_stays)
{
    uintptr_t cells[4];
    for (size_t i = 0; i < 4; i++) {
        struct misuse misuse;
        size_t dirty;
        cells[i] =
            (uintptr_t)arenas_alloc_cell(&arenas, 2000, MIN_ALIGN, CELLS_NEW, &misuse, &dirty);
        assert_true(cells[i] != 0);
    }
    for (size_t i = 1; i < 4; i++)
        cache_free_cell(cache, cells[i]);
    size_t given = arenas_cell_totals(NULL, &arenas).given;
    /* The newest is taken first: marked, and still in the list. */
    cell_set_state(cells[3], CELL_LIVE);
    cache_becomes_orphan();
    assert_int_equal(arenas_cell_totals(NULL, &arenas).given, given + 2);
    cache_free_cell(cache, cells[0]);
    cache_free_cell(cache, cells[3]);
}

TEST(what_was_learned_is_forgotten)
{
    size_t dirty;
    struct misuse misuse;
    uintptr_t cell =
        (uintptr_t)arenas_alloc_cell(&arenas, 2000, MIN_ALIGN, CELLS_NEW, &misuse, &dirty);
    cache_free_cell(cache, cell);
    assert_true(cache->quick != &quick_none);
    /* The one thread had not told yet what it keeps; that of the one that stays still counts. */
    struct cache *other = cache, *own = cache_new(&arenas, false);
    other->quick->kept = 100;
    page_heap.lists_kept = 7;
    cache = own;
    cell = (uintptr_t)arenas_alloc_cell(&arenas, 2000, MIN_ALIGN, CELLS_NEW, &misuse, &dirty);
    cache_free_cell(own, cell);
    own->quick->kept = 7;
    own->held_bytes -= (size_t)7 << PAGE_SHIFT;
    caches_orphan();
    arenas_orphan(&arenas, arenas_end_orphans);
    cache_keep(own);
    assert_true(arenas_end_orphans_once(&arenas));
    assert_false(cache_is_orphan(own));
    assert_int_equal(page_heap.lists_kept, 7);
    cache_flush(own);
    assert_int_equal(page_heap.lists_kept, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(what_waits_goes_back_and_what_is_below_the_top_does_not, cache_begin, cache_end),
        ROW_WITH(the_newest_goes_back, cache_begin, cache_end),
        ROW_WITH(the_newest_of_another_class_stays, cache_begin, cache_end),
        ROW_WITH(an_object_without_its_key_stays, cache_begin, cache_end),
        ROW_WITH(a_cell_on_its_way_out_stays, cache_begin, cache_end),
        ROW_WITH(what_was_learned_is_forgotten, cache_begin, cache_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
