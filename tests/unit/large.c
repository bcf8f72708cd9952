/*
 * Tests of pageheap/large.h: large blocks in segments, huge ones in mappings of their own, resizing
 * without a copy, and what is said of a wrong address.
 */
#include "page_heap_support.h"

#include <string.h>

#include "meta/meta.h"
#include "pageheap/large.h"

static size_t last_dirty;

static char *take(size_t bytes, size_t alignment)
{
    last_dirty = SIZE_MAX;
    char *start = large_alloc(&page_heap, bytes, alignment, &last_dirty);
    assert_non_null(start);
    assert_int_equal((uintptr_t)start & (alignment - 1), 0);
    assert_int_equal((uintptr_t)start % PAGE_BYTES, 0);
    return start;
}

static void give(char *start)
{
    assert_int_equal(large_free(&page_heap, (uintptr_t)start).kind, MISUSE_NONE);
}

static size_t usable(const char *start)
{
    size_t bytes = 0;
    assert_int_equal(large_usable(&page_heap, (uintptr_t)start, &bytes).kind, MISUSE_NONE);
    return bytes;
}

static char *resize(char *start, size_t bytes)
{
    return large_resize(&page_heap, (uintptr_t)start, bytes);
}

/* ---- Taking ---- */

TEST(sizes_are_rounded_to_pages)
{
    static const size_t sizes[] = {0,       1,      4095,       4096,    4097,        16385,
                                   MIB - 1, BORDER, BORDER + 1, 5000000, 64 * MIB + 1};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *start = take(sizes[i], MIN_ALIGN);
        assert_int_equal(usable(start), size_max(sizes[i], 1));
        assert_int_equal(last_dirty, 0);
        start[0] = 1;
        start[usable(start) - 1] = 1;
        assert_page_heap_sound();
        give(start);
        page_heap_purge(&page_heap, 0);
    }
    assert_page_heap_empty();
}

TEST(huge_blocks_have_mappings_of_their_own)
{
    NEED_SMALL_PAGES;
    char *large = take(BORDER, MIN_ALIGN);
    assert_int_equal(page_heap.huge_count, 0);
    assert_int_equal(page_heap.used_pages, BORDER >> PAGE_SHIFT);
    char *huge = take(BORDER + 1, MIN_ALIGN);
    assert_int_equal(page_heap.huge_count, 1);
    assert_int_equal(page_heap.huge_pages, (BORDER >> PAGE_SHIFT) + 1);
    assert_int_equal(page_heap.used_pages, BORDER >> PAGE_SHIFT);
    assert_int_equal(fake.bytes, 2 * BORDER + PAGE_BYTES);
    give(huge);
    assert_int_equal(page_heap.huge_count, 0);
    assert_int_equal(page_heap.huge_pages, 0);
    assert_int_equal(page_heap.cache.pages, (BORDER >> PAGE_SHIFT) + 1);
    page_heap_purge(&page_heap, 0);
    assert_int_equal(fake.bytes, BORDER);
    give(large);
    assert_page_heap_empty();
}

TEST(any_alignment_is_kept_for_any_size)
{
    static const size_t sizes[] = {1, 100, 5000, 100000, MIB, 3 * MIB};
    for (size_t alignment = 1; alignment <= 256 * MIB; alignment *= 2)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            size_t dirty;
            char *start = large_alloc(&page_heap, sizes[i], alignment, &dirty);
            ASSERT_THAT(start != NULL, "%zu bytes at a multiple of %zu", sizes[i], alignment);
            assert_int_equal((uintptr_t)start & (alignment - 1), 0);
            assert_true(usable(start) >= sizes[i]);
            give(start);
        }
    assert_page_heap_empty();
}

