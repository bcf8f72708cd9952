/*
 * Tests of magazine/cache.h for small objects: the two inlined fast paths, refilling, making room,
 * the spare, the depot, and what a thread may hold. Cells are in cache_cells.c.
 */
#include "cache_support.h"

#include <string.h>

#include "meta/meta.h"
#include "stats/stats.h"

/* ---- The fast paths ---- */

TEST(without_a_cache_every_call_is_slow)
{
    uintptr_t object = object_get(cache, CLASS_64);
    struct cache *none = (struct cache *)&cache_none;
    assert_false(cache_exists(none));
    assert_true(cache_exists(cache));
    for (size_t class = 0; class < CLASS_COUNT; class++) {
        assert_null(cache_pop(none, class));
        assert_true(none->top[class][-1] < MARK_LIMIT);
    }
    assert_false(cache_push(none, object));
    assert_false(cache_put(none, object, CLASS_64));
    assert_int_equal(*object_key_word(object), 0);
    object_put(cache, object);
}

/* ---- The newest ---- */

TEST(the_first_that_is_freed_is_the_newest)
{
    uintptr_t a = object_get(cache, CLASS_64), b = object_get(cache, CLASS_64);
    size_t waits = cache_count(NULL, cache, CLASS_64);
    assert_false(cache_put(cache, a, CLASS_64)); /* there is none before it */
    assert_true(cache_put_slow(cache, a, CLASS_64));
    assert_int_equal(cache->newest, a);
    assert_int_equal(cache_count(NULL, cache, CLASS_64), waits + 1);
    assert_false(cache_put_slow(cache, a, CLASS_64)); /* twice */
    assert_false(cache_put_slow(cache, b + 16, CLASS_64));
    assert_int_equal(cache->newest, a);
    assert_true(cache_put(cache, b, CLASS_64));
    assert_int_equal(cache->newest, b);
    assert_int_equal(cache_count(NULL, cache, CLASS_64), waits + 2);
    assert_null(cache_check(cache));
    assert_int_equal((uintptr_t)cache_pop(cache, CLASS_64), a);
    object_put(cache, a);
}

TEST(the_newest_is_checked_and_looked_at_in_the_end)
{
    uintptr_t a = object_get(cache, CLASS_64);
    assert_true(cache_put_slow(cache, a, CLASS_64));
    assert_null(cache_check(cache));
    *object_key_word(a) += 1;
    assert_non_null(cache_check(cache));
    options.misuse = MISUSE_WARN;
    stderr_capture();
    cache_inspect(cache);
    assert_non_null(strstr(stderr_restore(), "was written to"));
    assert_null(cache_check(cache));
}

TEST(the_newest_without_room_goes_back_to_its_slab)
{
    options.thread_cache = 0; /* no class gets a magazine */
    uintptr_t a = (uintptr_t)object_alloc(&arenas, CLASS_64);
    uintptr_t b = (uintptr_t)object_alloc(&arenas, CLASS_64);
    assert_true(cache_put_slow(cache, a, CLASS_64));
    assert_true(cache_put_slow(cache, b, CLASS_64));
    assert_int_equal(cache->newest, b);
    assert_int_equal((uintptr_t)object_alloc(&arenas, CLASS_64), a);
    object_free(a);
}

/* ---- Magazines ---- */

TEST(a_new_cache_is_empty)
{
    assert_int_equal(arenas.threads, 1);
    assert_int_equal(cache->held_bytes, 0);
    for (size_t class = 0; class < CLASS_COUNT; class++)
        assert_null(cache_pop(cache, class));
    for (size_t class = 1; class < CLASS_COUNT; class++)
        assert_int_equal(cache_count(NULL, cache, class), 0);
    assert_int_equal(arenas.threads, 1);
}

TEST(a_cache_goes_on_to_the_next_thread)
{
    struct cache *other = cache_new(&arenas, false);
    assert_int_equal(arenas.threads, 2);
    cache_free(other);
    assert_int_equal(arenas.threads, 1);
    size_t used = meta_bytes_used();
    assert_ptr_equal(cache_new(&arenas, false), other);
    assert_int_equal(arenas.threads, 2);
    assert_int_equal(meta_bytes_used(), used);
    assert_ptr_equal(arenas.caches, other);
    assert_ptr_equal(other->next, cache);
    cache_free(other);
}

TEST(what_was_pushed_last_is_popped_first)
{
    uintptr_t a = object_get(cache, CLASS_64), b = object_get(cache, CLASS_64);
    object_put(cache, a);
    assert_int_equal(*object_key_word(a), object_key(a));
    object_put(cache, b);
    assert_int_equal((uintptr_t)cache_pop(cache, CLASS_64), b);
    assert_int_equal((uintptr_t)cache_pop(cache, CLASS_64), a);
    assert_int_equal(*object_key_word(a), 0);
    object_put(cache, a);
    object_put(cache, b);
}

