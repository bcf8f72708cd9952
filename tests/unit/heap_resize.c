/*
 * Tests of realloc: where a block is afterwards, what is in it, and what it gets. With the argument
 * `heap` they call heap_resize, which realloc does where no short way is for a block
 * (api/malloc.c).
 */
#include "heap_support.h"

#include <string.h>

#include "options/options.h"
#include "snug/snug.h"

static void *(*resize)(void *block, size_t bytes) = snug_realloc;

/* ThreadSanitizer makes each byte that is looked at slow, and there is one thread: the smaller
 * sizes do. */
#if defined(__SANITIZE_THREAD__)
enum { RESIZED_MAX = 512 * 1024, RESIZES = 600 };
#else
enum { RESIZED_MAX = 1 << 30, RESIZES = 3000 };
#endif

static void resize_between_all_borders(void)
{
    for (const size_t *from = border_sizes; *from != 0 && *from <= RESIZED_MAX; from++)
        for (const size_t *to = border_sizes; *to != 0; to++) {
            char *block = block_get(*from);
            pattern_fill(block, *from, *to);
            char *resized = resize(block, *to);
            assert_non_null(resized);
            ASSERT_THAT(pattern_holds(resized, size_min(*from, *to), *to), "%zu to %zu", *from,
                        *to);
            assert_true(heap_usable(resized, "test") >= *to);
            memset(resized, 1, *to);
            heap_free(resized);
        }
}

TEST(resizing_keeps_the_contents)
{
    with_and_without_cache(resize_between_all_borders);
}

static void resize_at_random(void)
{
    enum { BLOCKS = 40 };
    char *blocks[BLOCKS] = {NULL};
    size_t sizes[BLOCKS] = {0};
    uint64_t seed = 2;
    for (unsigned turn = 0; turn < RESIZES; turn++) {
        size_t i = random_below(&seed, BLOCKS);
        size_t bytes = 1 + random_below(&seed, (size_t)1 << random_below(&seed, 21));
        blocks[i] = blocks[i] == NULL ? block_get(bytes) : resize(blocks[i], bytes);
        assert_non_null(blocks[i]);
        ASSERT_THAT(pattern_holds(blocks[i], size_min(bytes, sizes[i]), i), "turn %u", turn);
        pattern_fill(blocks[i], bytes, i);
        sizes[i] = bytes;
        if (turn % 200 == 0)
            assert_heap_sound();
    }
    for (size_t i = 0; i < BLOCKS; i++)
        heap_free(blocks[i]);
}

TEST(resizing_at_random_keeps_the_contents)
{
    with_and_without_cache(resize_at_random);
}

/* Where a block is after it was resized from `from` to `to`. */
static bool stays(size_t from, size_t to)
{
    char *block = block_get(from);
    uintptr_t start = (uintptr_t)block;
    block = resize(block, to);
    assert_non_null(block);
    bool same = (uintptr_t)block == start;
    heap_free(block);
    return same;
}

/* Objects of a class for which the heap uses slabs, whatever it does for the first requests. */
static void warm_up(size_t bytes)
{
    enum { WARM = 150 };
    char *blocks[WARM];
    for (size_t i = 0; i < WARM; i++)
        blocks[i] = block_get(bytes);
    for (size_t i = 0; i < WARM; i++)
        heap_free(blocks[i]);
}

TEST(small_blocks_move_only_if_it_is_worth_it)
{
    warm_up(256);
    warm_up(512);
    assert_true(stays(512, 512));
    assert_true(stays(500, 512));  /* within its class */
    assert_true(stays(512, 300));  /* a little smaller */
    assert_false(stays(512, 256)); /* half as large */
    assert_false(stays(512, 513));
    assert_true(stays(64, 1)); /* too small for moving to save anything */
    assert_false(stays(80, 1));
}

/* However much their class is asked for. */
TEST(small_blocks_that_grow_become_cells)
{
    warm_up(777);
    char *object = block_get(777), *grown = resize(block_get(100), 777);
    assert_false(page_map_is_cell((uintptr_t)object));
    assert_true(page_map_is_cell((uintptr_t)grown));
    heap_free(object);
    heap_free(grown);
}

/* Whether the next block of so many bytes, which is freed again, is at `place`. */
static bool is_had_again(uintptr_t place, size_t bytes)
{
    heap_free(block_get(16)); /* for which a small object waits that was freed last */
    char *next = block_get(bytes);
    bool found = (uintptr_t)next == place;
    heap_free(next);
    return found;
}

TEST(what_moved_is_free)
{
    const size_t sizes[] = {100, 250, 3000, 30000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        char *block = block_get(sizes[i]), *wall = block_get(sizes[i]);
        uintptr_t was = (uintptr_t)block;
        block = resize(block, 3 * sizes[i]);
        assert_int_not_equal((uintptr_t)block, was);
        ASSERT_THAT(is_had_again(was, sizes[i]), "%zu bytes", sizes[i]);
        heap_free(block);
        heap_free(wall);
    }
}

