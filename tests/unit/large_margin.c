/*
 * Tests of pageheap/large_margin.h: what is written past the end of a large block, or to one that
 * waits, is told, and nothing else is.
 */
#include "page_heap_support.h"

#include <pthread.h>
#include <string.h>

#include "pageheap/large.h"
#include "platform/lock.h"
#include "platform/memory.h"

static const size_t sizes[] = {PAGE_BYTES - 1, 100001,  200000,      300008,
                               MIB + 4088,     MIB + 1, 5 * MIB + 7, 9 * MIB - 16};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static char *take(size_t bytes)
{
    size_t dirty;
    char *start = large_alloc(&page_heap, bytes, PAGE_BYTES, &dirty);
    assert_non_null(start);
    return start;
}

static void assert_overflow(struct misuse misuse, const char *start, size_t bytes)
{
    assert_int_equal(misuse.kind, MISUSE_OVERFLOW);
    assert_int_equal(misuse.address, (uintptr_t)start);
    assert_int_equal(misuse.bytes, bytes);
}

static struct misuse give(char *start)
{
    return large_free(&page_heap, (uintptr_t)start);
}

static struct misuse measure(const char *start, size_t wanted)
{
    size_t bytes = 0;
    struct misuse misuse = large_usable(&page_heap, (uintptr_t)start, &bytes);
    assert_int_equal(bytes, wanted);
    return misuse;
}

/* A block that is new, or that was full before. */
static char *take_as(size_t bytes, bool used)
{
    if (used) {
        size_t whole = align_up(bytes, PAGE_BYTES);
        char *before = take(whole);
        memset(before, 0x77, whole);
        assert_int_equal(give(before).kind, MISUSE_NONE);
    }
    return take(bytes);
}

/* The page in which the margin begins, but not the margin. */
static void touch_last_page(char *start, size_t bytes)
{
    start[align_down(bytes, PAGE_BYTES)] = 1;
}

TEST(an_overflow_is_told_once_by_whoever_looks)
{
    NEED_SMALL_PAGES;
    for (size_t i = 0; i < SIZES; i++)
        for (unsigned used = 0; used < 2; used++) {
            size_t bytes = sizes[i], last = align_up(bytes, PAGE_BYTES) - 1;
            char *start = take_as(bytes, used != 0);
            touch_last_page(start, bytes);
            assert_int_equal(measure(start, bytes).kind, MISUSE_NONE);
            start[bytes] ^= 0x40; /* never zero: the lowest bit of a seal is set in each byte */
            assert_overflow(measure(start, bytes), start, bytes);
            assert_int_equal(measure(start, bytes).kind, MISUSE_NONE);
            start[last] ^= 0x40; /* from below, by who has the block behind */
            assert_overflow(give(start), start, bytes);
            assert_page_heap_sound();
            page_heap_purge(&page_heap, 0);
        }
    assert_page_heap_empty();
}

TEST(a_zero_behind_a_block_that_was_used_before_is_told)
{
    size_t count = 0;
    for (size_t i = 0; i < SIZES; i++) {
        char *start = take_as(sizes[i], true);
        touch_last_page(start, sizes[i]);
        bool sealed = start[sizes[i]] != 0;      /* the memory of a mapping of its own may be new */
        bool told = sealed && sizes[i] % 8 != 7; /* of a single byte no other is left */
        count += told;
        start[sizes[i]] = 0;
        struct misuse misuse = give(start);
        if (told)
            assert_overflow(misuse, start, sizes[i]);
        page_heap_purge(&page_heap, 0);
    }
    assert_in_range(count, 3, SIZES);
    assert_page_heap_empty();
}

/* Of so many blocks whose last page is written to, and the last word of the margin written over,
 * how many are told of. */
static unsigned count_told(unsigned blocks)
{
    unsigned told = 0;
    for (unsigned i = 0; i < blocks; i++) {
        size_t bytes = 300000 + i * PAGE_BYTES;
        char *start = take(bytes);
        touch_last_page(start, bytes);
        start[align_up(bytes, PAGE_BYTES) - 1] ^= 0x40;
        told += give(start).kind == MISUSE_OVERFLOW;
        page_heap_purge(&page_heap, 0);
    }
    return told;
}

enum written { NOTHING, BEGINNING, END, ZERO };

/* Of so many blocks, in the last page of each of which a byte is written or nothing, how many have
 * a margin. */