/* Pushing it does nothing, and writes nothing. */
static void assert_not_pushed(uintptr_t address, size_t class)
{
    const uintptr_t *top = cache->top[class];
    size_t count = cache_count(NULL, cache, CLASS_64);
    assert_false(cache_push(cache, address));
    assert_ptr_equal(cache->top[class], top);
    assert_int_equal(cache_count(NULL, cache, CLASS_64), count);
}

TEST(what_is_no_object_is_not_pushed)
{
    int local;
    uintptr_t object = object_get(cache, CLASS_64), other = object_get(cache, CLASS_64);
    char before[64];
    memset((void *)object, 0x77, 64);
    memcpy(before, (void *)object, 64);
    object_put(cache, other);
    for (uintptr_t offset = 1; offset < 64; offset++)
        assert_not_pushed(object + offset, CLASS_64);
    assert_memory_equal((void *)object, before, 64);
    assert_not_pushed(other, CLASS_64); /* a second time */
    assert_not_pushed(0, 0);
    assert_not_pushed(8, 0);
    assert_not_pushed((uintptr_t)&local, 0);
    assert_not_pushed((uintptr_t)1 << 48, 0);
    assert_not_pushed(UINTPTR_MAX, 0);
    struct span *large = span_get(10);
    assert_not_pushed((uintptr_t)large->start, 0);
    span_put(large);
    object_put(cache, object);
}

/* ---- Growing ---- */

TEST(magazines_grow_when_they_run_empty)
{
    uintptr_t objects[600];
    unsigned refills = 0, most = size_classes[CLASS_64].magazine_log;
    for (size_t i = 0; i < 600; i++) {
        refills += cache_is_empty(cache, CLASS_64);
        objects[i] = object_get(cache, CLASS_64);
        assert_true(objects[i] != 0);
        assert_int_equal(loaded_of(cache, CLASS_64)->log, size_min(refills - 1, most));
        assert_held(cache);
    }
    assert_true(refills > most);
    for (size_t i = 0; i < 600; i++)
        for (size_t j = 0; j < i; j++)
            ASSERT_THAT(objects[i] != objects[j], "%zu and %zu", i, j);
    for (size_t i = 0; i < 600; i++)
        object_put(cache, objects[i]);
    assert_held(cache);
}

TEST(magazines_grow_when_they_run_full)
{
    static uintptr_t objects[2 * MAGAZINE_SLOTS_MOST];
    size_t most = magazine_capacity(size_classes[CLASS_64].magazine_log);
    for (size_t i = 0; i < 2 * most; i++)
        assert_int_equal(arenas_refill(&arenas, CLASS_64, &objects[i], 1), 1);
    for (size_t i = 0; i < 2 * most; i++) {
        *object_key_word(objects[i]) = 0;
        object_put(cache, objects[i]);
        assert_int_equal(cache_count(NULL, cache, CLASS_64), i + 1); /* none is given back */
        unsigned log = 0;
        while (magazine_capacity(log) < size_min(i + 1, most))
            log++;
        assert_int_equal(loaded_of(cache, CLASS_64)->log, log);
        assert_held(cache);
    }
    /* Now there are two full ones. */
    const struct magazine *loaded = loaded_of(cache, CLASS_64);
    assert_non_null(loaded->link);
    assert_int_equal(loaded->link->count, most);
    assert_int_equal(cache->held_bytes, 2 * most * 64);
    /* They come back, the newest first. */
    for (size_t i = 2 * most; i-- > 0;)
        assert_int_equal(object_get(cache, CLASS_64), objects[i]);
    for (size_t i = 0; i < 2 * most; i++)
        object_put(cache, objects[i]);
}

TEST(going_up_and_down_leaves_slabs_and_depots_alone)
{
    static uintptr_t objects[4 * MAGAZINE_SLOTS_MOST];
    size_t most = magazine_capacity(size_classes[CLASS_64].magazine_log);
    size_t live = 0;
    for (unsigned warm = 0; warm < 2; warm++) {
        while (live < 4 * most)
            objects[live++] = object_get(cache, CLASS_64);
        while (live > 2 * most)
            object_put(cache, objects[--live]);
    }
    uint64_t flushes = COUNTED(flushes_depot), depot = COUNTED(refills_depot);
    size_t free_objects = arenas_totals(NULL, &arenas, CLASS_64).free;
    uint64_t seed = 1;
    while (live < 2 * most + most / 2)
        objects[live++] = object_get(cache, CLASS_64);
    size_t middle = live;
    for (unsigned turn = 0; turn < 20000; turn++) {
        bool up =
            random_below(&seed, 2) == 0 ? live < middle + most / 2 : live <= middle - most / 2;
        if (up)
            objects[live++] = object_get(cache, CLASS_64);
        else
            object_put(cache, objects[--live]);
    }
    assert_true(COUNTED(flushes_depot) - flushes <= 1);
    assert_true(COUNTED(refills_depot) - depot <= 1);
    assert_true(arenas_totals(NULL, &arenas, CLASS_64).free == free_objects);
    while (live > 0)
        object_put(cache, objects[--live]);
}

/* ---- The depot ---- */

