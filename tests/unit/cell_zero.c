/*
 * Tests of what cells know to be zero (cells_alloc): the part of the newest span that was
 * never used, whatever is cut from it, joined with it again, grown into it, or purged; and that
 * calloc touches no more of it than it must.
 */
#include "heap/user_heaps.h" /* before names of ours that parameters in it have too */

#include "cell_support.h"
#include "heap_calls.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "options/options.h"
#include "platform/memory.h"

static size_t said_zero, said_in_part, said_nothing;

static int begin(void **state)
{
    said_zero = said_in_part = said_nothing = 0;
    return cells_begin(state);
}

static bool is_zero(const char *start, size_t bytes)
{
    return bytes == 0 || (start[0] == 0 && memcmp(start, start + 1, bytes - 1) == 0);
}

/* A block of which what is said to be zero is; then it is written to, all of it. */
static uintptr_t alloc_aligned(size_t bytes, size_t alignment, size_t *dirty)
{
    struct misuse misuse = {.kind = MISUSE_NONE};
    *dirty = 12345;
    uintptr_t block = (uintptr_t)cells_alloc(&cells, bytes, alignment, CELLS_NEW, &misuse, dirty);
    assert_int_equal(misuse.kind, MISUSE_NONE);
    assert_true(block != 0 && (block & (alignment - 1)) == 0);
    size_t usable = cell_bytes(block), known = size_min(*dirty, usable);
    ASSERT_THAT(is_zero((char *)block + known, usable - known),
                "%zu bytes at a multiple of %zu are not zero behind %zu", usable, alignment, known);
    said_zero += known == 0;
    said_in_part += known != 0 && known < usable;
    said_nothing += known == usable;
    memset((void *)block, 0xff, usable);
    return block;
}

static uintptr_t take(size_t bytes)
{
    size_t dirty;
    return alloc_aligned(bytes, MIN_ALIGN, &dirty);
}

/* ---- One by one ---- */

/* The header and the links that a free cell begins with. */
enum { WRITTEN = 64 };

TEST(a_new_span_is_zero_but_for_what_stood_in_it)
{
    size_t dirty;
    uintptr_t blocks[10];
    for (size_t i = 0; i < 10; i++) {
        blocks[i] = alloc_aligned(50000, MIN_ALIGN, &dirty);
        assert_in_range(dirty, 0, WRITTEN);
    }
    assert_int_equal(cells.span_count, 1);
    for (size_t i = 0; i < 10; i++)
        cell_put(blocks[i]);
    assert_cells_empty();
}

TEST(what_was_freed_is_not_zero)
{
    size_t dirty;
    uintptr_t wall = take(2000), block = take(50000), behind = take(2000);
    cell_put(block);
    assert_int_equal(alloc_aligned(50000, MIN_ALIGN, &dirty), block);
    assert_int_equal(dirty, SIZE_MAX);
    cell_put(block);
    cell_put(behind); /* all joined with what was never used */
    block = alloc_aligned(100000, MIN_ALIGN, &dirty);
    assert_in_range(dirty, 52000, 52000 + 3 * WRITTEN);
    cell_put(block);
    cell_put(wall);
    assert_cells_empty();
}

TEST(what_grew_into_it_is_not_zero)
{
    size_t dirty;
    uintptr_t wall = take(2000), block = take(2000);
    assert_true(cell_resize(block, 60000, 0));
    memset((void *)block, 0xff, cell_bytes(block));
    assert_true(cell_resize(block, 3000, 0));
    uintptr_t next = alloc_aligned(70000, MIN_ALIGN, &dirty);
    assert_in_range(dirty, 56000, 57000 + WRITTEN);
    cell_put(next);
    cell_put(block);
    cell_put(wall);
    assert_cells_empty();
}

TEST(what_is_cut_off_for_alignment_counts)
{
    size_t dirty;
    uintptr_t wall = take(2000);
    uintptr_t block = alloc_aligned(20000, 2048, &dirty);
    assert_in_range(dirty, 0, WRITTEN);
    uintptr_t next = alloc_aligned(20000, MIN_ALIGN, &dirty);
    assert_in_range(dirty, 0, WRITTEN);
    cell_put(next);
    cell_put(block);
    cell_put(wall);
    assert_cells_empty();
}

