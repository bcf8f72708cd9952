/*
 * Tests of heap/heap.h: blocks of every size and alignment, zeroing, resizing, trimming, and the
 * totals. Misuse is in heap_misuse.c.
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

/* ---- Resizing ---- */

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
            char *resized = heap_resize(block, *to);
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
        blocks[i] = blocks[i] == NULL ? block_get(bytes) : heap_resize(blocks[i], bytes);
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
    block = heap_resize(block, to);
    assert_non_null(block);
    bool same = (uintptr_t)block == start;
    heap_free(block);
    return same;
}

/* Objects of a class for which the heap uses slabs, whatever it does for the first requests. */
static void warm_up(size_t bytes)
{
    char *blocks[64];
    for (size_t i = 0; i < 64; i++)
        blocks[i] = block_get(bytes);
    for (size_t i = 0; i < 64; i++)
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

TEST(medium_blocks_grow_in_place_where_there_is_room)
{
    heap_trim(0); /* so that the four lie side by side */
    char *wall = block_get(60000), *block = block_get(20000), *next = block_get(20000);
    char *behind = block_get(60000);
    heap_free(next);
    heap_trim(0);
    assert_ptr_equal(heap_resize(block, 35000), block);
    assert_ptr_equal(heap_resize(block, 18000), block);
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
        block = heap_resize(block, bytes);
        changes += heap_usable(block, "test") != usable;
        assert_in_range(heap_usable(block, "test"), bytes, bytes + bytes / 8 + 256);
    }
    assert_in_range(changes, 4, 20);   /* of 200 */
    block = heap_resize(block, 20000); /* at a leap: as much as is asked for */
    assert_in_range(heap_usable(block, "test"), 20000, 20000 + 256);
    heap_free(block);
}

/* The bytes of a block of so many that grew, and could not where it was. */
static size_t usable_when_moved(size_t from, size_t to)
{
    enum { ALL = 16 };
    char *all[ALL];
    size_t first = 0;
    for (size_t i = 0; i < ALL; i++)
        all[i] = block_get(from);
    for (size_t i = 0; i < ALL * ALL; i++) /* one that another is behind of */
        if (is_behind(all[i % ALL], all[i / ALL], from))
            first = i / ALL;
    char *moved = heap_resize(all[first], to);
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
    assert_int_equal(usable_when_moved(300000, 310000), 310000 + 310000 / 8);
    assert_int_equal(usable_when_moved(300000, 400000), 400000); /* at a leap */
    assert_int_equal(usable_when_moved(1200000, 1250000), 1250000);
}

TEST(a_large_block_keeps_what_it_got_in_order_to_grow)
{
    char *block = block_get(900000);
    assert_ptr_equal(heap_resize(block, 800000), block);
    assert_int_equal(heap_usable(block, "test"), 900000); /* it is nearly all */
    assert_ptr_equal(heap_resize(block, 700000), block);
    assert_int_equal(heap_usable(block, "test"), 700000);
    block = heap_resize(block, 1100000);
    block = heap_resize(block, 1090000);
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
        grown[i] = (uintptr_t)heap_resize(block_get(100), 777);
        assert_true(page_map_is_cell(grown[i]));
        heap_free((void *)grown[i]);
    }
    assert_int_equal(grown[0], grown[1]);
}

/* Takes blocks of 3,000 B, frees them, and takes one that is longer: it lies where some of them
 * were. */
static void take_where_shorter_ones_wait(size_t alignment)
{
    enum { BLOCKS = 60, LONGER = 100000 };
    uintptr_t blocks[BLOCKS], low = UINTPTR_MAX, high = 0;
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
        ROW(resizing_keeps_the_contents),
        ROW(resizing_at_random_keeps_the_contents),
        ROW(small_blocks_move_only_if_it_is_worth_it),
        ROW(medium_blocks_grow_in_place_where_there_is_room),
        ROW(medium_blocks_move_only_if_they_lose_most_of_themselves),
        ROW(blocks_that_creep_are_given_more),
        ROW(so_are_large_blocks_up_to_1_MiB),
        ROW(a_large_block_keeps_what_it_got_in_order_to_grow),
        ROW(rare_sizes_and_blocks_that_grow_are_served_by_what_was_freed),
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