TEST(impossible_requests_are_refused)
{
    size_t dirty;
    size_t used = meta_bytes_used();
    assert_null(large_alloc(&page_heap, MAX_REQUEST + 1, MIN_ALIGN, &dirty));
    assert_null(large_alloc(&page_heap, SIZE_MAX, MIN_ALIGN, &dirty));
    assert_null(large_alloc(&page_heap, 1, (size_t)1 << 63, &dirty));
    assert_null(large_alloc(&page_heap, SIZE_MAX, (size_t)1 << 63, &dirty));
    assert_null(large_alloc(&page_heap, MAX_REQUEST, MIN_ALIGN, &dirty));
    assert_null(large_alloc(&page_heap, MAX_REQUEST, (size_t)1 << 62, &dirty));
    assert_null(large_alloc(&page_heap, (size_t)1 << 47, MIN_ALIGN, &dirty));
    assert_null(large_alloc(&page_heap, (size_t)1 << 44, MIN_ALIGN, &dirty)); /* 2^32 pages */
    assert_int_equal(meta_bytes_used(), used);
    assert_int_equal(fake.range_count, 0);
    assert_page_heap_empty();
}

TEST(reused_pages_are_not_called_zero)
{
    NEED_SMALL_PAGES;
    char *wall = take(1, MIN_ALIGN);
    char *start = take(100 * KIB, MIN_ALIGN);
    assert_int_equal(last_dirty, 0);
    memset(start, 1, 100 * KIB);
    give(start);
    assert_ptr_equal(take(100 * KIB, MIN_ALIGN), start);
    assert_true(last_dirty > 0);
    give(start);
    page_heap_purge(&page_heap, 0);
    assert_ptr_equal(take(100 * KIB, MIN_ALIGN), start);
    assert_int_equal(last_dirty, 0);
    for (size_t i = 0; i < 100 * KIB; i++)
        ASSERT_THAT(start[i] == 0, "at %zu", i);
    give(start);
    give(wall);
    assert_page_heap_empty();
}

/* ---- Resizing ---- */

TEST(a_large_block_is_resized_in_place)
{
    char *start = take(20 * KIB, MIN_ALIGN);
    strcpy(start, "kept");
    for (size_t bytes = 24 * KIB; bytes <= BORDER; bytes += 100 * KIB) {
        assert_ptr_equal(resize(start, bytes), start);
        assert_int_equal(usable(start), bytes);
    }
    char *wall = take(PAGE_BYTES, MIN_ALIGN);
    size_t bytes = usable(start);
    assert_null(resize(start, bytes + 1));
    assert_int_equal(usable(start), bytes);
    assert_ptr_equal(resize(start, bytes - 1), start); /* the same pages */
    assert_int_equal(usable(start), bytes - 1);
    assert_ptr_equal(resize(start, 50 * KIB), start);
    assert_int_equal(usable(start), 50 * KIB);
    assert_int_equal(page_heap.dirty.pages, (bytes - 52 * KIB) >> PAGE_SHIFT);
    assert_ptr_equal(resize(start, bytes), start); /* and into what it left */
    assert_string_equal(start, "kept");
    assert_page_heap_sound();
    give(start);
    give(wall);
    assert_page_heap_empty();
}

TEST(the_border_to_huge_is_not_crossed_without_a_copy)
{
    char *large = take(100 * KIB, MIN_ALIGN), *huge = take(2 * MIB, MIN_ALIGN);
    assert_ptr_equal(resize(large, BORDER + 1), large); /* where there is room */
    assert_ptr_equal(resize(large, 100 * KIB), large);
    char *wall = take(20 * KIB, MIN_ALIGN);
    assert_null(resize(large, BORDER + 1));
    assert_null(resize(large, 10 * MIB));
    assert_int_equal(usable(large), 100 * KIB);
    assert_null(resize(huge, 100 * KIB));
    assert_null(resize(huge, 20 * KIB));
    assert_int_equal(usable(huge), 2 * MIB);
    assert_int_equal(fake.resizes, 0);
    assert_ptr_equal(resize(huge, BORDER / 2), huge); /* a mapping of its own may become shorter */
    assert_int_equal(usable(huge), BORDER / 2);
    assert_int_equal(fake.resizes, 1);
    give(large);
    give(wall);
    give(huge);
    assert_page_heap_empty();
}