TEST(threads_exchange_whole_magazines)
{
    enum { OBJECTS = 1000 };
    static uintptr_t objects[OBJECTS];
    struct cache *other = cache_new(&arenas, false);
    for (size_t i = 0; i < OBJECTS; i++)
        objects[i] = object_get(cache, CLASS_64);
    uint64_t given = COUNTED(flushes_depot), taken = COUNTED(refills_depot);
    uint64_t made = COUNTED(slabs_made);
    for (unsigned round = 0; round < 20; round++) {
        for (size_t i = 0; i < OBJECTS; i++)
            object_put(other, objects[i]);
        for (size_t i = 0; i < OBJECTS; i++)
            objects[i] = object_get(cache, CLASS_64);
        assert_held(cache);
        assert_held(other);
        assert_arenas_sound();
    }
    assert_true(COUNTED(flushes_depot) - given > 100);
    assert_true(COUNTED(refills_depot) - taken > 100);
    /* But for what the second cache keeps, no object more is needed. */
    assert_true(COUNTED(slabs_made) - made <= 2);
    for (size_t i = 0; i < OBJECTS; i++)
        object_put(other, objects[i]);
    cache_free(other);
}

TEST(a_thread_that_only_takes_gets_each_object_once)
{
    enum { MAGAZINES = 5 };
    static uintptr_t taken[MAGAZINES * MAGAZINE_SLOTS_MOST];
    struct magazine *full[MAGAZINES];
    size_t capacity = magazine_capacity(size_classes[CLASS_64].magazine_log);
    for (size_t i = 0; i < MAGAZINES; i++)
        full[i] = magazine_filled(CLASS_64);
    for (size_t i = 0; i < MAGAZINES; i++)
        assert_true(put_full(CLASS_64, full[i]));
    uint64_t refills = COUNTED(refills_depot);
    for (size_t i = 0; i < MAGAZINES * capacity; i++) {
        taken[i] = object_get(cache, CLASS_64);
        for (size_t j = 0; j < i; j++)
            ASSERT_THAT(taken[i] != taken[j], "%zu and %zu", i, j);
        assert_held(cache);
    }
    assert_int_equal(COUNTED(refills_depot) - refills, MAGAZINES);
    for (size_t i = 0; i < MAGAZINES * capacity; i++)
        object_put(cache, taken[i]);
}

TEST(a_magazine_from_the_depot_makes_no_object_twice)
{
    /* Loaded magazines that came from the depot become spares and are reused; no object may be
     * handed out twice on the way. */
    enum { LIVE = 900 };
    static uintptr_t live[LIVE];
    static const size_t class = 8;
    struct cache *caches[2] = {cache, cache_new(&arenas, false)};
    uint64_t seed = 3;
    size_t count = 0;
    for (unsigned turn = 0; turn < 60000; turn++) {
        struct cache *of = caches[random_below(&seed, 2)];
        bool grows = turn / 700 % 2 == 0;
        if (grows && count < LIVE) {
            uintptr_t object = object_get(of, class);
            ASSERT_THAT(*(uintptr_t *)object != ~object, "turn %u: handed out twice", turn);
            *(uintptr_t *)object = ~object;
            live[count++] = object;
        } else if (!grows && count > 0) {
            size_t index = random_below(&seed, count);
            uintptr_t object = live[index];
            live[index] = live[--count];
            *(uintptr_t *)object = 0;
            object_put(of, object);
        }
    }
    struct arena_totals totals = arenas_totals(NULL, &arenas, class);
    size_t cached = cache_count(NULL, caches[0], class) + cache_count(NULL, caches[1], class);
    assert_int_equal(totals.total, totals.free + totals.waiting + cached + count);
    while (count > 0)
        object_put(cache, live[--count]);
    cache_free(caches[1]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(without_a_cache_every_call_is_slow, cache_begin, cache_end),
        ROW_WITH(the_first_that_is_freed_is_the_newest, cache_begin, cache_end),
        ROW_WITH(the_newest_is_checked_and_looked_at_in_the_end, cache_begin, cache_end),
        ROW_WITH(the_newest_without_room_goes_back_to_its_slab, cache_begin, cache_end),
        ROW_WITH(a_new_cache_is_empty, cache_begin, cache_end),
        ROW_WITH(a_cache_goes_on_to_the_next_thread, cache_begin, cache_end),
        ROW_WITH(what_was_pushed_last_is_popped_first, cache_begin, cache_end),
        ROW_WITH(what_is_no_object_is_not_pushed, cache_begin, cache_end),
        ROW_WITH(magazines_grow_when_they_run_empty, cache_begin, cache_end),
        ROW_WITH(magazines_grow_when_they_run_full, cache_begin, cache_end),
        ROW_WITH(going_up_and_down_leaves_slabs_and_depots_alone, cache_begin, cache_end),
        ROW_WITH(threads_exchange_whole_magazines, cache_begin, cache_end),
        ROW_WITH(a_thread_that_only_takes_gets_each_object_once, cache_begin, cache_end),
        ROW_WITH(a_magazine_from_the_depot_makes_no_object_twice, cache_begin, cache_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
