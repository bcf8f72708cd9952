/*
 * Tests of magazine/fast.h, from where programs are: each call that a magazine can serve is served
 * by it, with what it promises, and what is freed comes back. `polls` tells that no slow path was
 * taken (stats/event.h).
 */
#include "heap_support.h"

#include <string.h>

#include "heap/user_heaps.h"
#include "options/options.h"
#include "snug/snug.h"
#include "stats/event.h"

static unsigned polls;

static void count_poll(void)
{
    polls++;
}

static int begin(void **state)
{
    options_reset(state);
    events_handler = count_poll;
    events.wanted.watch = 1;
    return 0;
}

static int end(void **state)
{
    events.any = 0;
    events_handler = NULL;
    return options_reset(state);
}

/* Fills a few magazines' worth of objects of each class with rubbish, and frees them: what waits
 * for the thread from then on is dirty to its end. Often enough that no class is cold any more. */
static void make_dirty(void)
{
    enum { EACH = 40 };
    static char *blocks[CLASS_COUNT][EACH];
    for (unsigned round = 0; round < 5; round++) {
        for (size_t class = 1; class < CLASS_COUNT; class++)
            for (size_t i = 0; i < EACH; i++) {
                blocks[class][i] = block_get(class_bytes(class));
                memset(blocks[class][i], 0xff, class_bytes(class));
            }
        for (size_t class = 1; class < CLASS_COUNT; class++)
            for (size_t i = 0; i < EACH; i++)
                snug_free(blocks[class][i]);
    }
    polls = 0;
}

/* The object that malloc would hand out next for a size. */
static void *next_object(size_t bytes)
{
    return (void *)*thread_self.cache->top[class_of_size(bytes)];
}

/* Frees an object, and another behind it, so that it is not the newest: malloc has it next. */
static void free_before_another(void *block)
{
    size_t bytes = snug_malloc_usable_size(block);
    void *other = snug_malloc(bytes == SMALL_MOST ? 1 : bytes + 1); /* of another class */
    snug_free(block);
    snug_free(other);
}

static void assert_served(const char *call, size_t bytes)
{
    ASSERT_THAT(polls == 0, "%s, %zu bytes: a slow path", call, bytes);
}

TEST(calloc_clears_whole_objects)
{
    make_dirty();
    for (size_t bytes = 1; bytes <= SMALL_MOST; bytes++) {
        void *next = next_object(bytes);
        char *block = snug_calloc(bytes % 3 == 0 ? bytes / 3 : bytes, bytes % 3 == 0 ? 3 : 1);
        assert_served("calloc", bytes);
        assert_ptr_equal(block, next);
        size_t usable = snug_malloc_usable_size(block);
        ASSERT_THAT(usable >= bytes && all_zero(block, usable), "%zu of %zu bytes", bytes, usable);
        memset(block, 0xff, usable);
        free_before_another(block);
        assert_ptr_equal(next_object(bytes), next);
    }
}

/* Objects on both sides keep what is in them. */
TEST(calloc_clears_nothing_else)
{
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        enum { BLOCKS = 3 };
        size_t bytes = class_bytes(class);
        char *blocks[BLOCKS];
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i] = block_get(bytes);
            pattern_fill(blocks[i], bytes, i);
        }
        free_before_another(blocks[1]);
        assert_ptr_equal(snug_calloc(1, bytes), blocks[1]);
        assert_true(pattern_holds(blocks[0], bytes, 0) && pattern_holds(blocks[2], bytes, 2));
        for (size_t i = 0; i < BLOCKS; i++)
            snug_free(blocks[i]);
    }
}

static void *posix_memalign_of(size_t alignment, size_t bytes)
{
    void *block;
    return snug_posix_memalign(&block, alignment, bytes) == 0 ? block : NULL;
}

