/*
 * Tests of pageheap/page_heap.h: taking and freeing runs of pages, joining, reuse, growing and
 * shrinking. Purging and segments are in page_heap_purge.c, failures in page_heap_failure.c.
 */
#include "page_heap_support.h"

#include <string.h>

#include "meta/meta.h"
#include "meta/page_map.h"

/* Every page of a slab leads to it; a large block is found by its address. */
static void assert_mapped(const struct span *span)
{
    if (span->kind == SPAN_LARGE)
        assert_ptr_equal(large_table_find(&page_heap.large, span->start), span);
    for (size_t i = 0; span->kind != SPAN_LARGE && i < span->pages; i++)
        assert_int_equal(page_map_entry((uintptr_t)span->start + (i << PAGE_SHIFT)),
                         (uintptr_t)span);
}

TEST(a_span_is_taken_from_a_first_segment)
{
    struct span *span = span_new(SPAN_SLAB, 10, PAGE_BYTES);
    assert_non_null(span);
    assert_int_equal(span->pages, 10);
    assert_int_equal(span->kind, SPAN_SLAB);
    assert_int_equal(span->class, 0);
    assert_null(span->owner);
    assert_true(span->zero);
    assert_false(span_is_free(span));
    assert_ptr_equal(span->start, fake.ranges[0].start);
    assert_ptr_equal(span->segment->start, fake.ranges[0].start);
    assert_mapped(span);
    assert_int_equal(fake.takes, 1);
    assert_int_equal(page_heap.segment_pages, SMALL_SEGMENT_PAGES);
    assert_int_equal(page_heap.used_pages, 10);
    assert_int_equal(page_heap.clean.pages, SMALL_SEGMENT_PAGES - 10);
    assert_int_equal(page_heap.empty_segments, 0);
    assert_page_heap_sound();
    span_put(span);
    assert_int_equal(page_heap.empty_segments, 1);
    assert_int_equal(page_heap.dirty.pages, 10);
    assert_page_heap_empty();
}

TEST(page_heap_do_not_overlap)
{
    enum { SPANS = 200 };
    struct span *all[SPANS];
    uint64_t seed = 1;
    for (size_t i = 0; i < SPANS; i++) {
        all[i] = span_get(1 + random_below(&seed, 40));
        memset(all[i]->start, (int)i, span_bytes_of(all[i]));
    }
    assert_page_heap_sound();
    for (size_t i = 0; i < SPANS; i++) {
        assert_mapped(all[i]);
        for (size_t at = 0; at < span_bytes_of(all[i]); at += 512)
            ASSERT_THAT(all[i]->start[at] == (char)i, "span %zu at %zu", i, at);
    }
    for (size_t i = 0; i < SPANS; i++)
        span_put(all[i]);
    assert_page_heap_empty();
}

/* ---- Joining ---- */

enum { NEIGHBOURS = 5, PIECE = 10 };

/* Frees five neighbours in the order of the digits of `order`; they must end as one run. */
static void free_in_order(unsigned order)
{
    struct span *all[NEIGHBOURS];
    struct span *behind;
    for (size_t i = 0; i < NEIGHBOURS; i++)
        all[i] = span_get(PIECE);
    behind = span_get(PIECE);
    char *start = all[0]->start;
    for (unsigned left = NEIGHBOURS; left > 0; left--) {
        size_t index = order % left;
        order /= left;
        span_put(all[index]);
        memmove(&all[index], &all[index + 1], (left - 1 - index) * sizeof(all[0]));
        assert_page_heap_sound();
    }
    assert_int_equal(page_heap.dirty.pages, NEIGHBOURS * PIECE);
    assert_int_equal(runs_count(&page_heap.dirty), 1);
    assert_int_equal(runs_count(&page_heap.clean), 1);
    struct span *whole = span_get(NEIGHBOURS * PIECE);
    assert_ptr_equal(whole->start, start);
    span_put(whole);
    span_put(behind);
    assert_page_heap_empty();
}