static unsigned count_looked_at(unsigned blocks, enum written written)
{
    unsigned looked_at = 0;
    for (unsigned i = 0; i < blocks; i++) {
        size_t bytes = 300000 + i * PAGE_BYTES;
        char *start = take(bytes);
        looked_at += large_table_find(&page_heap.large, start)->margin != MARGIN_NONE;
        volatile char *at =
            start + (written == END ? bytes - 8 : align_down(bytes, PAGE_BYTES) + 7);
        if (written != NOTHING)
            *at = written != ZERO;
        assert_int_equal(give(start).kind, MISUSE_NONE);
        page_heap_purge(&page_heap, 0);
    }
    return looked_at;
}

TEST(margins_in_pages_that_stay_untouched_are_seldom_looked_at)
{
    NEED_SMALL_PAGES;
    assert_int_equal(count_told(100), 100);
    assert_int_equal(count_looked_at(64, NOTHING), 64);
    /* the first, and after 8, 16 and 32 others one */
    assert_int_equal(count_looked_at(100, NOTHING), 4);
    assert_in_range(count_told(100), 100 - 64, 99);
    assert_int_equal(count_told(100), 100);
    assert_int_equal(count_looked_at(100, BEGINNING), 100);
    assert_int_equal(count_looked_at(100, END), 100);
    options.check = CHECK_FULL; /* then all are */
    assert_int_equal(count_looked_at(200, NOTHING), 200);
    options.check = CHECK_FAST;
    assert_page_heap_empty();
}

static size_t last_page_resident(const char *start, size_t bytes)
{
    return os_resident_bytes(start + align_down(bytes, PAGE_BYTES), PAGE_BYTES);
}

/* Takes a block that has a margin, whatever was looked at in vain before. */
static char *take_looked_at(size_t bytes)
{
    page_heap.margins_seen.wait = 0;
    return take(bytes);
}

/* The same, and the system may be asked for it. */
static char *take_asked_for(size_t bytes)
{
    page_heap.margins_asked.wait = 0;
    return take_looked_at(bytes);
}

/* A block whose pages count as used before, though nobody touched the last of them. */
static char *take_half_of_untouched(size_t bytes)
{
    assert_int_equal(give(take_asked_for(2 * bytes)).kind, MISUSE_NONE);
    return take_asked_for(bytes);
}

/* Frees it after a write over the last word of its margin. Whether that is told. */
static bool is_told(char *start, size_t bytes)
{
    start[align_up(bytes, PAGE_BYTES) - 1] ^= 0x40;
    bool told = give(start).kind == MISUSE_OVERFLOW;
    page_heap_purge(&page_heap, 0);
    return told;
}

static void *begin_and_end(void *unused)
{
    return unused;
}

/* From now on locks are as beside threads. */
static void begin_threads(void)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, begin_and_end, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static int begin_on_memory_of_the_system(void **state)
{
    int result = page_heap_begin(state);
    page_heap_begin_on(&provider_os);
    options.dirty = 400 * PAGE_BYTES;
    options.huge_pages = HUGE_PAGES_NEVER;
    return result;
}

/* A block that is filled with zeros has a page that tells nothing, and is there. */
TEST(margins_in_pages_full_of_zeros_are_all_looked_at)
{
    NEED_SMALL_PAGES;
    char *much = take(400 * PAGE_BYTES);
    assert_int_equal(count_looked_at(500, ZERO), 500);
    assert_in_range(count_looked_at(500, NOTHING), 10, 100);
    assert_int_equal(give(much).kind, MISUSE_NONE);
}

TEST(beside_threads_a_page_that_is_not_there_is_not_looked_at)
{
    NEED_SMALL_PAGES;
    enum { BYTES = 300000, MUCH = 400 * PAGE_BYTES };
    bool alone = lock_is_alone(); /* where libc tells */
    char *much = take(MUCH);
    char *start = take_half_of_untouched(BYTES);
    if (alone)
        assert_int_equal(last_page_resident(start, BYTES), PAGE_BYTES);
    assert_int_equal(is_told(start, BYTES), alone);
    begin_threads();
    start = take_half_of_untouched(BYTES);
    assert_int_equal(last_page_resident(start, BYTES), 0);
    assert_false(is_told(start, BYTES));
    start = take_asked_for(BYTES); /* all zero: there it is looked for what was written */
    assert_true(is_told(start, BYTES));
    assert_int_equal(give(take_asked_for(BYTES)).kind, MISUSE_NONE); /* and this is in vain again */
    page_heap_purge(&page_heap, 0);
    start = take_asked_for(BYTES);
    assert_int_equal(measure(start, BYTES).kind, MISUSE_NONE);
    assert_int_equal(last_page_resident(start, BYTES), 0);
    assert_true(is_told(start, BYTES));
    start = take_asked_for(BYTES);
    assert_int_equal(give(start).kind, MISUSE_NONE);
    assert_int_equal(last_page_resident(start, BYTES), 0);
    assert_ptr_equal(take_asked_for(BYTES), start); /* the same again: nobody asks twice */
    assert_int_equal(give(start).kind, MISUSE_NONE);
    assert_int_equal(last_page_resident(start, BYTES), PAGE_BYTES);
    page_heap_purge(&page_heap, 0);
    options.check = CHECK_FULL;
    assert_true(is_told(take_half_of_untouched(BYTES), BYTES));
    options.check = CHECK_FAST;
    assert_int_equal(give(much).kind, MISUSE_NONE); /* then the heap is small */
    page_heap_purge(&page_heap, 0);
    start = take_half_of_untouched(BYTES);
    assert_int_equal(last_page_resident(start, BYTES), PAGE_BYTES);
    assert_true(is_told(start, BYTES));
}