TEST(aligned_blocks_are_on_an_aligned_grid)
{
    static void *(*const calls[])(size_t, size_t) = {snug_aligned_alloc, snug_memalign,
                                                     posix_memalign_of};
    enum { EACH = 9 }; /* of odd numbers of a class not all can be aligned by chance */
    make_dirty();
    for (size_t alignment = sizeof(void *); alignment <= SMALL_MOST; alignment *= 2)
        for (size_t bytes = 1; bytes <= SMALL_MOST; bytes += 1 + bytes / 16) {
            char *blocks[EACH];
            for (size_t i = 0; i < EACH; i++) {
                blocks[i] = calls[i % 3](alignment, bytes);
                assert_served("aligned", bytes);
                ASSERT_THAT((uintptr_t)blocks[i] % alignment == 0, "%zu at %zu", bytes, alignment);
                size_t usable = snug_malloc_usable_size(blocks[i]);
                ASSERT_THAT(usable >= bytes, "%zu at %zu: %zu", bytes, alignment, usable);
                memset(blocks[i], (int)i, usable);
            }
            for (size_t i = 0; i < EACH; i++) {
                assert_int_equal(blocks[i][0], i);
                snug_free(blocks[i]);
            }
        }
}

/* From every class to every size that a magazine gives: the contents, and where the old one is. */
TEST(realloc_keeps_contents_and_frees_the_old_object)
{
    make_dirty();
    for (size_t from = 1; from < CLASS_COUNT; from++)
        for (size_t bytes = 1; bytes <= BYTES_SHORT; bytes += 5) {
            size_t old_bytes = class_bytes(from), kept = size_min(old_bytes, bytes);
            char *block = snug_malloc(old_bytes);
            pattern_fill(block, old_bytes, from);
            bool stays = bytes <= old_bytes && (bytes > old_bytes / 2 || old_bytes <= 64);
            void *next = stays ? block : next_object(bytes);
            polls = 0;
            char *moved = snug_realloc(block, bytes);
            ASSERT_THAT(moved == next, "from %zu to %zu bytes", old_bytes, bytes);
            ASSERT_THAT(polls == stays, "from %zu to %zu bytes: %u polls", old_bytes, bytes, polls);
            ASSERT_THAT(pattern_holds(moved, kept, from), "from %zu to %zu bytes", old_bytes,
                        bytes);
            if (!stays)
                assert_ptr_equal(next_object(old_bytes), block);
            snug_free(moved);
        }
}

/* What is said of a pointer when it is resized to less and to more, and its size is asked. */
static void assert_refused(char *pointer, const char *finding)
{
    static const size_t sizes[] = {90, 200, 0};
    for (size_t i = 0; i < 3; i++) {
        stderr_capture();
        if (sizes[i] == 0)
            assert_int_equal(snug_malloc_usable_size(pointer), 0);
        else
            assert_null(snug_realloc(pointer, sizes[i]));
        assert_non_null(strstr(stderr_restore(), finding));
    }
}

TEST(what_is_no_live_object_is_refused)
{
    options.misuse = MISUSE_WARN;
    make_dirty();
    char *block = snug_malloc(100);
    snug_free(block);
    assert_refused(block, " is a 112-byte object that is free\n"); /* the newest */
    snug_free(snug_malloc(1));
    assert_refused(block, " is a 112-byte object that is free\n"); /* in a magazine */
    assert_ptr_equal(snug_malloc(100), block);
    assert_refused(block + 16, " is inside a 112-byte object that starts at ");
    assert_int_equal(snug_malloc_usable_size(block), 112);
    snug_free(block);
    assert_heap_sound();
}

/* ---- The newest ---- */

TEST(what_was_freed_last_waits_for_the_next_free)
{
    make_dirty();
    char *a = snug_malloc(100), *b = snug_malloc(200);
    void *next = next_object(100);
    snug_free(a);
    assert_served("free", 100);
    assert_int_equal(thread_self.cache->newest, (uintptr_t)a);
    assert_int_equal(thread_self.cache->newest_class, class_of_size(100));
    assert_ptr_equal(next_object(100), next);
    snug_free(b);
    assert_ptr_equal(next_object(100), a);
    assert_int_equal(thread_self.cache->newest, (uintptr_t)b);
    assert_heap_sound();
    assert_ptr_equal(snug_malloc(100), a);
    snug_free(a);
    assert_served("all of it", 100);
}

/* A magazine that is full makes room for what was freed before, whatever is freed now. */
TEST(room_is_made_for_the_one_before)
{
    enum { MANY = 2000 };
    static char *blocks[MANY];
    make_dirty();
    for (size_t i = 0; i < MANY; i++) {
        blocks[i] = snug_malloc(100);
        pattern_fill(blocks[i], 100, i);
    }
    char *other = snug_malloc(200);
    for (size_t i = 0; i < MANY; i++) {
        assert_true(pattern_holds(blocks[i], 100, i));
        snug_free(blocks[i]);
        snug_free(other);
        assert_int_equal(thread_self.cache->newest, (uintptr_t)other);
        char *again = snug_malloc(200);
        assert_ptr_not_equal(again, other);
        other = again;
    }
    assert_heap_sound();
    snug_free(other);
}