TEST(neighbours_are_joined_in_every_order)
{
    for (unsigned order = 0; order < 120; order++)
        free_in_order(order);
}

TEST(descriptors_are_not_lost)
{
    free_in_order(0);
    size_t used = meta_bytes_used();
    for (unsigned order = 0; order < 120; order++)
        free_in_order(order);
    assert_int_equal(meta_bytes_used(), used);
}

TEST(runs_in_use_keep_others_apart)
{
    struct span *all[5];
    for (size_t i = 0; i < 5; i++)
        all[i] = span_get(PIECE);
    span_put(all[0]);
    span_put(all[2]);
    span_put(all[4]); /* beside the clean rest, which is of the other kind */
    assert_int_equal(runs_count(&page_heap.dirty), 3);
    assert_int_equal(runs_count(&page_heap.clean), 1);
    assert_page_heap_sound();
    span_put(all[3]);
    assert_int_equal(runs_count(&page_heap.dirty), 2);
    span_put(all[1]);
    assert_int_equal(runs_count(&page_heap.dirty), 1);
    assert_int_equal(page_heap.dirty.pages, 5 * PIECE);
    assert_page_heap_empty();
}

TEST(segments_side_by_side_are_not_joined)
{
    struct span *first = span_get(FIRST_SEGMENT_PAGES);
    struct span *second = span_get(FIRST_SEGMENT_PAGES); /* often just below the first */
    struct span *last = span_get(1);
    span_put(first);
    span_put(second);
    span_put(last);
    assert_page_heap_empty();
}

/* ---- What is reused ---- */

TEST(dirty_pages_are_used_before_clean_ones)
{
    struct span *first = span_get(20), *second = span_get(20), *third = span_get(20);
    char *start = second->start;
    span_put(second);
    struct span *again = span_get(8);
    assert_ptr_equal(again->start, start);
    assert_false(again->zero);
    assert_int_equal(page_heap.dirty.pages, 12);
    /* Too long for what is dirty. */
    struct span *longer = span_get(13);
    assert_true(longer->zero);
    struct span *rest = span_get(12);
    assert_ptr_equal(rest->start, start + 8 * PAGE_BYTES);
    assert_int_equal(page_heap.dirty.pages, 0);
    span_put(again);
    span_put(rest);
    span_put(longer);
    span_put(first);
    span_put(third);
    assert_page_heap_empty();
}

TEST(what_is_called_zero_is_zero)
{
    uint64_t seed = 4;
    struct span *all[64] = {NULL};
    size_t zero = 0, used = 0;
    for (unsigned turn = 0; turn < 3000; turn++) {
        size_t i = random_below(&seed, 64);
        if (all[i] != NULL) {
            span_put(all[i]);
            all[i] = NULL;
            if (turn % 64 == 0)
                page_heap_purge(&page_heap, random_below(&seed, 100));
            continue;
        }
        all[i] = span_get(1 + random_below(&seed, 16));
        zero += all[i]->zero;
        used += !all[i]->zero;
        for (size_t at = 0; all[i]->zero && at < span_bytes_of(all[i]); at += 64)
            ASSERT_THAT(all[i]->start[at] == 0, "turn %u at %zu", turn, at);
        memset(all[i]->start, 0xff, span_bytes_of(all[i]));
    }
    assert_true(zero > 100 && used > 100); /* both were tried */
    for (size_t i = 0; i < 64; i++)
        if (all[i] != NULL)
            span_put(all[i]);
    assert_page_heap_empty();
}

/* ---- Alignment ---- */

TEST(alignment_is_kept)
{
    uint64_t seed = 5;
    struct span *all[60];
    for (size_t i = 0; i < 60; i++) {
        size_t alignment = PAGE_BYTES << random_below(&seed, 9);
        all[i] = span_new(SPAN_LARGE, 1 + random_below(&seed, 30), alignment);
        assert_non_null(all[i]);
        assert_int_equal((uintptr_t)all[i]->start & (alignment - 1), 0);
        assert_mapped(all[i]);
        assert_page_heap_sound();
    }
    for (size_t i = 0; i < 60; i++)
        span_put(all[(i * 7) % 60]);
    assert_page_heap_empty();
}

