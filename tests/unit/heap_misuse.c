/*
 * Tests of what the heap says of wrong pointers, at once or when they leave the magazine, for every
 * kind of block and every call; and of heap_check.
 */
#include "heap_support.h"

#include <stdio.h>
#include <string.h>

#include "options/options.h"

enum call { FREE, RESIZE, USABLE };
static const char *const call_names[] = {"free", "realloc", "malloc_usable_size"};

static void call_with(enum call call, char *block)
{
    if (call == FREE)
        heap_free(block);
    else if (call == RESIZE)
        assert_null(heap_resize(block, 100));
    else
        assert_int_equal(heap_usable(block, "malloc_usable_size"), 0);
}

/* Each call with this address says one line, made from the call's name and `finding`. */
static void assert_wrong(char *address, const char *format, ...)
{
    char finding[160], expected[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding, sizeof(finding), format, arguments);
    va_end(arguments);
    for (enum call call = FREE; call <= USABLE; call++) {
        stderr_capture();
        call_with(call, address);
        const char *said = stderr_restore();
        snprintf(expected, sizeof(expected), "snug: invalid %s: %#zx%s\n", call_names[call],
                 (uintptr_t)address, finding);
        assert_string_equal(said, expected);
    }
}

/* A freed block: the words for free differ from those for other calls. */
static void assert_free_already(char *block, size_t bytes)
{
    char expected[256];
    for (enum call call = FREE; call <= USABLE; call++) {
        stderr_capture();
        call_with(call, block);
        const char *said = stderr_restore();
        if (call == FREE)
            snprintf(expected, sizeof(expected), "snug: double free: %#zx, a %zu-byte object\n",
                     (uintptr_t)block, bytes);
        else
            snprintf(expected, sizeof(expected),
                     "snug: invalid %s: %#zx is a %zu-byte object that is free\n", call_names[call],
                     (uintptr_t)block, bytes);
        assert_string_equal(said, expected);
    }
}

/* One size of each kind of block. */
static const size_t sizes[] = {24, 1000, 5000, 100000, 300000, 3000000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* ---- At once ---- */

static void free_twice(void)
{
    options.misuse = MISUSE_WARN;
    for (size_t i = 0; i < SIZES; i++) {
        char *before = block_get(sizes[i]), *block = block_get(sizes[i]);
        char *behind = block_get(sizes[i]);
        size_t usable = heap_usable(block, "test");
        memset(block, 0, usable);
        heap_free(block);
        assert_free_already(block, usable);
        heap_free(before);
        assert_free_already(before, usable);
        heap_free(behind);
        assert_heap_sound();
    }
}

TEST(a_second_free_is_said)
{
    with_and_without_cache(free_twice);
}

static void free_inside(void)
{
    options.misuse = MISUSE_WARN;
    static const size_t offsets[] = {1, 4, 8, 16};
    for (size_t i = 0; i < SIZES; i++) {
        char *block = block_get(sizes[i]);
        size_t usable = heap_usable(block, "test");
        pattern_fill(block, usable, 1);
        for (size_t j = 0; j < 4; j++)
            assert_wrong(block + offsets[j], " is inside a %zu-byte object that starts at %#zx",
                         usable, (uintptr_t)block);
        assert_wrong(block + usable - 1, " is inside a %zu-byte object that starts at %#zx", usable,
                     (uintptr_t)block);
        assert_true(pattern_holds(block, usable, 1)); /* nothing was written */
        heap_free(block);
    }
    assert_heap_sound();
}

TEST(a_pointer_into_a_block_is_said)
{
    with_and_without_cache(free_inside);
}

static void free_foreign(void)
{
    int local = 5;
    static int global;
    char *const wild[] = {(char *)&local,
                          (char *)&global,
                          (char *)1,
                          (char *)16,
                          (char *)0xdead0000,
                          (char *)((uintptr_t)1 << 47),
                          (char *)((uintptr_t)1 << 48),
                          (char *)0xdeadbeefdeadbee0,
                          (char *)UINTPTR_MAX,
                          (char *)(uintptr_t)call_with};
    options.misuse = MISUSE_WARN;
    for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++)
        assert_wrong(wild[i], " was not allocated by snug");
    assert_int_equal(local, 5);
    assert_heap_sound();
}

TEST(what_is_not_ours_is_said)
{
    with_and_without_cache(free_foreign);
}

/* ---- Later: what cannot be seen before the magazine is emptied ---- */

/* An address on the grid of a slab, in memory that was never handed out, looks like an object. */
static char *never_handed_out(void)
{
    char *last = NULL;
    for (unsigned i = 0; i < 500; i++) {
        char *block = block_get(208);
        last = block > last ? block : last;
    }
    return last + 208 * 30;
}

static void free_and_flush(void *argument)
{
    heap_free(argument);
    heap_exit();
}

TEST(at_the_latest_a_flush_says_it)
{
    for (unsigned i = 0; i < 100; i++)
        heap_free(heap_alloc(208));
    assert_true(cache_exists(thread_self.cache));
    assert_aborts(free_and_flush, never_handed_out(), " was not allocated by snug\n");
}

static void free_copied_key(void *argument)
{
    /* The key of another object is not this one's. */
    char *block = argument, *other = block_get(64);
    heap_free(other);
    memcpy(block, other, 64);
    heap_free(block);
    CHILD_CHECK(heap_check() == NULL);
}

TEST(a_copied_key_does_not_make_an_object_free)
{
    for (unsigned i = 0; i < 100; i++)
        heap_free(heap_alloc(64));
    assert_succeeds(free_copied_key, block_get(64));
}

static void double_free_of(void *argument)
{
    heap_free(argument);
    heap_free(argument);
}

TEST(by_default_the_process_aborts)
{
    for (size_t i = 0; i < SIZES; i++)
        assert_aborts(double_free_of, block_get(sizes[i]), "snug: double free: 0x");
}

static void overrun(void *argument)
{
    char *block = argument, *next = block_get(3000);
    memset(block, 'A', heap_usable(block, "test") + 8); /* over the header of what follows */
    heap_free(next);
}

TEST(an_overrun_header_is_said)
{
    /* Neighbours: both are cut from a fresh span. */
    heap_trim(0);
    assert_aborts(overrun, block_get(3000), " was overwritten\n");
}

/* ---- heap_check ---- */

#define PLANT(field, damage, expected) ASSERT_FOUND(field, damage, heap_check(), expected)

TEST(faults_of_every_layer_are_found)
{
    char *small = block_get(64), *medium = block_get(5000), *large = block_get(300000);
    struct page_heap *page_heap = &heap_default.page_heap;
    PLANT(page_heap->used_pages, page_heap->used_pages + 1,
          "the page counts of the runs are wrong");
    struct arena *arena = heap_default.arenas.list[0];
    struct bin *bin = &arena->classes[class_of_size(64)].bin;
    PLANT(bin->free_objects, bin->free_objects + 1, "a bin's count of free objects is wrong");
    PLANT(arena->cells.free_units, 0, "the count of free cell units is wrong");
    heap_free(small);
    heap_free(medium);
    heap_free(large);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(a_second_free_is_said),
        ROW(a_pointer_into_a_block_is_said),
        ROW(what_is_not_ours_is_said),
        ROW(at_the_latest_a_flush_says_it),
        ROW(a_copied_key_does_not_make_an_object_free),
        ROW(by_default_the_process_aborts),
        ROW(an_overrun_header_is_said),
        ROW(faults_of_every_layer_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