TEST(a_thread_without_a_magazine_of_the_class_gives_the_one_before_back)
{
    make_dirty();
    char *a = snug_malloc(100), *b = snug_malloc(200);
    snug_free(a);
    cache_flush(thread_self.cache);
    assert_int_equal(thread_self.cache->newest, 0);
    assert_int_equal(thread_self.cache->newest_class, 0);
    snug_free(b);
    assert_int_equal(thread_self.cache->newest, (uintptr_t)b);
    options.thread_cache = 0; /* no magazine any more */
    char *c = snug_malloc(300);
    snug_free(c);
    assert_int_equal(thread_self.cache->newest, (uintptr_t)c);
    assert_int_equal(cache_count(NULL, thread_self.cache, class_of_size(200)), 0);
    assert_heap_sound();
}

TEST(a_second_free_is_seen_at_once)
{
    options.misuse = MISUSE_WARN;
    make_dirty();
    char *block = snug_malloc(100);
    snug_free(block);
    stderr_capture();
    snug_free(block);
    assert_non_null(strstr(stderr_restore(), "double free"));
    assert_heap_sound();
}

/* With a free of another class in between it is seen before the object is handed out twice. */
TEST(what_was_freed_twice_is_handed_out_once)
{
    options.misuse = MISUSE_WARN;
    make_dirty();
    char *block = snug_malloc(100);
    snug_free(block);
    snug_free(snug_malloc(200));
    snug_free(block);
    snug_free(snug_malloc(200));
    assert_ptr_equal(snug_malloc(100), block);
    stderr_capture();
    char *next = snug_malloc(100);
    assert_non_null(strstr(stderr_restore(), "freed twice"));
    assert_ptr_not_equal(next, block);
    snug_free(next);
    snug_free(block);
    assert_heap_sound();
}

/* A program that only resizes, where its blocks are, is asked now and then as well. */
TEST(realloc_in_place_polls)
{
    char *block = snug_malloc(64);
    polls = 0;
    for (size_t i = 0; i < 10; i++)
        assert_ptr_equal(snug_realloc(block, 60 + i % 4), block);
    assert_int_equal(polls, 10);
    snug_free(block);
}

TEST(other_heaps_serve_from_magazines_as_well)
{
    snug_heap *heap = snug_heap_create(NULL);
    assert_non_null(heap);
    for (unsigned i = 0; i < 200; i++) {
        char *block = snug_heap_malloc(heap, 200);
        memset(block, 0xff, 200);
        snug_heap_free(heap, block);
    }
    polls = 0;
    char *block = snug_heap_calloc(heap, 8, 25);
    assert_served("heap_calloc", 200);
    assert_true(all_zero(block, snug_malloc_usable_size(block)));
    snug_heap_free(heap, block);
    for (unsigned i = 0; i < 2; i++) {
        polls = 0;
        block = snug_heap_aligned_alloc(heap, 64, 130);
        assert_int_equal((uintptr_t)block % 64, 0);
        snug_heap_free(heap, block);
    }
    assert_served("heap_aligned_alloc", 130);
    snug_heap_destroy(heap);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(calloc_clears_whole_objects, begin, end),
        ROW_WITH(calloc_clears_nothing_else, begin, end),
        ROW_WITH(aligned_blocks_are_on_an_aligned_grid, begin, end),
        ROW_WITH(realloc_keeps_contents_and_frees_the_old_object, begin, end),
        ROW_WITH(what_is_no_live_object_is_refused, begin, end),
        ROW_WITH(what_was_freed_last_waits_for_the_next_free, begin, end),
        ROW_WITH(room_is_made_for_the_one_before, begin, end),
        ROW_WITH(a_thread_without_a_magazine_of_the_class_gives_the_one_before_back, begin, end),
        ROW_WITH(a_second_free_is_seen_at_once, begin, end),
        ROW_WITH(what_was_freed_twice_is_handed_out_once, begin, end),
        ROW_WITH(realloc_in_place_polls, begin, end),
        ROW_WITH(other_heaps_serve_from_magazines_as_well, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
