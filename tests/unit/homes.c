/*
 * Tests of homes (magazine/arena_place.c): which thread has which, whose objects lie there, and
 * when those of others are taken.
 */
#include "arena_support.h"

/* Another thread's turn, for which this one stands in. */
static uint32_t home_of_another(unsigned processors)
{
    arena_home = 0;
    arena_home_choose(processors);
    return arena_home;
}

static void leave(uint32_t home)
{
    arena_home = home;
    arena_home_leave();
}

TEST(each_thread_has_a_home_of_its_own_as_long_as_there_are_some)
{
    for (uint32_t i = 1; i <= THREADS_OF_ARENA; i++)
        assert_int_equal(home_of_another(1), i);
    arena_home_choose(1); /* it has one */
    assert_int_equal(arena_home, THREADS_OF_ARENA);
    assert_int_equal(home_of_another(1), 1); /* where the fewest are */
    assert_int_equal(home_of_another(1), 2);
    assert_int_equal(home_of_another(2), THREADS_OF_ARENA + 1);
    leave(1);
    leave(2);
    for (uint32_t i = 1; i <= THREADS_OF_ARENA + 1; i++)
        leave(i);
    assert_int_equal(arena_home, 0);
    assert_int_equal(home_of_another(5000), 1);
    leave(1);
}

TEST(a_home_that_was_left_is_the_next_threads)
{
    assert_int_equal(home_of_another(1), 1);
    assert_int_equal(home_of_another(1), 2);
    leave(1);
    arena_home_leave(); /* it has none any more */
    assert_int_equal(home_of_another(1), 1);
    assert_int_equal(home_of_another(1), 3);
    for (uint32_t i = 1; i <= 3; i++)
        leave(i);
}

TEST(a_child_of_fork_has_its_own_home_only)
{
    assert_int_equal(home_of_another(1), 1);
    assert_int_equal(home_of_another(1), 2);
    arena_home_keep_own();
    assert_int_equal(home_of_another(1), 1);
    assert_int_equal(home_of_another(1), 3);
    for (uint32_t i = 1; i <= 3; i++)
        leave(i);
}

TEST(small_objects_lie_at_home_and_others_go_by_processor)
{
    enum { HOME = 6 };
    arenas_of_two_threads();
    arena_home = HOME;
    assert_ptr_equal(arena_for(&arenas, CLASS_64), arenas.list[arenas_here]); /* a heap without */
    arenas.homes = true;
    struct arena *home = arena_for(&arenas, CLASS_64);
    assert_ptr_equal(home, arenas.list[HOME - 1]);
    assert_int_equal(arenas.end, HOME);
    assert_ptr_equal(arena_for(&arenas, class_of_size(LINE_SHARED_BELOW - 16)), home);
    assert_ptr_equal(arena_for(&arenas, class_of_size(LINE_SHARED_BELOW)),
                     arenas.list[arenas_here]);
    uintptr_t object;
    assert_int_equal(arenas_refill(&arenas, CLASS_64, &object, 1), 1);
    assert_int_equal(home->classes[CLASS_64].bin.slab_count, 1);
    assert_int_equal(arenas_totals(NULL, &arenas, CLASS_64).slabs, 1);
    arena_home = 0; /* a thread without a cache */
    assert_ptr_equal(arena_for(&arenas, CLASS_64), arenas.list[arenas_here]);
    arena_home = HOME;
    arenas.threads = 1;
    assert_ptr_equal(arena_for(&arenas, CLASS_64), arenas.list[0]);
    arena_home = 0;
    objects_free(&object, 1);
    assert_arenas_empty();
}

/* ---- Slabs of others ---- */

enum { TAKEN = 1 << 14 }; /* 1 MiB of objects of 64 bytes */

static uintptr_t taken[TAKEN];

/* Of what the other arena has, one object in `share` is free, here and there. Returns how many
 * slabs the arena has after it took one object. */
static size_t slabs_after_one(size_t class, size_t share)
{
    size_t bytes = class_bytes(class), count = MIB / bytes;
    for (size_t i = 0; i < count;) {
        size_t got = arenas_refill(&arenas, class, taken + i, count - i);
        assert_true(got != 0);
        i += got;
    }
    for (size_t i = 0; i < count; i += share)
        objects_free(&taken[i], 1);
    arenas_swap();
    uintptr_t object;
    assert_int_equal(arenas_refill(&arenas, class, &object, 1), 1);
    size_t slabs = class_in(0, class)->bin.slab_count;
    objects_free(&object, 1);
    for (size_t i = 0; i < count; i++)
        if (i % share != 0)
            objects_free(&taken[i], 1);
    assert_arenas_empty();
    return slabs;
}

TEST(objects_that_share_lines_are_not_taken_from_others_slabs)
{
    arenas_of_two_threads();
    assert_int_equal(slabs_after_one(CLASS_64, 16), 1);
}

TEST(but_they_are_where_much_lies_idle)
{
    arenas_of_two_threads();
    assert_int_equal(slabs_after_one(CLASS_64, 4), 0);
}

TEST(and_so_they_are_by_a_thread_that_is_alone)
{
    assert_int_equal(slabs_after_one(CLASS_64, 16), 0);
}

TEST(larger_objects_are)
{
    arenas_of_two_threads();
    assert_int_equal(slabs_after_one(class_of_size(LINE_SHARED_BELOW), 16), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(each_thread_has_a_home_of_its_own_as_long_as_there_are_some),
        ROW(a_home_that_was_left_is_the_next_threads),
        ROW(a_child_of_fork_has_its_own_home_only),
        ROW_WITH(small_objects_lie_at_home_and_others_go_by_processor, two_arenas_begin,
                 page_heap_end),
        ROW_WITH(objects_that_share_lines_are_not_taken_from_others_slabs, two_arenas_begin,
                 page_heap_end),
        ROW_WITH(but_they_are_where_much_lies_idle, two_arenas_begin, page_heap_end),
        ROW_WITH(and_so_they_are_by_a_thread_that_is_alone, two_arenas_begin, page_heap_end),
        ROW_WITH(larger_objects_are, two_arenas_begin, page_heap_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