TEST(medium_blocks_grow_in_place_where_there_is_room)
{
    heap_trim(0); /* so that the four lie side by side */
    char *wall = block_get(60000), *block = block_get(20000), *next = block_get(20000);
    char *behind = block_get(60000);
    heap_free(next);
    heap_trim(0);
    assert_ptr_equal(resize(block, 35000), block);
    assert_ptr_equal(resize(block, 18000), block);
    assert_in_range(heap_usable(block, "test"), 18000, 18000 + 256); /* the rest is free */
    heap_free(block);
    heap_free(wall);
    heap_free(behind);
}

TEST(medium_blocks_move_only_if_they_lose_most_of_themselves)
{
    assert_true(stays(4000, 2100));
    assert_false(stays(4000, 1900));
    assert_true(stays(100000, 51000));
    assert_false(stays(100000, 49000));
    assert_true(stays(900, 500));
    assert_false(stays(900, 400));
}

TEST(blocks_that_creep_are_given_more)
{
    heap_trim(0); /* nothing waits that would be larger still */
    char *block = block_get(4000);
    unsigned changes = 0;
    for (size_t bytes = 4000; bytes < 8000; bytes += 20) {
        size_t usable = heap_usable(block, "test");
        block = resize(block, bytes);
        changes += heap_usable(block, "test") != usable;
        assert_in_range(heap_usable(block, "test"), bytes, bytes + bytes / 8 + 256);
    }
    assert_in_range(changes, 4, 20); /* of 200 */
    block = resize(block, 20000);    /* at a leap: as much as is asked for */
    assert_in_range(heap_usable(block, "test"), 20000, 20000 + 256);
    heap_free(block);
}

/* The bytes of a block of so many that grew, and could not where it was, while memory is `kept` or
 * not. */
static size_t usable_when_moved(size_t from, size_t to, bool kept)
{
    enum { ALL = 16 };
    char *all[ALL];
    size_t first = 0;
    for (size_t i = 0; i < ALL; i++)
        all[i] = block_get(from);
    for (size_t i = 0; i < ALL * ALL; i++) /* one that another is behind of */
        if (is_behind(all[i % ALL], all[i / ALL], from))
            first = i / ALL;
    if (kept) {
        heap_free(block_get(3 * MIB));
        heap_free(block_get(200000)); /* until then the other waits */
    }
    char *moved = resize(all[first], to);
    assert_ptr_not_equal(moved, all[first]);
    size_t usable = heap_usable(moved, "test");
    all[first] = moved;
    for (size_t i = 0; i < ALL; i++)
        heap_free(all[i]);
    return usable;
}

/* From 1 MiB on growing copies nothing, mostly. */
TEST(so_are_large_blocks_up_to_1_MiB)
{
    assert_int_equal(usable_when_moved(300000, 310000, false), 310000 + 310000 / 8);
    assert_int_equal(usable_when_moved(300000, 400000, false), 400000); /* at a leap */
}

/* Where memory is kept that has room for it a larger one is copied as well. */
TEST(larger_ones_get_what_they_ask_for)
{
    assert_int_equal(usable_when_moved(1200000, 1250000, false), 1250000);
    assert_int_equal(usable_when_moved(1200000, 1250000, true), 1250000);
}

TEST(a_large_block_keeps_what_it_got_in_order_to_grow)
{
    char *block = block_get(900000);
    assert_ptr_equal(resize(block, 800000), block);
    assert_int_equal(heap_usable(block, "test"), 900000); /* it is nearly all */
    assert_ptr_equal(resize(block, 700000), block);
    assert_int_equal(heap_usable(block, "test"), 700000);
    block = resize(block, 1100000);
    block = resize(block, 1090000);
    assert_int_equal(heap_usable(block, "test"), 1090000);
    heap_free(block);
}

/* What was freed of a size that no slab serves yet, or of a block that has grown, is what such a
 * request gets next. */
TEST(rare_sizes_and_blocks_that_grow_are_served_by_what_was_freed)
{
    for (size_t bytes = 300; bytes <= 1000; bytes += 100) {
        uintptr_t block = (uintptr_t)block_get(bytes);
        assert_true(page_map_is_cell(block));
        heap_free((void *)block);
        assert_int_equal((uintptr_t)block_get(bytes), block);
        heap_free((void *)block);
    }
    uintptr_t grown[2];
    for (unsigned i = 0; i < 2; i++) {
        grown[i] = (uintptr_t)resize(block_get(100), 777);
        assert_true(page_map_is_cell(grown[i]));
        heap_free((void *)grown[i]);
    }
    assert_int_equal(grown[0], grown[1]);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "heap") == 0)
        resize = heap_resize;
    static const struct CMUnitTest tests[] = {
        ROW(rare_sizes_and_blocks_that_grow_are_served_by_what_was_freed),
        ROW(resizing_keeps_the_contents),
        ROW(resizing_at_random_keeps_the_contents),
        ROW(small_blocks_move_only_if_it_is_worth_it),
        ROW(small_blocks_that_grow_become_cells),
        ROW(what_moved_is_free),
        ROW(medium_blocks_grow_in_place_where_there_is_room),
        ROW(medium_blocks_move_only_if_they_lose_most_of_themselves),
        ROW(blocks_that_creep_are_given_more),
        ROW(so_are_large_blocks_up_to_1_MiB),
        ROW(larger_ones_get_what_they_ask_for),
        ROW(a_large_block_keeps_what_it_got_in_order_to_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
