/*
 * Tests of heap/heap.h: blocks of every size and alignment, zeroing, large blocks that are resized,
 * trimming, and the totals. Other resizing is in heap_resize.c, misuse in heap_misuse.c.
 */
#include "heap_support.h"

#include <errno.h>
#include <string.h>

#include "meta/meta.h"
#include "options/options.h"

/* ---- Taking ---- */

static void take_every_size(void)
{
    for (size_t bytes = 0; bytes < 32 * MIB; bytes += 1 + (bytes < 3000 ? 0 : bytes / 17)) {
        char *block = block_get(bytes);
        size_t usable = heap_usable(block, "test");
        assert_true(usable >= bytes && (usable > 0) == (bytes > 0));
        if (usable != 0) { /* otherwise nobody may */
            block[0] = 1;
            block[usable - 1] = 1;
        }
        heap_free(block);
    }
    for (const size_t *bytes = border_sizes; *bytes != 0; bytes++) {
        char *block = block_get(*bytes);
        assert_true(heap_usable(block, "test") >= *bytes);
        /* No more than an eighth, or a page, is wasted. */
        assert_true(heap_usable(block, "test") <= *bytes + size_max(*bytes / 8, PAGE_BYTES));
        memset(block, 1, heap_usable(block, "test"));
        heap_free(block);
    }
}

TEST(every_size_is_had)
{
    with_and_without_cache(take_every_size);
}

static void keep_blocks_apart(void)
{
    enum { BLOCKS = 400 };
    static char *blocks[BLOCKS];
    static size_t sizes[BLOCKS];
    uint64_t seed = 1;
    for (size_t i = 0; i < BLOCKS; i++) {
        sizes[i] = random_below(&seed, (size_t)1 << random_below(&seed, 19));
        blocks[i] = block_get(sizes[i]);
        sizes[i] = heap_usable(blocks[i], "test"); /* all of which is ours */
        pattern_fill(blocks[i], sizes[i], i);
    }
    assert_heap_sound();
    for (size_t i = 0; i < BLOCKS; i++) {
        assert_true(pattern_holds(blocks[i], sizes[i], i));
        heap_free(blocks[i]);
    }
    assert_heap_sound();
}

TEST(blocks_do_not_overlap)
{
    with_and_without_cache(keep_blocks_apart);
}

static void take_every_alignment(void)
{
    for (size_t alignment = 1; alignment <= 64 * MIB; alignment *= 2)
        for (const size_t *bytes = border_sizes;; bytes++) {
            char *block = heap_alloc_aligned(alignment, *bytes);
            ASSERT_THAT(block != NULL, "%zu at a multiple of %zu", *bytes, alignment);
            ASSERT_THAT(((uintptr_t)block & (size_max(alignment, MIN_ALIGN) - 1)) == 0,
                        "%zu at a multiple of %zu", *bytes, alignment);
            size_t usable = heap_usable(block, "test");
            assert_true(usable >= *bytes && (usable > 0 || *bytes == 0));
            if (usable != 0) {
                block[0] = 1;
                block[usable - 1] = 1;
            }
            heap_free(block);
            if (*bytes == 0)
                break;
        }
}

TEST(every_alignment_is_had_for_every_size)
{
    with_and_without_cache(take_every_alignment);
}

TEST(what_was_freed_last_serves_only_what_it_is_aligned_for)
{
    enum { COUNT = 8, BYTES = 3 * PAGE_BYTES }; /* as many as may wait */
    char *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        blocks[i] = heap_alloc_aligned(PAGE_BYTES, BYTES);
    for (size_t i = 0; i < COUNT; i++)
        heap_free(blocks[i]);
    assert_ptr_equal(heap_alloc_aligned(PAGE_BYTES, BYTES), blocks[COUNT - 1]);
    heap_free(blocks[COUNT - 1]);
    for (size_t i = 0; i < COUNT; i++) {
        events.any = 0; /* or the short way is not taken */
        blocks[i] = heap_alloc_aligned(64 * KIB, BYTES);
        assert_int_equal((uintptr_t)blocks[i] % (64 * KIB), 0);
    }
    for (size_t i = 0; i < COUNT; i++)
        heap_free(blocks[i]);
    assert_heap_sound();
}

