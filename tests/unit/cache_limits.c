/*
 * Tests of magazine/cache.h: what threads may hold, what happens without memory, and what goes
 * back when a cache is flushed or freed. Objects without any cache, too.
 */
#include "cache_support.h"

#include <stdio.h>
#include <string.h>

#include "meta/meta.h"
#include "options/options.h"
#include "stats/stats.h"

enum { LIVE = 6000 };
static uintptr_t live[LIVE];
static size_t live_count;

/* Takes and gives objects of many classes, up to LIVE. */
static void use_many_classes(uint64_t seed, unsigned turns, void (*check)(void))
{
    for (unsigned turn = 0; turn < turns; turn++) {
        bool grows = turn / 1500 % 2 == 0;
        if (grows && live_count < LIVE) {
            size_t class = 1 + random_below(&seed, CLASS_COUNT - 1);
            live[live_count] = object_get(cache, class);
            assert_true(live[live_count] != 0);
            memset((void *)live[live_count], 0, class_bytes(class));
            live_count++;
        } else if (!grows && live_count > 0) {
            object_put(cache, live[--live_count]);
        }
        if (turn % 16 == 0)
            check();
    }
}

static void put_all(void)
{
    while (live_count > 0)
        object_put(cache, live[--live_count]);
}

/* ---- Limits ---- */

static void check_held(void)
{
    ASSERT_THAT(cache->held_bytes <= options.thread_cache, "%zu bytes", cache->held_bytes);
    assert_int_equal(arenas.magazine_bytes, cache->held_bytes);
}

TEST(a_thread_holds_no_more_than_the_option_says)
{
    static const size_t limits[] = {0, 64, 1000, 10 * KIB, 100 * KIB, MIB};
    options.depot = 0;
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        options.thread_cache = limits[i];
        use_many_classes(1 + i, 6000, check_held);
        assert_held(cache);
        assert_arenas_sound();
        put_all();
        cache_flush(cache);
        assert_int_equal(cache->held_bytes, 0);
        assert_int_equal(arenas.magazine_bytes, 0);
    }
}

static void check_held_of_heap(void)
{
    ASSERT_THAT(cache->held_bytes <= arenas.held_most, "%zu bytes", cache->held_bytes);
}

TEST(a_thread_holds_no_more_of_a_heap_than_is_meant_for_it)
{
    arenas.held_most = 10 * KIB;
    use_many_classes(1, 6000, check_held_of_heap);
    assert_true(cache->held_bytes > arenas.held_most / 2);
    put_all();
    cache_flush(cache);
    arenas.held_most = SIZE_MAX;
}

/* Takes and gives so many objects; from now on the thread may hold no more than it does. */
static void use_and_limit(size_t objects, bool give)
{
    for (size_t i = 0; i < objects; i++)
        live[live_count++] = object_get(cache, CLASS_64);
    while (give && live_count != 0)
        object_put(cache, live[--live_count]);
    options.thread_cache = cache->held_bytes;
}

TEST(what_a_full_thread_gives_to_the_depot_it_takes_again)
{
    enum { OBJECTS = 1000 };
    use_and_limit(OBJECTS, true);
    assert_non_null(loaded_of(cache, CLASS_64)->link);
    uint64_t given = COUNTED(flushes_depot), taken = COUNTED(refills_depot);
    uint64_t made = COUNTED(slabs_made);
    for (unsigned round = 0; round < 10; round++) {
        use_and_limit(OBJECTS, true);
        assert_held(cache);
    }
    assert_true(COUNTED(flushes_depot) - given >= 50);
    assert_in_range(COUNTED(refills_depot) - taken, 50, COUNTED(flushes_depot) - given + 10);
    assert_int_equal(COUNTED(slabs_made), made);
    assert_arenas_sound();
}

TEST(so_does_one_with_a_single_magazine)
{
    size_t capacity = magazine_capacity(size_classes[CLASS_64].magazine_log);
    use_and_limit(2 * capacity, false);
    assert_int_equal(magazine_capacity(loaded_of(cache, CLASS_64)->log), capacity);
    assert_null(loaded_of(cache, CLASS_64)->link);
    for (size_t i = 0; i < 3; i++)
        assert_true(put_full(CLASS_64, magazine_filled(CLASS_64)));
    uint64_t taken = COUNTED(refills_depot);
    while (!cache_is_empty(cache, CLASS_64))
        live[live_count++] = object_get(cache, CLASS_64);
    for (size_t i = 0; i < 3 * capacity; i++) {
        live[live_count++] = object_get(cache, CLASS_64);
        assert_int_equal(cache->held_bytes, options.thread_cache);
        assert_null(loaded_of(cache, CLASS_64)->link);
        assert_held(cache);
    }
    assert_int_equal(COUNTED(refills_depot) - taken, 3);
    put_all();
    assert_arenas_sound();
}