/* One look in vain makes the system be asked, and eight more that less is looked at. */
TEST(beside_threads_untouched_pages_are_soon_looked_at_seldom)
{
    NEED_SMALL_PAGES;
    char *much = take(400 * PAGE_BYTES);
    begin_threads();
    assert_int_equal(count_told(100), 100);
    /* the first nine, and after 8, 16 and 32 others one */
    assert_int_equal(count_looked_at(100, NOTHING), 12);
    assert_in_range(count_told(100), 100 - 64, 99);
    assert_int_equal(count_told(100), 100);
    options.check = CHECK_FULL;
    assert_int_equal(count_looked_at(100, NOTHING), 100);
    options.check = CHECK_FAST;
    assert_int_equal(give(much).kind, MISUSE_NONE);
}

/* A page that is there tells nothing, but that it is there: soon the system is asked seldom. */
TEST(beside_threads_the_system_is_asked_while_pages_are_not_there)
{
    NEED_SMALL_PAGES;
    enum { BYTES = 300000 };
    const struct backoff *asked = &page_heap.margins_asked;
    char *much = take(400 * PAGE_BYTES);
    begin_threads();
    assert_int_equal(count_looked_at(3, NOTHING), 3);
    assert_true(page_heap.margins_in_vain != 0 && backoff_is_over(asked));
    for (uint32_t waits = BACKOFF_LEAST; waits <= 2 * BACKOFF_LEAST; waits *= 2)
        for (uint32_t i = 0; i <= waits; i++) {
            assert_int_equal(asked->wait, i == 0 ? 0 : waits + 1 - i);
            char *start = take_looked_at(BYTES);
            start[align_down(BYTES, PAGE_BYTES) + 100] = 1;
            assert_int_equal(give(start).kind, MISUSE_NONE);
            page_heap_purge(&page_heap, 0);
        }
    assert_true(backoff_is_over(asked));
    assert_int_equal(give(take_looked_at(BYTES)).kind, MISUSE_NONE);
    assert_int_equal(asked->waited, 0); /* it was not there: it is asked each time again */
    assert_int_equal(give(much).kind, MISUSE_NONE);
}

/* What was taken together says once that it was in vain. */
TEST(many_that_are_freed_together_are_one_reason_to_look_at_less)
{
    NEED_SMALL_PAGES;
    enum { BLOCKS = 200 };
    char *starts[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++)
        starts[i] = take(300000);
    for (size_t i = 0; i < BLOCKS; i++)
        assert_int_equal(give(starts[i]).kind, MISUSE_NONE);
    assert_int_equal(page_heap.margins_seen.wait, BACKOFF_LEAST);
    page_heap_purge(&page_heap, 0);
    assert_page_heap_empty();
}

TEST(what_is_filled_and_resized_is_sound)
{
    uint64_t seed = 1;
    char *live[8] = {0};
    size_t bytes[8] = {0};
    for (unsigned turn = 0; turn < 4000; turn++) {
        size_t at = random_below(&seed, 8), wanted = 20000 + random_below(&seed, 600000);
        char *resized = NULL;
        if (live[at] != NULL && random_below(&seed, 2) == 0)
            resized = large_resize(&page_heap, (uintptr_t)live[at], wanted);
        if (resized == NULL && live[at] != NULL)
            assert_int_equal(give(live[at]).kind, MISUSE_NONE);
        live[at] = resized != NULL ? resized : take(wanted);
        bytes[at] = wanted;
        assert_int_equal(measure(live[at], wanted).kind, MISUSE_NONE);
        if (random_below(&seed, 3) != 0)
            memset(live[at], 0x55, wanted);
    }
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(measure(live[i], bytes[i]).kind, MISUSE_NONE);
        assert_int_equal(give(live[i]).kind, MISUSE_NONE);
    }
    page_heap_purge(&page_heap, 0);
    assert_page_heap_empty();
}