TEST(a_huge_block_is_remapped)
{
    NEED_SMALL_PAGES;
    char *start = take(2 * MIB, MIN_ALIGN);
    strcpy(start, "first");
    strcpy(start + 2 * MIB - 8, "last");
    static const size_t sizes[] = {3 * MIB, 64 * MIB, 65 * MIB - 100, 2 * MIB + 1, 2 * MIB};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *before = start;
        start = resize(start, sizes[i]);
        assert_non_null(start);
        assert_int_equal(usable(start), sizes[i]);
        assert_int_equal(page_heap.huge_pages, bytes_to_pages(sizes[i]));
        assert_int_equal(page_heap.huge_count, 1);
        assert_int_equal(fake.bytes, align_up(sizes[i], PAGE_BYTES));
        assert_string_equal(start, "first");
        assert_string_equal(start + 2 * MIB - 8, "last");
        size_t bytes;
        if (start != before)
            assert_int_equal(large_usable(&page_heap, (uintptr_t)before, &bytes).kind,
                             MISUSE_DOUBLE_FREE);
    }
    assert_int_equal(fake.resizes, 5);
    assert_ptr_equal(resize(start, 2 * MIB - 1), start); /* the same pages: nothing to do */
    assert_int_equal(fake.resizes, 5);
    give(start);
    assert_page_heap_empty();
}

TEST(a_refused_remap_leaves_a_huge_block_as_it_was)
{
    char *start = take(2 * MIB, MIN_ALIGN);
    strcpy(start, "kept");
    fake.refuse_resize = true;
    assert_null(resize(start, 3 * MIB));
    assert_null(resize(start, (size_t)1 << 60));
    assert_string_equal(start, "kept");
    assert_int_equal(usable(start), 2 * MIB);
    assert_int_equal(page_heap.huge_count, 1);
    assert_int_equal(page_heap.huge_pages, 2 * MIB >> PAGE_SHIFT);
    give(start);
    assert_page_heap_empty();
}

/* ---- Detaching ---- */

/* A block of a segment, which something behind it keeps from growing where it is. */
static char *take_full(size_t bytes, char **wall)
{
    fake.provider.detach = fake_detach;
    char *start = take(bytes, MIN_ALIGN);
    *wall = take(20 * KIB, MIN_ALIGN);
    assert_ptr_equal(*wall, start + align_up(bytes, PAGE_BYTES));
    memset(start, 7, bytes);
    strcpy(start, "first");
    strcpy(start + bytes - 8, "last");
    return start;
}

TEST(a_block_that_grows_takes_its_pages_along)
{
    NEED_SMALL_PAGES;
    enum { BYTES = 700000 };
    char *wall, *start = take_full(BYTES, &wall);
    size_t segments = page_heap.segment_pages, used = page_heap.used_pages;
    retention_released(&page_heap.retention, GIB >> PAGE_SHIFT, fake_now);
    char *moved = resize(start, 5 * MIB - 100);
    assert_non_null(moved);
    assert_string_equal(moved, "first");
    assert_string_equal(moved + BYTES - 8, "last");
    assert_true(all_bytes_are(moved + align_up(BYTES, PAGE_BYTES), PAGE_BYTES, 0));
    assert_int_equal(usable(moved), 5 * MIB - 100);
    assert_int_equal(fake.resizes, 1);
    assert_int_equal(page_heap.huge_count, 1);
    assert_int_equal(page_heap.huge_pages, 5 * MIB >> PAGE_SHIFT);
    assert_int_equal(page_heap.segment_pages, segments);
    /* Where it was is free, and occupies nothing. */
    size_t pages = bytes_to_pages(BYTES), fresh = (5 * MIB >> PAGE_SHIFT) - pages;
    assert_int_equal(page_heap.used_pages, used - pages);
    assert_int_equal(page_heap_kept_pages(&page_heap), 0);
    assert_int_equal(page_heap.retention.ghosts, (GIB >> PAGE_SHIFT) - fresh);
    size_t bytes;
    assert_int_equal(large_usable(&page_heap, (uintptr_t)start, &bytes).kind, MISUSE_DOUBLE_FREE);
    assert_page_heap_sound();
    assert_ptr_equal(take(BYTES, MIN_ALIGN), start);
    assert_int_equal(last_dirty, 0);
    assert_true(all_bytes_are(start, BYTES, 0));
    /* What grows further is missed as well. */
    moved = resize(moved, 9 * MIB - 100);
    assert_string_equal(moved, "first");
    fresh += pages + (4 * MIB >> PAGE_SHIFT);
    assert_int_equal(page_heap.retention.ghosts, (GIB >> PAGE_SHIFT) - fresh);
    moved = resize(moved, 2 * MIB);
    assert_int_equal(page_heap.retention.ghosts, (GIB >> PAGE_SHIFT) - fresh);
    give(moved);
    give(start);
    give(wall);
    assert_page_heap_empty();
}

