/*
 * The process's heap in tests. See heap_support.h.
 */
#include "heap_support.h"

#include <string.h>

#include "heap/heap.h"
#include "options/options.h"

/* From where blocks have mappings of their own in these tests: low, or most of their time would be
 * for filling such blocks. */
#define BORDER_TO_HUGE (2 * MIB)

const size_t border_sizes[] = {1,
                               15,
                               16,
                               17,
                               256,
                               257,
                               SMALL_MOST - 1,
                               SMALL_MOST,
                               SMALL_MOST + 1,
                               4095,
                               4096,
                               16384,
                               16385,
                               32 * KIB,
                               CELL_MOST - 1,
                               CELL_MOST,
                               CELL_MOST + 1,
                               500000,
                               BORDER_TO_HUGE - 1,
                               BORDER_TO_HUGE,
                               BORDER_TO_HUGE + 1,
                               5 * MIB,
                               0};

void assert_heap_sound(void)
{
    const char *wrong = heap_check();
    if (wrong != NULL)
        fail_msg("%s", wrong);
}

char *block_get(size_t bytes)
{
    char *block = heap_alloc(bytes);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % MIN_ALIGN, 0);
    return block;
}

static uint64_t standing_clock(void)
{
    return 1;
}

void heap_clock_stop(void)
{
    heap_init();
    heap_default.page_heap.now_exact = standing_clock;
}

void with_and_without_cache(void (*test)(void))
{
    for (unsigned i = 0; i < 100; i++) /* so that there is a cache */
        heap_free(heap_alloc(16));
    struct cache *own = thread_self.cache;
    assert_true(cache_exists(own));
    heap_default.page_heap.large_most = BORDER_TO_HUGE;
    test();
    thread_self.cache = (struct cache *)&cache_none;
    options.check = CHECK_FULL;
    test();
    options.check = CHECK_FAST;
    thread_self.cache = own;
    assert_heap_sound();
}

static char pattern_at(size_t place, uint64_t seed)
{
    return (char)((place * 0x9e3779b9u + seed) >> 7);
}

/* All of a short block; of a long one the ends, and something of every page. */
static size_t pattern_next(size_t place, size_t bytes)
{
    return bytes <= 8192 || place < 64 || place + 64 >= bytes ? place + 1
                                                              : size_min(place + 61, bytes - 64);
}

void pattern_fill(char *block, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i++)
        block[i] = pattern_at(i, seed);
}

bool pattern_holds(const char *block, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i = pattern_next(i, bytes))
        if (block[i] != pattern_at(i, seed))
            return false;
    return true;
}

bool all_zero(const char *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (block[i] != 0)
            return false;
    return true;
}