TEST(what_alignment_cuts_off_stays_usable)
{
    enum { ALIGNMENT = 64 * PAGE_BYTES };
    struct span *one = span_get(1), *two = NULL;
    if (((uintptr_t)one->start + PAGE_BYTES) % ALIGNMENT == 0) /* else nothing is cut off there */
        two = span_get(1);
    struct span *aligned = span_new(SPAN_LARGE, 4, ALIGNMENT);
    assert_int_equal(runs_count(&page_heap.clean), 2); /* before it and behind it */
    struct span *before = span_get(1);
    assert_true(before->start > one->start && before->start < aligned->start);
    span_put(one);
    span_put(aligned);
    span_put(before);
    if (two != NULL)
        span_put(two);
    assert_int_equal(fake.takes, 1);
    assert_page_heap_empty();
}

/* ---- Growing and shrinking ---- */

TEST(a_span_grows_into_what_follows)
{
    struct span *span = span_get(10);
    memset(span->start, 1, span_bytes_of(span));
    assert_true(span_extend(&page_heap, span, 15)); /* clean */
    assert_int_equal(span->pages, 15);
    assert_mapped(span);
    assert_int_equal(page_heap.used_pages, 15);
    struct span *next = span_get(20), *wall = span_get(1);
    span_put(next);
    assert_true(span_extend(&page_heap, span, 16));  /* dirty */
    assert_false(span_extend(&page_heap, span, 36)); /* one too many */
    assert_int_equal(span->pages, 16);
    assert_true(span_extend(&page_heap, span, 35)); /* all there is */
    assert_int_equal(page_heap.dirty.pages, 0);
    assert_mapped(span);
    assert_false(span_extend(&page_heap, span, 36)); /* in use */
    assert_page_heap_sound();
    assert_int_equal(span->start[0], 1);
    span_put(span);
    span_put(wall);
    assert_page_heap_empty();
}

TEST(segments_become_longer)
{
    static const size_t pages[] = {SMALL_SEGMENT_PAGES, SMALL_SEGMENT_PAGES, FIRST_SEGMENT_PAGES,
                                   FIRST_SEGMENT_PAGES};
    struct span *all[64];
    size_t count = 0;
    for (size_t i = 0; i < 4; i++) {
        size_t before = page_heap.segment_pages;
        while (page_heap.segment_pages == before || page_heap.clean.pages != 0)
            all[count++] = span_get(64);
        assert_int_equal(page_heap.segment_pages - before, pages[i]);
    }
    while (count != 0)
        span_put(all[--count]);
    assert_page_heap_empty();
}

TEST(a_span_does_not_grow_beyond_its_segment)
{
    struct span *span = span_get(10);
    assert_false(span_extend(&page_heap, span, SMALL_SEGMENT_PAGES + 1));
    assert_true(span_extend(&page_heap, span, SMALL_SEGMENT_PAGES));
    assert_false(span_extend(&page_heap, span, SMALL_SEGMENT_PAGES + 1));
    assert_int_equal(page_heap.clean.pages, 0);
    assert_int_equal(page_heap.used_pages, SMALL_SEGMENT_PAGES);
    assert_page_heap_sound();
    span_put(span);
    assert_page_heap_empty();
}

TEST(a_span_shrinks_and_frees_the_rest)
{
    struct span *span = span_get(30), *wall = span_get(1);
    char *start = span->start;
    assert_true(span_shrink(&page_heap, span, 20));
    assert_int_equal(span->pages, 20);
    assert_ptr_equal(span->start, start);
    assert_mapped(span);
    assert_int_equal(page_heap.used_pages, 21);
    assert_int_equal(page_heap.dirty.pages, 10);
    assert_page_heap_sound();
    assert_true(span_shrink(&page_heap, span, 1)); /* joins with what was freed before */
    assert_int_equal(runs_count(&page_heap.dirty), 1);
    assert_int_equal(page_heap.dirty.pages, 29);
    struct span *again = span_get(29);
    assert_ptr_equal(again->start, start + PAGE_BYTES);
    span_put(span);
    span_put(again);
    span_put(wall);
    assert_page_heap_empty();
}