TEST(of_an_aligned_block_counts_what_lies_in_it)
{
    size_t dirty;
    uintptr_t wall = take(2000);
    /* What is free then begins halfway between two multiples of 32 KiB, wherever the span lies. */
    uintptr_t half = (uintptr_t)(48 * KIB) - (uintptr_t)cells.top % (32 * KIB);
    uintptr_t filler = take(half - CELL_HEADER);
    cell_put(take(60000)); /* joined with what was never used */
    uintptr_t written = (uintptr_t)cells.fresh, top = (uintptr_t)cells.top;
    uintptr_t block = alloc_aligned(60000, 32 * KIB, &dirty);
    assert_int_equal(block, align_up(top, 32 * KIB));
    assert_in_range(block - top, 16 * KIB - CELL_UNIT, 16 * KIB);
    assert_int_equal(dirty, written - block);
    cell_put(block);
    cell_put(filler);
    cell_put(wall);
    assert_cells_empty();
}

TEST(a_span_of_kept_pages_is_not_zero)
{
    size_t dirty;
    struct span *span = span_get(CELL_SPAN_BYTES >> PAGE_SHIFT);
    memset(span->start, 0xff, CELL_SPAN_BYTES);
    span_put(span);
    uintptr_t block = alloc_aligned(50000, MIN_ALIGN, &dirty);
    assert_true(dirty >= 50000);
    cell_put(block);
    assert_cells_empty();
}

TEST(the_old_top_keeps_nothing_of_what_was_known)
{
    size_t dirty;
    uintptr_t first = take(3000), rest[REST_MOST];
    struct cell *top = cells.top;
    size_t count = 0;
    while (cells.top == top || cells.span_count == 1) {
        assert_in_range(count, 0, REST_MOST - 1);
        top = cells.span_count == 1 ? cells.top : top;
        rest[count++] = take(120000);
    }
    assert_int_equal(cells.span_count, 2);
    uintptr_t block = alloc_aligned(4000, MIN_ALIGN, &dirty); /* from what was left of it */
    assert_int_equal(dirty, SIZE_MAX);
    cell_put(block);
    for (size_t i = 0; i < count; i++)
        cell_put(rest[i]);
    cell_put(first);
    assert_cells_empty();
}

/* ---- At random ---- */

enum { LIVE = 200 };
static uintptr_t live[LIVE];

static size_t random_bytes(uint64_t *seed)
{
    return 1 + random_below(seed, (size_t)1 << (6 + random_below(seed, 12))) % CELL_MOST;
}

static void random_turn(uint64_t *seed)
{
    uintptr_t *block = &live[random_below(seed, LIVE)];
    size_t dirty;
    if (*block == 0) {
        *block = alloc_aligned(random_bytes(seed), MIN_ALIGN << random_below(seed, 8), &dirty);
    } else if (random_below(seed, 3) == 0) {
        cell_resize(*block, random_bytes(seed), random_below(seed, 2) * random_bytes(seed));
        memset((void *)*block, 0xff, cell_bytes(*block));
    } else {
        cell_put(*block);
        *block = 0;
    }
}

static void random_use(uint64_t seed)
{
    memset(live, 0, sizeof(live));
    for (unsigned turn = 0; turn < 8000; turn++) {
        random_turn(&seed);
        if (random_below(&seed, 100) == 0)
            cells_purge(&cells, true);
        if (random_below(&seed, 500) == 0)
            page_heap_purge(&page_heap, 0);
        if (random_below(&seed, 1500) == 0) /* all is free: the next span is a new one */
            for (size_t i = 0; i < LIVE; i++)
                if (live[i] != 0) {
                    cell_put(live[i]);
                    live[i] = 0;
                }
        if (turn % 100 == 0)
            assert_cells_sound();
    }
    for (size_t i = 0; i < LIVE; i++)
        if (live[i] != 0)
            cell_put(live[i]);
    assert_cells_empty();
}

TEST(random_use_never_says_zero_of_what_is_not)
{
    for (uint64_t seed = 1; seed <= 4; seed++)
        random_use(seed);
    assert_true(said_zero + said_in_part >= 100); /* so it was not for nothing */
    assert_true(said_in_part >= 50);
    assert_true(said_nothing >= 1000);
}

static void *(*take_zero)(const struct provider *provider, size_t bytes, size_t alignment);