TEST(a_write_to_a_block_that_waits_is_told_once)
{
    for (size_t word = 0; word < 8; word++) {
        char *start = take(300000);
        memset(start, 1, 300000);
        assert_int_equal(give(start).kind, MISUSE_NONE);
        assert_int_equal(large_inspect(&page_heap).kind, MISUSE_NONE);
        start[8 * word + 3] ^= 0x10;
        struct misuse misuse = large_inspect(&page_heap);
        assert_int_equal(misuse.kind, MISUSE_WRITTEN);
        assert_int_equal(misuse.address, (uintptr_t)start);
        assert_int_equal(misuse.bytes, 300000);
        assert_int_equal(misuse.found, ((uint64_t *)(void *)start)[word]);
        assert_int_equal(large_inspect(&page_heap).kind, MISUSE_NONE);
        assert_ptr_equal(take(300000), start);
        assert_int_equal(give(start).kind, MISUSE_NONE);
    }
    page_heap_purge(&page_heap, 0);
    assert_page_heap_empty();
}

/* Its first word is zero still, and stays so. */
TEST(a_block_that_nobody_wrote_to_is_not_written_to)
{
    char *start = take(300000);
    assert_int_equal(give(start).kind, MISUSE_NONE);
    assert_int_equal(large_inspect(&page_heap).kind, MISUSE_NONE);
    assert_ptr_equal(take(300000), start);
    for (size_t i = 0; i < align_up(300000, PAGE_BYTES); i++)
        assert_int_equal(start[i], 0);
    assert_int_equal(give(start).kind, MISUSE_NONE);
    page_heap_purge(&page_heap, 0);
    assert_page_heap_empty();
}

/* Who writes one byte too far, always the same, is seen at nearly all blocks of a process: no byte
 * of the seals is the same for all. */
TEST(each_byte_of_a_seal_depends_on_the_block)
{
    enum { BLOCKS = 256 };
    unsigned seen[8][256] = {{0}};
    for (size_t i = 0; i < BLOCKS; i++) {
        struct span span = {.start = (char *)0x7f1234500000 + i * 50 * PAGE_BYTES};
        uint64_t seal = span_seal(&span);
        for (unsigned byte = 0; byte < 8; byte++)
            seen[byte][seal >> 8 * byte & 0xff]++;
    }
    for (unsigned byte = 0; byte < 8; byte++)
        for (unsigned value = 0; value < 256; value++)
            ASSERT_THAT(seen[byte][value] <= BLOCKS / 8, "byte %u is %u in %u of %d", byte, value,
                        seen[byte][value], BLOCKS);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(an_overflow_is_told_once_by_whoever_looks, page_heap_begin, page_heap_end),
        ROW_WITH(each_byte_of_a_seal_depends_on_the_block, page_heap_begin, page_heap_end),
        ROW_WITH(a_zero_behind_a_block_that_was_used_before_is_told, page_heap_begin,
                 page_heap_end),
        ROW_WITH(margins_in_pages_that_stay_untouched_are_seldom_looked_at, page_heap_begin,
                 page_heap_end),
        ROW_WITH(margins_in_pages_full_of_zeros_are_all_looked_at, begin_on_memory_of_the_system,
                 page_heap_end),
        ROW_WITH(beside_threads_a_page_that_is_not_there_is_not_looked_at,
                 begin_on_memory_of_the_system, page_heap_end),
        ROW_WITH(beside_threads_untouched_pages_are_soon_looked_at_seldom,
                 begin_on_memory_of_the_system, page_heap_end),
        ROW_WITH(beside_threads_the_system_is_asked_while_pages_are_not_there,
                 begin_on_memory_of_the_system, page_heap_end),
        ROW_WITH(many_that_are_freed_together_are_one_reason_to_look_at_less, page_heap_begin,
                 page_heap_end),
        ROW_WITH(what_is_filled_and_resized_is_sound, page_heap_begin, page_heap_end),
        ROW_WITH(a_write_to_a_block_that_waits_is_told_once, page_heap_begin, page_heap_end),
        ROW_WITH(a_block_that_nobody_wrote_to_is_not_written_to, page_heap_begin, page_heap_end),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