TEST(without_room_there_is_no_magazine_but_all_else)
{
    options.thread_cache = 0;
    uintptr_t object = object_get(cache, CLASS_64);
    assert_true(object != 0);
    assert_int_equal(*object_key_word(object), 0);
    assert_null(loaded_of(cache, CLASS_64));
    assert_false(cache_make_room(cache, CLASS_64));
    object_put(cache, object);
    assert_int_equal(arenas_totals(NULL, &arenas, CLASS_64).free, OBJECTS_64);
    assert_int_equal(*object_key_word(object), object_key(object));
}

/* Bytes of the magazines that any thread may have. */
static size_t always_held(void)
{
    size_t sum = 0;
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        unsigned log = size_classes[class].magazine_log;
        while (cache_magazine_bytes(class, log) > ALWAYS_HELD)
            log--;
        sum += cache_magazine_bytes(class, log);
    }
    return sum;
}

static void check_held_of_part(void)
{
    size_t most = cache_part(cache) + always_held();
    ASSERT_THAT(cache->held_bytes <= most, "%zu bytes", cache->held_bytes);
}

/* All that threads of one arena may hold together; of more, each a part of half of it. */
static size_t full_caches(void)
{
    return FULL_CACHES * options.thread_cache;
}

/* As if there were so many threads, of which the others move far more. */
static void be_one_of(uint32_t threads)
{
    arenas.threads = threads;
    arenas.moved = SIZE_MAX / 2;
}

static void be_alone(void)
{
    arenas.threads = 1;
    arenas.moved = 0;
}

TEST(of_many_threads_each_may_hold_its_part)
{
    assert_int_equal(arenas.count, 1);
    be_one_of(10 * FULL_CACHES);
    assert_int_equal(cache_part(cache), options.thread_cache); /* others hold nothing */
    arenas.magazine_bytes = full_caches() - 10000;
    assert_int_equal(cache_part(cache), options.thread_cache / 20);
    be_one_of(1000 * FULL_CACHES);
    assert_int_equal(cache_part(cache), 10000);
    be_one_of(2 * FULL_CACHES);
    arenas.magazine_bytes = full_caches(); /* by others that sleep */
    size_t part = options.thread_cache / 4;
    assert_int_equal(cache_part(cache), part);
    use_many_classes(3, 6000, check_held_of_part);
    assert_true(cache->held_bytes >= part / 2);
    put_all();
    be_alone();
    arenas.magazine_bytes -= full_caches();
}

/* Where a few of many threads have much to do. */
TEST(who_moves_more_than_others_may_hold_more)
{
    const size_t threads = 1000 * FULL_CACHES, full = full_caches();
    const size_t least = full / 2 / threads;
    be_one_of((uint32_t)threads);
    arenas.magazine_bytes = full;
    arenas.moved = 1000 * MOVED_COUNTED;
    cache->moved = 0;
    assert_int_equal(cache_part(cache), least);
    cache->moved = MOVED_COUNTED - 1; /* counted by so many */
    assert_int_equal(cache_part(cache), least);
    arenas.moved = 10000 * MOVED_COUNTED;
    cache->moved = MOVED_COUNTED; /* less than others, but they may sleep */
    assert_int_equal(cache_part(cache), least);
    cache->moved = 100 * MOVED_COUNTED;
    assert_int_equal(cache_part(cache), full / 2 / (100 * MOVED_PART));
    cache->moved = 9900 * MOVED_COUNTED;
    assert_int_equal(cache_part(cache), full / 2 / MOVED_PART);
    cache->moved = 0;
    arenas.magazine_bytes = 0;
    be_alone();
}

