/*
 * Tests of span/ when the provider fails: a script of everything that can be done with spans and
 * large blocks is run again and again, each time with another call of the provider failing. After
 * each step all invariants hold, what failed succeeds when it is tried again, and in the end
 * everything is given back.
 */
#include "page_heap_support.h"

#include <stdio.h>
#include <string.h>

#include "options/options.h"
#include "pageheap/large.h"

enum { BLOCKS = 16 };

struct block {
    char *start;
    size_t bytes;
};

static struct block blocks[BLOCKS];
static char script_place[96]; /* for messages */

/* ---- Contents: a word at the beginning and at the end of each block ---- */

static void mark(struct block *block)
{
    memcpy(block->start, &block->bytes, sizeof(block->bytes));
    memcpy(block->start + block->bytes - sizeof(block->bytes), &block->bytes, sizeof(block->bytes));
}

static void assert_mark(const struct block *block, size_t kept)
{
    ASSERT_THAT(memcmp(block->start, &block->bytes, sizeof(block->bytes)) == 0, "%s", script_place);
    if (kept == block->bytes)
        ASSERT_THAT(memcmp(block->start + kept - sizeof(kept), &kept, sizeof(kept)) == 0, "%s",
                    script_place);
}

/* ---- Steps; each returns whether it succeeded ---- */

enum action { TAKE, TAKE_ALIGNED, GIVE, RESIZE, PURGE };

struct step {
    enum action action;
    size_t block;
    size_t bytes;
};

static bool step_take(struct block *block, size_t bytes, size_t alignment)
{
    size_t dirty;
    char *start = large_alloc(&page_heap, bytes, alignment, &dirty);
    if (start == NULL)
        return false;
    ASSERT_THAT(((uintptr_t)start & (alignment - 1)) == 0, "%s", script_place);
    for (size_t i = dirty; i < bytes; i += 1024)
        ASSERT_THAT(start[i] == 0, "%s: at %zu", script_place, i);
    *block = (struct block){start, bytes};
    mark(block);
    return true;
}

static bool step_resize(struct block *block, size_t bytes)
{
    size_t kept = size_min(bytes, block->bytes);
    char *start = large_resize(&page_heap, (uintptr_t)block->start, bytes);
    if (start == NULL) {
        assert_mark(block, block->bytes);
        return false;
    }
    block->start = start;
    assert_mark(block, kept == bytes ? 0 : kept);
    block->bytes = bytes;
    mark(block);
    return true;
}

static bool step_give(struct block *block)
{
    size_t usable = 0;
    assert_mark(block, block->bytes);
    assert_int_equal(large_usable(&page_heap, (uintptr_t)block->start, &usable).kind, MISUSE_NONE);
    struct misuse misuse = large_free(&page_heap, (uintptr_t)block->start);
    ASSERT_THAT(misuse.kind == MISUSE_NONE, "%s", script_place);
    block->start = NULL;
    return true;
}

static bool step_do(const struct step *step)
{
    struct block *block = &blocks[step->block];
    switch (step->action) {
    case TAKE:
        return step_take(block, step->bytes, PAGE_BYTES);
    case TAKE_ALIGNED:
        return step_take(block, step->bytes, 128 * KIB);
    case RESIZE:
        return step_resize(block, step->bytes);
    case GIVE:
        return step_give(block);
    default:
        page_heap_purge(&page_heap, step->bytes >> PAGE_SHIFT);
        return true;
    }
}

/* ---- The script ---- */