static void *take_unclean(const struct provider *provider, size_t bytes, size_t alignment)
{
    void *start = take_zero(provider, bytes, alignment);
    return start == NULL ? NULL : memset(start, 0xcc, bytes);
}

TEST(random_use_where_memory_is_not_zero_when_it_comes)
{
    take_zero = fake.provider.take;
    fake.provider.take = take_unclean;
    fake.provider.unclean = true;
    random_use(5);
    assert_true(said_nothing >= 1000);
}

TEST(random_use_where_nothing_is_purged)
{
    fake.refuse_purge = true;
    memset(live, 0, sizeof(live));
    uint64_t seed = 6;
    for (unsigned turn = 0; turn < 8000; turn++)
        random_turn(&seed);
    for (size_t i = 0; i < LIVE; i++)
        if (live[i] != 0)
            cell_put(live[i]);
    fake.refuse_purge = false;
    assert_cells_empty();
}

/* ---- calloc ---- */

static size_t resident(void)
{
    size_t count = 0;
    for (size_t i = 0; i < fake.range_count; i++) {
        size_t pages = fake.ranges[i].bytes / os_page_size();
        unsigned char *present = malloc(pages);
        assert_int_equal(mincore(fake.ranges[i].start, fake.ranges[i].bytes, present), 0);
        for (size_t j = 0; j < pages; j++)
            count += present[j] & 1;
        free(present);
    }
    return count;
}

/* Takes 30 fresh blocks. Returns how many pages are there for each. */
static size_t pages_each(size_t bytes)
{
    enum { BLOCKS = 30 };
    struct heap *heap = heap_create(&(struct heap_settings){.provider = &fake.provider});
    assert_non_null(heap);
    char *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = heap_alloc_zero_in(heap, bytes);
        assert_non_null(blocks[i]);
    }
    size_t pages = resident();
    for (size_t i = 0; i < BLOCKS; i++)
        assert_true(is_zero(blocks[i], bytes));
    heap_destroy(heap);
    return pages / BLOCKS;
}

TEST(calloc_touches_of_fresh_memory_what_it_must)
{
    static const size_t sizes[] = {20000, 40000, 100000, CELL_MOST, 200000, 900000, 5000000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        assert_in_range(pages_each(sizes[i]), 0, sizes[i] <= CELL_MOST ? 2 : 0);
}

TEST(calloc_of_what_was_used_is_zero)
{
    struct heap *heap = heap_create(&(struct heap_settings){.provider = &fake.provider});
    static const size_t sizes[] = {1025, 3000, 20000, 60000, 100000, CELL_MOST};
    for (unsigned round = 0; round < 6; round++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            char *blocks[40];
            for (size_t j = 0; j < 40; j++) {
                blocks[j] = heap_alloc_zero_in(heap, sizes[i]);
                ASSERT_THAT(is_zero(blocks[j], sizes[i]), "%zu bytes", sizes[i]);
                memset(blocks[j], 0xff, heap_usable(blocks[j], "test"));
            }
            for (size_t j = 0; j < 40; j++)
                heap_free(blocks[(j * 7) % 40]);
            if (round % 2 == 1)
                heap_trim_of(heap, 0);
        }
    heap_destroy(heap);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(a_new_span_is_zero_but_for_what_stood_in_it, begin, page_heap_end),
        ROW_WITH(what_was_freed_is_not_zero, begin, page_heap_end),
        ROW_WITH(what_grew_into_it_is_not_zero, begin, page_heap_end),
        ROW_WITH(what_is_cut_off_for_alignment_counts, begin, page_heap_end),
        ROW_WITH(of_an_aligned_block_counts_what_lies_in_it, begin, page_heap_end),
        ROW_WITH(a_span_of_kept_pages_is_not_zero, begin, page_heap_end),
        ROW_WITH(the_old_top_keeps_nothing_of_what_was_known, begin, page_heap_end),
        ROW_WITH(random_use_never_says_zero_of_what_is_not, begin, page_heap_end),
        ROW_WITH(random_use_where_memory_is_not_zero_when_it_comes, begin, page_heap_end),
        ROW_WITH(random_use_where_nothing_is_purged, begin, page_heap_end),
        ROW_WITH(calloc_touches_of_fresh_memory_what_it_must, begin, page_heap_end),
        ROW_WITH(calloc_of_what_was_used_is_zero, begin, page_heap_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