/* Each half of a magazine of 4 counts as one. */
TEST(what_moves_is_counted)
{
    options.thread_cache = magazine_capacity(0) * 64;
    options.depot = 0;
    size_t first = cache->moved, before = arenas.moved;
    for (size_t i = 0; i < LIVE; i++)
        live[live_count++] = object_get(cache, CLASS_64);
    assert_in_range(cache->moved - first, 2 * LIVE - 16, 2 * LIVE + 16);
    put_all();
    assert_in_range(cache->moved - first, 4 * LIVE - 16, 4 * LIVE + 16);
    assert_int_equal(arenas.moved - before,
                     cache_counted(cache) - align_down(first, MOVED_COUNTED));
    assert_true(arenas.moved - before >= 4 * MOVED_COUNTED);
}

/* Others may have come meanwhile. */
TEST(who_holds_more_than_its_part_gives_it_back_when_it_works)
{
    use_and_limit(1000, true);
    options.thread_cache *= 20;
    size_t held = cache->held_bytes;
    assert_non_null(loaded_of(cache, CLASS_64)->link);
    be_one_of(40 * FULL_CACHES);
    arenas.magazine_bytes += full_caches();
    assert_true(cache_holds_too_much(cache));
    for (size_t i = 0; i < 1000; i++)
        live[live_count++] = object_get(cache, CLASS_64);
    put_all();
    assert_true(cache->held_bytes <= held / 2);
    assert_null(loaded_of(cache, CLASS_64)->link);
    be_alone();
    arenas.magazine_bytes -= full_caches();
}

/* Uses so many objects of each class at a time, from the first to the last. */
static void use_class_by_class(size_t objects)
{
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        for (size_t i = 0; i < objects; i++)
            live[live_count++] = object_get(cache, class);
        put_all();
    }
}

TEST(of_very_many_each_has_small_magazines)
{
    be_one_of(1000 * FULL_CACHES);
    arenas.magazine_bytes = full_caches();
    use_class_by_class(400);
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        size_t bytes = cache_magazine_bytes(class, loaded_of(cache, class)->log);
        assert_in_range(bytes, ALWAYS_HELD / 3, ALWAYS_HELD);
        assert_null(loaded_of(cache, class)->link);
    }
    assert_int_equal(cache->held_bytes, always_held());
    assert_in_range(always_held(), 170 * KIB, 180 * KIB);
    be_alone();
    arenas.magazine_bytes -= full_caches();
}

/* The one that goes is counted until the larger one is there. */
TEST(a_magazine_grows_into_the_room_of_the_one_before)
{
    unsigned log = size_classes[CLASS_64].magazine_log;
    options.thread_cache = cache_magazine_bytes(CLASS_64, log);
    for (size_t i = 0; i < 400; i++)
        live[live_count++] = object_get(cache, CLASS_64);
    assert_int_equal(loaded_of(cache, CLASS_64)->log, log);
    cache_flush(cache);
    put_all();
    assert_int_equal(loaded_of(cache, CLASS_64)->log, log);
}

static int two_begin(void **state)
{
    int result = two_arenas_begin(state);
    cache = cache_new(&arenas, false);
    return result;
}

/* A program with many more threads than processors, each of which does a little and waits. */
TEST(a_thousand_threads_hold_little_more_than_those_that_may_hold_all)
{
    enum { THREADS = 1000, EACH = 40 };
    static struct cache *caches[THREADS];
    static uintptr_t objects[EACH];
    size_t most = 0, full = 2 * full_caches();
    cache_free(cache);
    for (size_t i = 0; i < THREADS; i++) {
        caches[i] = cache_new(&arenas, false);
        for (size_t class = 1; class < CLASS_COUNT; class++) {
            for (size_t j = 0; j < EACH; j++)
                objects[j] = object_get(caches[i], class);
            for (size_t j = 0; j < EACH; j++)
                object_put(caches[i], objects[j]);
        }
        most = size_max(most, arenas.magazine_bytes);
    }
    assert_int_equal(arenas.count, 2);
    /* 1 + log(1,000 / 16) / 2, about */
    ASSERT_THAT(most <= 3 * full + THREADS * always_held() && most > 2 * full, "%zu bytes", most);
    assert_int_equal(cache_part(caches[0]), full / 2 / THREADS);
    assert_in_range(caches[THREADS - 1]->held_bytes, always_held() / 2,
                    always_held() + full / 2 / THREADS);
    for (size_t i = 0; i < THREADS; i++)
        cache_free(caches[i]);
    assert_int_equal(arenas.magazine_bytes, 0);
    cache = cache_new(&arenas, false);
}