static const struct step script[] = {
    {TAKE, 0, 100 * KIB},
    {TAKE, 1, 900 * KIB},
    {TAKE_ALIGNED, 2, 500 * KIB},
    {TAKE, 3, 3 * MIB},
    {TAKE_ALIGNED, 4, 2 * MIB},
    {GIVE, 0, 0},
    {TAKE, 5, 1000 * KIB},
    {TAKE, 6, 1000 * KIB},
    {TAKE, 7, 1000 * KIB}, /* a second segment */
    {RESIZE, 3, 9 * MIB},
    {RESIZE, 7, 400 * KIB},
    {RESIZE, 7, 500 * KIB},
    {PURGE, 0, 100 * KIB},
    {TAKE, 8, 64 * KIB},
    {GIVE, 2, 0},
    {GIVE, 1, 0}, /* beyond what may be dirty */
    {RESIZE, 3, 2 * MIB},
    {TAKE, 9, 1024 * KIB},
    {TAKE, 10, 1024 * KIB},
    {TAKE, 11, 1024 * KIB},
    {TAKE, 12, 1024 * KIB},
    {TAKE, 14, 1024 * KIB},
    {TAKE, 15, 1024 * KIB},
    {TAKE, 0, 1024 * KIB},
    {TAKE, 1, 1024 * KIB},
    {TAKE, 2, 1024 * KIB}, /* a third and a fourth */
    {RESIZE, 4, 5 * MIB},
    {GIVE, 12, 0},
    {PURGE, 0, 0},
    {GIVE, 3, 0},
    {TAKE, 3, 1100 * KIB},
    {GIVE, 15, 0},
    {GIVE, 0, 0},
    {GIVE, 14, 0},
    {GIVE, 2, 0},
    {GIVE, 1, 0},
    {GIVE, 6, 0},
    {GIVE, 5, 0},
    {GIVE, 8, 0},
    {GIVE, 7, 0},
    {TAKE_ALIGNED, 13, 300 * KIB},
    {GIVE, 9, 0},
    {GIVE, 10, 0},
    {GIVE, 11, 0},
    {GIVE, 13, 0},
    {GIVE, 3, 0},
    {GIVE, 4, 0},
    {PURGE, 0, 0},
};
enum { STEPS = sizeof(script) / sizeof(script[0]) };

/* Runs the script with the calls from `first` to `last` failing. Returns how many steps failed. */
static unsigned script_run(unsigned first, unsigned last)
{
    unsigned failures = 0;
    page_heap_begin(NULL);
    options.dirty = 1 * MIB;
    fake.fail_first = first;
    fake.fail_last = last;
    for (size_t i = 0; i < STEPS; i++) {
        snprintf(script_place, sizeof(script_place), "calls %u to %u fail, step %zu", first, last,
                 i);
        while (!step_do(&script[i])) {
            const char *wrong = page_heap_check(&page_heap);
            ASSERT_THAT(wrong == NULL, "%s: %s", script_place, wrong);
            ASSERT_THAT(fake.failed != 0, "%s fails by itself", script_place);
            ASSERT_THAT(fake.calls <= last, "%s fails once more", script_place);
            failures++;
        }
        const char *wrong = page_heap_check(&page_heap);
        ASSERT_THAT(wrong == NULL, "%s: %s", script_place, wrong);
    }
    fake.fail_first = UINT32_MAX;
    assert_page_heap_empty();
    return failures;
}

static void run_with_failures(unsigned length)
{
    unsigned failures = 0;
    unsigned first = 1;
    for (;; first++) {
        failures += script_run(first, first + length - 1);
        bool reached = fake.failed != 0;
        assert_int_equal(page_heap_end(NULL), 0);
        if (!reached)
            break;
    }
    assert_true(first > 25); /* so many calls does the script make at least */
    assert_true(failures > 0);
}

TEST(without_failures_the_script_succeeds)
{
    assert_int_equal(script_run(UINT32_MAX, UINT32_MAX), 0);
    assert_true(fake.takes >= 7 && fake.gives >= 7 && fake.purges >= 3 && fake.resizes == 3);
    assert_int_equal(fake.failed, 0);
    assert_int_equal(page_heap_end(NULL), 0);
}

TEST(any_one_call_may_fail)
{
    run_with_failures(1);
}

TEST(any_two_calls_in_a_row_may_fail)
{
    run_with_failures(2);
}

TEST(any_five_calls_in_a_row_may_fail)
{
    run_with_failures(5);
}

TEST(without_a_provider_nothing_is_had_and_nothing_breaks)
{
    page_heap_begin(NULL);
    fake.refuse_take = true;
    size_t dirty;
    for (size_t bytes = 1; bytes <= 64 * MIB; bytes *= 4) {
        assert_null(large_alloc(&page_heap, bytes, PAGE_BYTES, &dirty));
        assert_null(large_alloc(&page_heap, bytes, 16 * PAGE_BYTES, &dirty));
    }
    assert_null(span_new(SPAN_SLAB, 4, 4 * PAGE_BYTES));
    assert_page_heap_sound();
    assert_int_equal(page_heap.segment_pages, 0);
    fake.refuse_take = false;
    span_put(span_get(4));
    assert_page_heap_empty();
    page_heap_end(NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(without_failures_the_script_succeeds),
        ROW(any_one_call_may_fail),
        ROW(any_two_calls_in_a_row_may_fail),
        ROW(any_five_calls_in_a_row_may_fail),
        ROW(without_a_provider_nothing_is_had_and_nothing_breaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