/* ---- What freed pages remember ---- */

static struct span *slab_get(size_t pages)
{
    struct span *span = span_new(SPAN_SLAB, pages, PAGE_BYTES);
    assert_non_null(span);
    return span;
}

static struct span *span_at(uintptr_t address)
{
    lock_acquire(&page_heap.lock);
    struct span *span = span_around(&page_heap, address);
    lock_release(&page_heap.lock);
    return span;
}

TEST(freed_pages_tell_what_was_there)
{
    struct span *before = slab_get(1), *span = slab_get(10), *behind = slab_get(1);
    uintptr_t start = (uintptr_t)span->start;
    span_free(&page_heap, span, 48);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(page_map_entry(start + (i << PAGE_SHIFT)), entry_freed(48));
    struct span *run = span_at(start);
    assert_true(span_is_free(run));
    assert_int_equal(run->former_bytes, 48);
    assert_ptr_equal(span_at(start + (10 << PAGE_SHIFT) - 1), run);
    /* Joined with what is freed around it, it is still known. */
    span_free(&page_heap, before, 16);
    span_free(&page_heap, behind, 32);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(page_map_entry(start + (i << PAGE_SHIFT)), entry_freed(48));
    run = span_at(start);
    assert_ptr_equal(run->start, start - PAGE_BYTES);
    assert_int_equal(run->former_bytes, 16);
    assert_page_heap_empty();
}

TEST(what_is_left_of_freed_pages_claims_nothing)
{
    struct span *span = slab_get(10), *wall = slab_get(1);
    char *start = span->start;
    span_free(&page_heap, span, 48);
    struct span *again = slab_get(4);
    assert_ptr_equal(again->start, start);
    const struct span *rest = span_at((uintptr_t)span_end(again));
    assert_int_equal(rest->kind, SPAN_DIRTY);
    assert_int_equal(rest->pages, 6);
    assert_int_equal(rest->former_bytes, 0);
    span_put(again);
    span_put(wall);
    assert_page_heap_empty();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(a_span_is_taken_from_a_first_segment, page_heap_begin, page_heap_end),
        ROW_WITH(page_heap_do_not_overlap, page_heap_begin, page_heap_end),
        ROW_WITH(neighbours_are_joined_in_every_order, page_heap_begin, page_heap_end),
        ROW_WITH(descriptors_are_not_lost, page_heap_begin, page_heap_end),
        ROW_WITH(runs_in_use_keep_others_apart, page_heap_begin, page_heap_end),
        ROW_WITH(segments_side_by_side_are_not_joined, page_heap_begin, page_heap_end),
        ROW_WITH(dirty_pages_are_used_before_clean_ones, page_heap_begin, page_heap_end),
        ROW_WITH(what_is_called_zero_is_zero, page_heap_begin, page_heap_end),
        ROW_WITH(alignment_is_kept, page_heap_begin, page_heap_end),
        ROW_WITH(what_alignment_cuts_off_stays_usable, page_heap_begin, page_heap_end),
        ROW_WITH(a_span_grows_into_what_follows, page_heap_begin, page_heap_end),
        ROW_WITH(segments_become_longer, page_heap_begin, page_heap_end),
        ROW_WITH(a_span_does_not_grow_beyond_its_segment, page_heap_begin, page_heap_end),
        ROW_WITH(a_span_shrinks_and_frees_the_rest, page_heap_begin, page_heap_end),
        ROW_WITH(freed_pages_tell_what_was_there, page_heap_begin, page_heap_end),
        ROW_WITH(what_is_left_of_freed_pages_claims_nothing, page_heap_begin, page_heap_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