TEST(a_full_magazine_that_may_not_grow_gives_its_older_half)
{
    options.thread_cache = magazine_capacity(1) * 64 + magazine_capacity(0) * 64;
    size_t capacity = magazine_capacity(1);
    for (size_t i = 0; i < 2 * capacity; i++)
        live[i] = object_get(cache, CLASS_64);
    cache_flush(cache);
    for (size_t i = 0; i < capacity; i++)
        object_put(cache, live[i]);
    assert_int_equal(cache_count(NULL, cache, CLASS_64), capacity);
    object_put(cache, live[capacity]);
    assert_int_equal(cache_count(NULL, cache, CLASS_64), capacity / 2 + 1);
    assert_int_equal((uintptr_t)cache_pop(cache, CLASS_64), live[capacity]);
    for (size_t i = capacity; i-- > capacity / 2;)
        assert_int_equal((uintptr_t)cache_pop(cache, CLASS_64), live[i]);
    assert_null(cache_pop(cache, CLASS_64));
    for (size_t i = capacity / 2; i < 2 * capacity; i++)
        object_put(cache, live[i]);
}

/* ---- Nothing is lost ---- */

static void check_sum(void)
{
    size_t total = 0, idle = 0;
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        struct arena_totals totals = arenas_totals(NULL, &arenas, class);
        total += totals.total;
        idle += totals.free + totals.waiting + cache_count(NULL, cache, class);
    }
    assert_int_equal(total, idle + live_count);
}

TEST(every_object_is_somewhere)
{
    use_many_classes(7, 9000, check_sum);
    assert_held(cache);
    assert_arenas_sound();
    put_all();
    check_sum();
}

TEST(a_flush_gives_everything_back)
{
    use_many_classes(8, 8000, check_sum);
    cache_flush(cache);
    check_sum();
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        assert_int_equal(cache_count(NULL, cache, class), 0);
        assert_null(loaded_of(cache, class));
    }
    assert_int_equal(cache->held_bytes, 0);
    put_all(); /* it can be used as before */
    check_sum();
}

TEST(a_freed_cache_leaves_nothing_behind)
{
    cache_free(cache_new(&arenas, false)); /* its own kilobyte stays, for the next */
    size_t used = meta_bytes_used();
    struct cache *first = cache;
    uint64_t threads = COUNTED(thread_caches);
    cache = cache_new(&arenas, false);
    assert_int_equal(COUNTED(thread_caches), threads + 1);
    use_many_classes(9, 5000, check_sum);
    put_all();
    cache_free(cache);
    cache = first;
    assert_int_equal(arenas.threads, 1);
    assert_int_equal(arenas.magazine_bytes, 0);
    arenas_trim(&arenas);
    page_heap_purge(&page_heap, 0);
    assert_int_equal(meta_bytes_used(), used);
}

/* ---- Without memory ---- */

TEST(without_memory_nothing_is_had_and_nothing_is_lost)
{
    fake.refuse_take = true;
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        assert_int_equal(object_get(cache, class), 0);
        assert_int_equal(object_get(cache, class), 0);
        assert_null(object_alloc(&arenas, class));
    }
    assert_held(cache);
    assert_arenas_sound();
    fake.refuse_take = false;
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        uintptr_t object = object_get(cache, class);
        assert_true(object != 0);
        object_put(cache, object);
    }
}

TEST(when_memory_ends_all_of_it_was_handed_out)
{
    static uintptr_t all[4 * MIB / 64];
    fake.most = options.prefault = 4 * MIB; /* the first segment is long */
    live_count = 0;
    size_t count = 0;
    while (true) {
        uintptr_t object = object_get(cache, CLASS_64);
        if (object == 0)
            break;
        all[count++] = object;
        if (count == 1)
            fake.refuse_take = true;
    }
    assert_int_equal(count, 4 * MIB / 64);
    assert_int_equal(object_get(cache, CLASS_64), 0);
    object_put(cache, all[5]);
    assert_int_equal(object_get(cache, CLASS_64), all[5]);
    while (count > 0)
        object_put(cache, all[--count]);
    check_sum();
}

/* ---- Objects without a cache ---- */