TEST(a_block_that_grows_is_copied_into_what_is_kept)
{
    NEED_SMALL_PAGES;
    page_heap.large_most = 8 * MIB;
    options.dirty = GIB;
    char *wall, *start = take_full(700000, &wall);
    give(take(3 * MIB, MIN_ALIGN));
    assert_null(resize(start, 2 * MIB));
    char *moved = resize(start, 4 * MIB);
    assert_non_null(moved);
    assert_int_equal(fake.resizes, 1);
    give(moved);
    give(wall);
    assert_page_heap_empty();
}

/* Little that is kept, with clean pages beside it, spares few new ones, and there would be a copy.
 */
TEST(a_block_that_grows_is_not_copied_into_what_is_hardly_kept)
{
    NEED_SMALL_PAGES;
    page_heap.large_most = 8 * MIB;
    options.prefault = 8 * MIB; /* long segments */
    char *wall, *start = take_full(MIB + 300000, &wall);
    char *kept = take(200 * KIB, MIN_ALIGN);
    memset(kept, 1, 200 * KIB);
    give(kept);
    char *moved = resize(start, 3 * MIB);
    assert_non_null(moved);
    assert_int_equal(fake.resizes, 1);
    assert_true(page_heap_kept_pages(&page_heap) <= 200 * KIB >> PAGE_SHIFT);
    give(moved);
    give(wall);
    assert_page_heap_empty();
}

TEST(a_block_that_cannot_take_its_pages_along_stays)
{
    char *wall, *start = take_full(700000, &wall);
    fake.refuse_resize = true;
    assert_null(resize(start, 2 * MIB));
    fake.refuse_resize = false;
    page_heap.locked = true;
    assert_null(resize(start, 2 * MIB));
    page_heap.locked = false;
    fake.limit = fake.bytes + MIB;
    assert_null(resize(start, 2 * MIB));
    assert_null(resize(start, MIB)); /* is not worth a mapping */
    assert_int_equal(usable(start), 700000);
    assert_string_equal(start, "first");
    assert_int_equal(fake.resizes, 0);
    give(start);
    give(wall);
    assert_page_heap_empty();
}

static size_t asked_for;

static bool might_take_nothing(const struct provider *provider, size_t bytes)
{
    (void)provider;
    asked_for = bytes;
    return false;
}