TEST(impossible_requests_are_refused_at_once)
{
    static const size_t sizes[] = {MAX_REQUEST + 1, PTRDIFF_MAX, SIZE_MAX - 4096, SIZE_MAX};
    struct heap_totals before = heap_totals();
    for (size_t i = 0; i < 4; i++) {
        assert_null(heap_alloc(sizes[i]));
        assert_null(heap_alloc_zero(sizes[i]));
        for (size_t alignment = 1; alignment != 0; alignment *= 2)
            assert_null(heap_alloc_aligned(alignment, sizes[i]));
    }
    assert_null(heap_alloc_aligned((size_t)1 << 63, 1));
    assert_null(heap_alloc(MAX_REQUEST));
    struct heap_totals after = heap_totals();
    assert_int_equal(after.huge, before.huge);
    assert_int_equal(after.segments, before.segments);
    assert_heap_sound();
}

static void take_zero_of_every_size(void)
{
    for (unsigned round = 0; round < 3; round++)
        for (const size_t *bytes = border_sizes; *bytes != 0; bytes++) {
            /* Dirty memory first, so that it is likely to be had again. */
            char *dirty[3];
            for (size_t i = 0; i < 3; i++)
                memset(dirty[i] = block_get(*bytes), 0xff, *bytes);
            for (size_t i = 0; i < 3; i++)
                heap_free(dirty[i]);
            char *block = heap_alloc_zero(*bytes);
            assert_non_null(block);
            ASSERT_THAT(all_zero(block, *bytes), "%zu bytes", *bytes);
            memset(block, 0xff, *bytes);
            heap_free(block);
        }
    char *none = heap_alloc_zero(0);
    assert_non_null(none);
    heap_free(none);
}

TEST(zeroed_blocks_are_zero)
{
    with_and_without_cache(take_zero_of_every_size);
}

/* ---- What waits, and resizing large blocks ---- */

/* Takes blocks of 3,000 B, frees them, and takes one that is longer: it lies where some of them
 * were. */
static void take_where_shorter_ones_wait(size_t alignment)
{
    enum { BLOCKS = 60, LONGER = 100000 };
    uintptr_t blocks[BLOCKS], low = UINTPTR_MAX, high = 0;
    heap_trim(0); /* a free cell that other tests left would serve */
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = (uintptr_t)block_get(3000);
        low = blocks[i] < low ? blocks[i] : low;
        high = size_max(high, blocks[i]);
    }
    void *behind = block_get(LONGER);
    for (size_t i = 0; i < BLOCKS; i++)
        heap_free((void *)blocks[i]);
    uintptr_t longer = (uintptr_t)heap_alloc_aligned(alignment, LONGER);
    ASSERT_THAT(longer < high && longer + LONGER > low, "%zx, %zx..%zx", longer, low, high);
    heap_free((void *)longer);
    heap_free(behind);
}

TEST(what_waits_is_joined_before_a_heap_grows)
{
    take_where_shorter_ones_wait(MIN_ALIGN);
    take_where_shorter_ones_wait(256);
}

TEST(large_blocks_are_resized_without_a_copy)
{
    char *block = block_get(200 * KIB);
    assert_ptr_equal(heap_resize(block, 150 * KIB), block);
    assert_ptr_equal(heap_resize(block, 200 * KIB), block);
    heap_free(block);
    block = block_get(3 * MIB);
    strcpy(block, "huge");
    block = heap_resize(block, 300 * MIB); /* which would take long to copy */
    assert_string_equal(block, "huge");
    assert_int_equal(heap_usable(block, "test"), 300 * MIB);
    block = heap_resize(block, 2 * MIB);
    assert_int_equal(heap_usable(block, "test"), 2 * MIB);
    assert_string_equal(block, "huge");
    heap_free(block);
}

/* A block of which little is written is copied, into a mapping of its own or what is `kept`.
 * Returns how much of the copy is in memory. */
static size_t copy_little(bool kept)
{
    enum { BYTES = 20 * MIB + 5000, APART = 100 * PAGE_BYTES };
    char *block = block_get(BYTES);
    memset(block, 0, BYTES / 4); /* as if they had been touched */
    for (size_t i = 0; i < BYTES; i += APART)
        block[i + i / APART] = 7;
    memset(block + BYTES / 2, 8, 3 * PAGE_BYTES + 1);
    block[BYTES - 1] = 9;
    size_t huge = heap_default.page_heap.huge_count;
    char *moved = heap_resize(block, 30 * MIB);
    assert_ptr_not_equal(moved, block);
    assert_int_equal(heap_default.page_heap.huge_count, huge + !kept);
    size_t there = os_resident_bytes(moved, 30 * MIB), sum = 0;
    for (size_t i = 0; i < BYTES; i++)
        sum += (size_t)moved[i];
    assert_int_equal(moved[BYTES / 2 + 3 * PAGE_BYTES], 8);
    assert_int_equal(moved[BYTES - 1], 9);
    assert_int_equal(sum, (BYTES / APART + 1) * 7 + (3 * PAGE_BYTES + 1) * 8 + 9);
    heap_free(moved);
    return there;
}