TEST(objects_are_taken_and_given_singly)
{
    uintptr_t object = (uintptr_t)object_alloc(&arenas, CLASS_64);
    assert_int_equal(*object_key_word(object), 0);
    object_free(object);
    assert_int_equal(*object_key_word(object), object_key(object));
    assert_int_equal((uintptr_t)object_alloc(&arenas, CLASS_64), object); /* the lowest */
    object_free(object);
}

TEST(wrong_single_objects_are_said_and_not_written)
{
    char line[128], before[64];
    options.misuse = MISUSE_WARN;
    uintptr_t object = (uintptr_t)object_alloc(&arenas, CLASS_64);
    memset((void *)object, 0x33, 64);
    memcpy(before, (void *)object, 64);
    stderr_capture();
    object_free(object + 8);
    snprintf(line, sizeof(line),
             "snug: invalid free: %#zx is inside a 64-byte object that starts at %#zx\n",
             object + 8, object);
    assert_string_equal(stderr_restore(), line);
    assert_memory_equal((void *)object, before, 64);
    object_free(object);
    stderr_capture();
    object_free(object);
    snprintf(line, sizeof(line), "snug: double free: %#zx, a 64-byte object\n", object);
    assert_string_equal(stderr_restore(), line);
}

TEST(a_single_object_that_was_written_to_is_left_out)
{
    char line[128];
    options.misuse = MISUSE_WARN;
    uintptr_t written = (uintptr_t)object_alloc(&arenas, CLASS_64);
    uintptr_t sound = (uintptr_t)object_alloc(&arenas, CLASS_64);
    assert_true(written < sound); /* so it is the first that is handed out again */
    object_free(written);
    object_free(sound);
    memset((void *)written, 0x33, 64);
    stderr_capture();
    uintptr_t object = (uintptr_t)object_alloc(&arenas, CLASS_64);
    snprintf(line, sizeof(line),
             "snug: use after free: %#zx, a 64-byte object, was written to or freed twice, found "
             "0x3333333333333333\n",
             written);
    assert_string_equal(stderr_restore(), line);
    assert_int_equal(object, sound);
    object_free(object);
    object_free(written); /* which is as good as in use */
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(a_thread_holds_no_more_than_the_option_says, cache_begin, cache_end),
        ROW_WITH(a_thread_holds_no_more_of_a_heap_than_is_meant_for_it, cache_begin, cache_end),
        ROW_WITH(what_a_full_thread_gives_to_the_depot_it_takes_again, cache_begin, cache_end),
        ROW_WITH(so_does_one_with_a_single_magazine, cache_begin, cache_end),
        ROW_WITH(without_room_there_is_no_magazine_but_all_else, cache_begin, cache_end),
        ROW_WITH(of_many_threads_each_may_hold_its_part, cache_begin, cache_end),
        ROW_WITH(who_moves_more_than_others_may_hold_more, cache_begin, cache_end),
        ROW_WITH(what_moves_is_counted, cache_begin, cache_end),
        ROW_WITH(who_holds_more_than_its_part_gives_it_back_when_it_works, cache_begin, cache_end),
        ROW_WITH(of_very_many_each_has_small_magazines, cache_begin, cache_end),
        ROW_WITH(a_magazine_grows_into_the_room_of_the_one_before, cache_begin, cache_end),
        ROW_WITH(a_thousand_threads_hold_little_more_than_those_that_may_hold_all, two_begin,
                 cache_end),
        ROW_WITH(a_full_magazine_that_may_not_grow_gives_its_older_half, cache_begin, cache_end),
        ROW_WITH(every_object_is_somewhere, cache_begin, cache_end),
        ROW_WITH(a_flush_gives_everything_back, cache_begin, cache_end),
        ROW_WITH(a_freed_cache_leaves_nothing_behind, cache_begin, cache_end),
        ROW_WITH(without_memory_nothing_is_had_and_nothing_is_lost, cache_begin, cache_end),
        ROW_WITH(when_memory_ends_all_of_it_was_handed_out, cache_begin, cache_end),
        ROW_WITH(objects_are_taken_and_given_singly, cache_begin, cache_end),
        ROW_WITH(wrong_single_objects_are_said_and_not_written, cache_begin, cache_end),
        ROW_WITH(a_single_object_that_was_written_to_is_left_out, cache_begin, cache_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