TEST(what_is_kept_is_given_up_only_if_that_may_help)
{
    size_t dirty;
    fake.most = 8 * MIB;
    give(take(4 * MIB, MIN_ALIGN));
    assert_int_equal(page_heap.cache.count, 1);
    fake.provider.might_take = might_take_nothing;
    assert_null(large_alloc(&page_heap, 16 * MIB, MIN_ALIGN, &dirty));
    assert_int_equal(asked_for, 12 * MIB);
    assert_int_equal(page_heap.cache.count, 1);
    fake.provider.might_take = NULL;
    assert_null(large_alloc(&page_heap, 16 * MIB, MIN_ALIGN, &dirty));
    assert_int_equal(page_heap.cache.count, 0);
    /* What is there already may make up for all of it. */
    give(take(4 * MIB, MIN_ALIGN));
    fake.provider.might_take = might_take_nothing;
    fake.most = 2 * MIB;
    asked_for = 0;
    assert_null(large_alloc(&page_heap, 3 * MIB, MIB, &dirty));
    assert_int_equal(asked_for, 0);
    assert_int_equal(page_heap.cache.count, 0);
    assert_page_heap_empty();
}

TEST(a_huge_mapping_that_cannot_go_loses_its_contents)
{
    char *start = take(2 * MIB, MIN_ALIGN);
    memset(start, 1, 2 * MIB);
    fake.refuse_give = true;
    give(start);
    page_heap_purge(&page_heap, 0);
    assert_int_equal(fake.purged_bytes, 2 * MIB);
    assert_int_equal(start[0] + start[MIB] + start[2 * MIB - 1], 0);
    assert_int_equal(page_heap.huge_count, 0);
    assert_int_equal(large_free(&page_heap, (uintptr_t)start).kind, MISUSE_DOUBLE_FREE);
    assert_ptr_equal(take(2 * MIB, MIN_ALIGN), start); /* the addresses are not lost */
    assert_int_equal(last_dirty, 0);
    fake.refuse_give = false;
    give(start);
    assert_page_heap_empty();
}

/* ---- Misuse ---- */

static void assert_misuse(struct misuse misuse, int kind, const void *address, size_t bytes)
{
    assert_int_equal(misuse.kind, kind);
    assert_int_equal(misuse.address, (uintptr_t)address);
    assert_int_equal(misuse.bytes, bytes);
}

/* Every question about the address gets the same answer. */
static void assert_wrong(const void *wrong, int kind, size_t bytes, const void *start)
{
    uintptr_t address = (uintptr_t)wrong;
    size_t untouched = 12345;
    assert_misuse(large_free(&page_heap, address), kind, wrong, bytes);
    assert_misuse(large_usable(&page_heap, address, &untouched), kind, wrong, bytes);
    assert_misuse(large_misuse(&page_heap, address), kind, wrong, bytes);
    assert_int_equal(large_misuse(&page_heap, address).start, (uintptr_t)start);
    assert_int_equal(untouched, 12345);
    assert_page_heap_sound();
}

TEST(an_address_inside_a_block_is_told)
{
    char *large = take(100 * KIB, MIN_ALIGN), *huge = take(5 * MIB, MIN_ALIGN);
    static const size_t offsets[] = {1, 16, 4095, 4096, 50000, 100 * KIB - 1};
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        assert_wrong(large + offsets[i], MISUSE_INSIDE, 100 * KIB, large);
        assert_wrong(huge + offsets[i], MISUSE_INSIDE, 5 * MIB, huge);
    }
    assert_wrong(huge + 5 * MIB - 1, MISUSE_INSIDE, 5 * MIB, huge);
    give(large);
    give(huge);
    assert_page_heap_empty();
}

TEST(a_second_free_is_told)
{
    char *before = take(20 * KIB, MIN_ALIGN), *large = take(100 * KIB, MIN_ALIGN);
    char *behind = take(40 * KIB, MIN_ALIGN), *huge = take(5 * MIB, MIN_ALIGN);
    char *wall = take(1, MIN_ALIGN);
    give(large);
    assert_wrong(large, MISUSE_DOUBLE_FREE, 100 * KIB, NULL);
    assert_wrong(large + 16, MISUSE_DOUBLE_FREE, 100 * KIB, NULL);
    assert_wrong(large + 8192, MISUSE_DOUBLE_FREE, 100 * KIB, NULL);
    give(before);
    give(behind);
    assert_wrong(before, MISUSE_DOUBLE_FREE, 20 * KIB, NULL);
    assert_wrong(large, MISUSE_DOUBLE_FREE, 100 * KIB, NULL);
    assert_wrong(behind, MISUSE_DOUBLE_FREE, 40 * KIB, NULL);
    give(huge);
    assert_wrong(huge, MISUSE_DOUBLE_FREE, 5 * MIB, NULL);
    give(wall);
    assert_page_heap_empty();
}