TEST(what_was_never_written_occupies_no_memory_after_a_copy)
{
    NEED_SMALL_PAGES;
    size_t border = heap_default.page_heap.large_most;
    heap_default.page_heap.large_most = LARGE_MOST;
    heap_trim(0);
    const struct provider *system = heap_default.page_heap.provider;
    struct provider copies = *system;
    copies.detach = NULL;
    heap_default.page_heap.provider = &copies;
    assert_in_range(copy_little(false), 50 * PAGE_BYTES, 70 * PAGE_BYTES);
    heap_default.page_heap.provider = system;
    /* What others left is written over. */
    options.dirty = GIB;
    char *other = block_get(100 * MIB);
    memset(other, 0xff, 100 * MIB);
    heap_free(other);
    copy_little(true);
    options_reset(NULL);
    heap_default.page_heap.large_most = border;
    heap_trim(0);
}

TEST(a_refused_resize_leaves_the_block)
{
    for (const size_t *bytes = border_sizes; *bytes != 0; bytes++) {
        char *block = block_get(*bytes);
        pattern_fill(block, *bytes, 5);
        assert_null(heap_resize(block, MAX_REQUEST + 1));
        assert_null(heap_resize(block, SIZE_MAX));
        assert_null(heap_resize(block, MAX_REQUEST));
        assert_null(heap_resize(block, (size_t)1 << 50));
        assert_true(pattern_holds(block, *bytes, 5));
        assert_true(heap_usable(block, "test") >= *bytes);
        heap_free(block);
    }
}

/* ---- errno ---- */

TEST(errno_is_kept_by_frees)
{
    for (const size_t *bytes = border_sizes; *bytes != 0; bytes++) {
        char *block = block_get(*bytes);
        errno = 77;
        heap_free(block);
        assert_int_equal(errno, 77);
    }
    heap_free(NULL);
    assert_int_equal(errno, 77);
}

/* ---- Trimming and totals ---- */

static size_t idle_of(const struct heap_totals *totals)
{
    return totals->small_free + totals->small_depots + totals->small_cached;
}

static void assert_totals_add_up(void)
{
    struct heap_totals totals = heap_totals();
    size_t free = 0, waiting = 0, cached = 0;
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        struct class_totals objects = class_totals(class);
        assert_int_equal(objects.total,
                         objects.live + objects.cached + objects.depots + objects.free);
        free += objects.free * class_bytes(class);
        waiting += objects.depots * class_bytes(class);
        cached += objects.cached * class_bytes(class);
    }
    assert_int_equal(totals.small_free, free);
    assert_int_equal(totals.small_depots, waiting);
    assert_int_equal(totals.small_cached, cached);
    assert_int_equal(totals.segments,
                     totals.slabs + totals.cells + totals.large + totals.dirty + totals.clean);
    assert_int_equal(totals.slabs, totals.small_live + idle_of(&totals) + totals.slabs_waste);
    assert_int_equal(totals.cells, totals.cells_live + totals.cells_free + totals.cells_cached +
                                       totals.cells_waste);
    assert_true(totals.meta_mapped > 0 && totals.meta_used > 0);
    assert_true((totals.huge == 0) == (totals.huge_count == 0));
}

TEST(totals_follow_what_is_taken)
{
    heap_trim(0);
    struct heap_totals before = heap_totals();
    char *small[1000], *cells[20], *large[3], *huge[2];
    for (size_t i = 0; i < 1000; i++)
        small[i] = block_get(64);
    for (size_t i = 0; i < 20; i++)
        cells[i] = block_get(100000);
    for (size_t i = 0; i < 3; i++)
        large[i] = block_get(500 * KIB);
    for (size_t i = 0; i < 2; i++)
        huge[i] = block_get(LARGE_MOST + 5 * MIB);
    struct heap_totals totals = heap_totals();
    assert_totals_add_up();
    assert_int_equal(totals.small_live - before.small_live, 64000);
    assert_in_range(totals.cells_live - before.cells_live, 2000000, 2010000);
    assert_int_equal(totals.large - before.large, 1500 * KIB);
    assert_int_equal(totals.huge - before.huge, 2 * (LARGE_MOST + 5 * MIB));
    assert_int_equal(totals.huge_count - before.huge_count, 2);
    for (size_t i = 0; i < 1000; i++)
        heap_free(small[i]);
    for (size_t i = 0; i < 20; i++)
        heap_free(cells[i]);
    for (size_t i = 0; i < 3; i++)
        heap_free(large[i]);
    for (size_t i = 0; i < 2; i++)
        heap_free(huge[i]);
    assert_totals_add_up();
    totals = heap_totals();
    assert_true(totals.small_depots > 0);
    assert_int_equal(totals.small_live, before.small_live);
    assert_int_equal(totals.cells_live, before.cells_live);
    assert_int_equal(totals.large, before.large);
    assert_int_equal(totals.huge, before.huge);
    assert_heap_sound();
}