TEST(what_was_never_handed_out_is_told)
{
    int local;
    static int global;
    char *large = take(100 * KIB, MIN_ALIGN);
    const void *wild[] = {(void *)1,
                          (void *)16,
                          (void *)4096,
                          &local,
                          &global,
                          (void *)((uintptr_t)1 << 47),
                          (void *)((uintptr_t)1 << 48),
                          (void *)0xdeadbeefdeadbeef,
                          (void *)UINTPTR_MAX,
                          (void *)~(uintptr_t)15};
    for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++)
        assert_wrong(wild[i], MISUSE_UNKNOWN, 0, NULL);
    assert_wrong(large - 1, MISUSE_UNKNOWN, 0, NULL);
    give(large);
    assert_page_heap_empty();
}

TEST(many_huge_blocks_are_told_apart)
{
    enum { BLOCKS = 50 };
    char *all[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++)
        all[i] = take(MIB + (i + 1) * PAGE_BYTES, MIN_ALIGN);
    assert_int_equal(page_heap.huge_count, BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++) {
        assert_int_equal(usable(all[i]), MIB + (i + 1) * PAGE_BYTES);
        assert_wrong(all[i] + MIB, MISUSE_INSIDE, MIB + (i + 1) * PAGE_BYTES, all[i]);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        give(all[(i * 7) % BLOCKS]);
    assert_page_heap_empty();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(sizes_are_rounded_to_pages, page_heap_begin, page_heap_end),
        ROW_WITH(huge_blocks_have_mappings_of_their_own, page_heap_begin, page_heap_end),
        ROW_WITH(any_alignment_is_kept_for_any_size, page_heap_begin, page_heap_end),
        ROW_WITH(impossible_requests_are_refused, page_heap_begin, page_heap_end),
        ROW_WITH(reused_pages_are_not_called_zero, page_heap_begin, page_heap_end),
        ROW_WITH(a_large_block_is_resized_in_place, page_heap_begin, page_heap_end),
        ROW_WITH(the_border_to_huge_is_not_crossed_without_a_copy, page_heap_begin, page_heap_end),
        ROW_WITH(a_huge_block_is_remapped, page_heap_begin, page_heap_end),
        ROW_WITH(a_refused_remap_leaves_a_huge_block_as_it_was, page_heap_begin, page_heap_end),
        ROW_WITH(a_block_that_grows_takes_its_pages_along, page_heap_begin, page_heap_end),
        ROW_WITH(a_block_that_grows_is_copied_into_what_is_kept, page_heap_begin, page_heap_end),
        ROW_WITH(a_block_that_grows_is_not_copied_into_what_is_hardly_kept, page_heap_begin,
                 page_heap_end),
        ROW_WITH(a_block_that_cannot_take_its_pages_along_stays, page_heap_begin, page_heap_end),
        ROW_WITH(what_is_kept_is_given_up_only_if_that_may_help, page_heap_begin, page_heap_end),
        ROW_WITH(a_huge_mapping_that_cannot_go_loses_its_contents, page_heap_begin, page_heap_end),
        ROW_WITH(an_address_inside_a_block_is_told, page_heap_begin, page_heap_end),
        ROW_WITH(a_second_free_is_told, page_heap_begin, page_heap_end),
        ROW_WITH(what_was_never_handed_out_is_told, page_heap_begin, page_heap_end),
        ROW_WITH(many_huge_blocks_are_told_apart, page_heap_begin, page_heap_end),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