/* A large block that waits near a processor is in use for the page heap, and for nobody else. */
TEST(totals_leave_out_what_waits_near_a_processor)
{
    struct page_heap *page_heap = &heap_default.page_heap;
    enum { BYTES = 300 * KIB };
    size_t dirty;
    heap_trim(0);
    heap_free(block_get(BYTES));
    __atomic_fetch_add(&lock_waits[RANK_PAGE_HEAP], 1, __ATOMIC_RELAXED); /* as if one waited */
    char *block = large_alloc(page_heap, BYTES, MIN_ALIGN, &dirty);
    struct heap_totals before = heap_totals();
    while (!nearby_put(page_heap, (uintptr_t)block)) { /* the thread had moved */
        heap_free(block);
        __atomic_fetch_add(&lock_waits[RANK_PAGE_HEAP], 1, __ATOMIC_RELAXED);
        block = large_alloc(page_heap, BYTES, MIN_ALIGN, &dirty);
    }
    struct heap_totals after = heap_totals();
    assert_totals_add_up();
    assert_int_equal(before.large - after.large, BYTES);
    assert_int_equal(before.large_count - after.large_count, 1);
    assert_int_equal(before.large_requested - after.large_requested, BYTES);
    assert_int_equal(after.dirty - before.dirty, BYTES);
    assert_int_equal(after.free_runs - before.free_runs, 1);
    assert_int_equal(after.segments, before.segments);
    heap_trim(0);
    assert_int_equal(heap_totals().large, after.large);
    assert_true(heap_totals().dirty <= after.dirty - BYTES);
    assert_heap_sound();
}

TEST(a_trim_gives_free_memory_back)
{
    enum { BLOCKS = 3000 };
    static char *blocks[BLOCKS];
    uint64_t seed = 4;
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t bytes = 1 + random_below(&seed, i % 100 == 0 ? 300000 : 2000);
        memset(blocks[i] = block_get(bytes), 1, bytes);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        heap_free(blocks[i]);
    assert_true(heap_totals().dirty > 0);
    size_t kept = 512 * KIB;
    heap_trim(kept);
    assert_true(heap_totals().dirty <= kept);
    assert_totals_add_up();
    assert_true(heap_trim(0) > 0);
    struct heap_totals totals = heap_totals();
    assert_int_equal(totals.dirty, 0);
    assert_int_equal(totals.small_cached + totals.small_depots + totals.cells_cached, 0);
    assert_int_equal(totals.small_live, 0);
    assert_int_equal(totals.slabs + totals.cells + totals.large, 0);
    assert_int_equal(totals.segments, 0);
    assert_int_equal(heap_trim(0), 0); /* nothing is left to give */
    assert_heap_sound();
}

TEST(classes_are_counted_one_by_one)
{
    size_t class = class_of_size(48);
    size_t live = class_totals(class).live;
    char *blocks[100];
    for (size_t i = 0; i < 100; i++)
        blocks[i] = block_get(48);
    assert_int_equal(class_totals(class).live, live + 100);
    for (size_t i = 0; i < 100; i++)
        heap_free(blocks[i]);
    assert_int_equal(class_totals(class).live, live);
    assert_true(class_totals(class).cached > 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(every_size_is_had),
        ROW(blocks_do_not_overlap),
        ROW(every_alignment_is_had_for_every_size),
        ROW(what_was_freed_last_serves_only_what_it_is_aligned_for),
        ROW(impossible_requests_are_refused_at_once),
        ROW(zeroed_blocks_are_zero),
        ROW(what_waits_is_joined_before_a_heap_grows),
        ROW(large_blocks_are_resized_without_a_copy),
        ROW(what_was_never_written_occupies_no_memory_after_a_copy),
        ROW(a_refused_resize_leaves_the_block),
        ROW(errno_is_kept_by_frees),
        ROW(totals_follow_what_is_taken),
        ROW(totals_leave_out_what_waits_near_a_processor),
        ROW(a_trim_gives_free_memory_back),
        ROW(classes_are_counted_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
