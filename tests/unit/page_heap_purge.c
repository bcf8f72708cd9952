/*
 * Tests of span/: giving pages back to the system, and the segments that spans are cut from.
 */
#include "page_heap_support.h"

#include <string.h>

#include "options/options.h"

/* Spans of so many pages each, with one in use after each, so that they are not joined. */
enum { ROW_MOST = 64 };

struct row {
    struct span *page_heap[ROW_MOST];
    struct span *walls[ROW_MOST];
    size_t count;
};

static void row_take(struct row *row, const size_t *pages, size_t count)
{
    row->count = count;
    for (size_t i = 0; i < count; i++) {
        row->page_heap[i] = span_get(pages[i]);
        row->walls[i] = span_get(1);
        memset(row->page_heap[i]->start, 1, span_bytes_of(row->page_heap[i]));
    }
}

static void row_free(struct row *row)
{
    for (size_t i = 0; i < row->count; i++)
        span_put(row->page_heap[i]);
}

static void walls_free(struct row *row)
{
    for (size_t i = 0; i < row->count; i++)
        span_put(row->walls[i]);
}

/* ---- Purging ---- */

/* Those of less than 32 KiB last. */
TEST(what_was_free_for_the_longest_time_goes_first)
{
    NEED_SMALL_PAGES;
    static const size_t pages[] = {5, 50, 100, 20};
    struct row row;
    row_take(&row, pages, 4);
    row_free(&row);
    assert_int_equal(page_heap.dirty.pages, 175);
    assert_int_equal(page_heap_purge(&page_heap, 150), 50 * PAGE_BYTES);
    assert_int_equal(page_heap.dirty.pages, 125);
    assert_int_equal(fake.purges, 1);
    assert_int_equal(fake.purged_bytes, 50 * PAGE_BYTES);
    assert_page_heap_sound();
    assert_int_equal(page_heap_purge(&page_heap, 125), 0);
    assert_int_equal(page_heap_purge(&page_heap, 124), 100 * PAGE_BYTES);
    assert_int_equal(page_heap_purge(&page_heap, 0), 25 * PAGE_BYTES);
    assert_int_equal(page_heap.dirty.pages, 0);
    assert_int_equal(fake.purges, 4);
    assert_page_heap_sound();
    walls_free(&row);
    assert_page_heap_empty();
}

TEST(purged_runs_are_zero_and_joined_with_clean_ones)
{
    struct span *span = span_get(10);
    memset(span->start, 1, span_bytes_of(span));
    struct span *behind = span_get(10), *wall = span_get(1);
    char *start = span->start;
    span_put(span);
    page_heap_purge(&page_heap, 0);
    assert_int_equal(runs_count(&page_heap.clean), 2);
    span_put(behind);
    assert_int_equal(runs_count(&page_heap.dirty), 1); /* not joined with the clean one before it */
    page_heap_purge(&page_heap, 0);
    assert_int_equal(runs_count(&page_heap.dirty), 0);
    assert_int_equal(runs_count(&page_heap.clean), 2);
    span = span_get(20);
    assert_ptr_equal(span->start, start);
    assert_true(span->zero);
    for (size_t i = 0; i < span_bytes_of(span); i++)
        ASSERT_THAT(span->start[i] == 0, "at %zu", i);
    span_put(span);
    span_put(wall);
    assert_page_heap_empty();
}

/* What is freed beside an old run makes all of it young; what is left of one stays old. */
TEST(a_run_is_as_young_as_its_youngest_part)
{
    NEED_SMALL_PAGES;
    struct span *left = span_get(20), *right = span_get(20), *walls[3];
    walls[0] = span_get(1);
    struct span *other = span_get(60);
    walls[1] = span_get(1);
    span_put(left);
    span_put(other);
    span_put(right);
    assert_int_equal(page_heap_purge(&page_heap, 99), 60 * PAGE_BYTES);
    struct span *young = span_get(29); /* this and the next of the 40 */
    walls[2] = span_get(1);
    span_put(span_get(50));
    assert_int_equal(page_heap_purge(&page_heap, 59), 10 * PAGE_BYTES);
    assert_int_equal(page_heap.dirty.pages, 50);
    span_put(young);
    for (size_t i = 0; i < 3; i++)
        span_put(walls[i]);
    assert_page_heap_empty();
}

TEST(freeing_keeps_no_more_dirty_pages_than_the_option_says)
{
    size_t pages[40];
    struct row row;
    options.dirty = MIB;
    size_t limit = MIB >> PAGE_SHIFT;
    for (size_t i = 0; i < 40; i++)
        pages[i] = 20;
    row_take(&row, pages, 40);
    for (size_t i = 0; i < 40; i++) {
        size_t before = page_heap.dirty.pages;
        unsigned purges = fake.purges;
        span_put(row.page_heap[i]);
        assert_true(page_heap.dirty.pages <= limit);
        if (before + 20 > limit) /* some go at once, so that it is not done at every free */
            assert_true(page_heap.dirty.pages <= limit - limit / 8 && fake.purges > purges);
        else
            assert_int_equal(fake.purges, purges);
        assert_page_heap_sound();
    }
    assert_true(fake.purges > 0);
    walls_free(&row);
    assert_page_heap_empty();
}

TEST(an_eighth_of_what_is_in_use_may_be_dirty)
{
    options.dirty = 0;
    struct span *large[20];
    for (size_t i = 0; i < 20; i++)
        large[i] = span_get(800);
    for (size_t i = 0; i < 19; i++) {
        span_put(large[i]);
        assert_true(page_heap.dirty.pages <= page_heap.used_pages / 8);
        assert_page_heap_sound();
    }
    span_put(large[19]);
    assert_int_equal(page_heap.dirty.pages, 0);
    assert_page_heap_empty();
}

TEST(a_refused_purge_is_tried_again_later)
{
    NEED_SMALL_PAGES;
    static const size_t pages[] = {10, 20, 30};
    struct row row;
    row_take(&row, pages, 3);
    fake.refuse_purge = true;
    row_free(&row);
    assert_int_equal(page_heap_purge(&page_heap, 0), 0);
    assert_int_equal(page_heap.dirty.pages, 60);
    assert_page_heap_sound();
    struct span *span = span_get(30);
    assert_false(span->zero);
    assert_int_equal(span->start[0], 1);
    span_put(span);
    options.dirty = 0;
    span = span_get(10);
    span_put(span); /* tries, and gives up */
    assert_int_equal(page_heap.dirty.pages, 60);
    fake.refuse_purge = false;
    assert_int_equal(page_heap_purge(&page_heap, 0), 60 * PAGE_BYTES);
    walls_free(&row);
    assert_page_heap_empty();
}

/* ---- Several at once ---- */

/* So many runs of 20 pages, each apart, on a provider that purges several by one call. */
static void many_make(struct row *row, size_t count)
{
    size_t pages[ROW_MOST];
    for (size_t i = 0; i < count; i++)
        pages[i] = 20;
    fake.provider.purge_ranges = fake_purge_together;
    row_take(row, pages, count);
    row_free(row);
    assert_int_equal(page_heap.dirty.pages, 20 * count);
}

TEST(short_runs_go_together)
{
    NEED_SMALL_PAGES;
    struct row row;
    many_make(&row, 40);
    size_t runs = runs_count(&page_heap.dirty); /* some lie side by side */
    assert_true(runs > 10);
    assert_int_equal(page_heap_purge(&page_heap, 1), 40 * 20 * PAGE_BYTES);
    assert_int_equal(page_heap.dirty.pages, 0);
    assert_int_equal(fake.purged_bytes, 40 * 20 * PAGE_BYTES);
    /* 2 MiB and a bit, and the rest. */
    assert_int_equal(fake.calls_together, 2);
    assert_true(fake.most_together > runs / 2 && fake.most_together < runs);
    assert_page_heap_sound();
    walls_free(&row);
    assert_page_heap_empty();
}

TEST(no_more_go_together_than_have_to)
{
    NEED_SMALL_PAGES;
    struct row row;
    many_make(&row, 20);
    assert_int_equal(page_heap_purge(&page_heap, 15 * 20), 5 * 20 * PAGE_BYTES);
    assert_int_equal(fake.calls_together, 1);
    assert_int_equal(page_heap.dirty.pages, 15 * 20);
    walls_free(&row);
    assert_page_heap_empty();
}

TEST(what_was_refused_among_others_stays)
{
    NEED_SMALL_PAGES;
    struct row row;
    many_make(&row, 10);
    fake.refused_together = 0x3ff & ~(uint64_t)0x24;
    /* Two go, then two of those that are left, and so on. */
    size_t purged = page_heap_purge(&page_heap, 1);
    assert_int_equal(purged, fake.purged_bytes);
    assert_int_equal(purged, (10 * 20 - page_heap.dirty.pages) * PAGE_BYTES);
    assert_in_range(page_heap.dirty.pages, 20, 2 * 20); /* the first two are always refused */
    assert_page_heap_sound();
    fake.refused_together = 0;
    size_t left = page_heap.dirty.pages * PAGE_BYTES;
    assert_int_equal(page_heap_purge(&page_heap, 1), left);
    walls_free(&row);
    assert_page_heap_empty();
}

TEST(where_all_is_refused_one_is_tried_at_a_time)
{
    NEED_SMALL_PAGES;
    struct row row;
    many_make(&row, 40);
    fake.refuse_purge = true;
    assert_int_equal(page_heap_purge(&page_heap, 1), 0);
    assert_true(fake.most_together > 1);
    fake.most_together = 0;
    assert_int_equal(page_heap_purge(&page_heap, 1), 0);
    assert_int_equal(fake.most_together, 1);
    fake.refuse_purge = false; /* after one that goes it is as before */
    assert_int_equal(page_heap_purge(&page_heap, 1), 40 * 20 * PAGE_BYTES);
    assert_true(fake.most_together > 1);
    walls_free(&row);
    assert_page_heap_empty();
}

/* ---- Segments ---- */

static size_t segment_count(void)
{
    size_t count = 0;
    LIST_EACH(node, &page_heap.segments)
        count++;
    return count;
}

TEST(segments_grow_with_the_heap)
{
    /* 2 GiB, of which nothing is touched. */
    enum { SPANS = 512 };
    static struct span *all[SPANS];
    size_t most = 0;
    for (size_t i = 0; i < SPANS; i++) {
        size_t before = page_heap.segment_pages;
        all[i] = span_get(FIRST_SEGMENT_PAGES);
        size_t segment = all[i]->segment->pages;
        if (page_heap.segment_pages != before)
            assert_int_equal(segment, page_heap.segment_pages - before);
        assert_true(segment >= FIRST_SEGMENT_PAGES);
        if (page_heap.segment_pages != before)
            ASSERT_THAT(segment + FIRST_SEGMENT_PAGES > before / 8 && /* a whole number of spans */
                            segment <= size_max(before / 8 + 512, FIRST_SEGMENT_PAGES),
                        "%zu pages after %zu", segment, before);
        most = size_max(most, segment);
    }
    assert_true(most > 16 * FIRST_SEGMENT_PAGES);
    assert_true(segment_count() < 60);
    assert_page_heap_sound();
    for (size_t i = 0; i < SPANS; i++)
        span_put(all[i]);
    assert_int_equal(segment_count(), 1);
    assert_page_heap_empty();
}

/* Taking a segment takes as long as making all of it present would: it is in memory at once. */
TEST(segments_that_are_present_at_once_are_a_smaller_share)
{
    enum { SPANS = 128, SLOW_FROM = 96 };
    static struct span *all[SPANS];
    size_t most = 0;
    for (size_t i = 0; i < SPANS; i++) {
        fake_exact_step = i < SLOW_FROM ? 0 : FAKE_SECOND;
        all[i] = span_get(FIRST_SEGMENT_PAGES);
        most = size_max(most, all[i]->segment->pages);
    }
    assert_true(most > 8 * FIRST_SEGMENT_PAGES);
    size_t last = all[SPANS - 1]->segment->pages;
    assert_in_range(last, page_heap.segment_pages / 80, page_heap.segment_pages / 64 + 512);
    fake_exact_step = 0; /* the next is such a one still, which tells that it need not be */
    struct span *once_more[2] = {span_get(last), span_get(last)};
    assert_in_range(once_more[1]->segment->pages, page_heap.segment_pages / 10,
                    page_heap.segment_pages / 8 + 512);
    assert_page_heap_sound();
    for (size_t i = 0; i < 2; i++)
        span_put(once_more[i]);
    for (size_t i = 0; i < SPANS; i++)
        span_put(all[i]);
    assert_page_heap_empty();
}

TEST(empty_segments_but_one_go_to_the_cache)
{
    struct span *all[4];
    for (size_t i = 0; i < 4; i++)
        all[i] = span_get(FIRST_SEGMENT_PAGES);
    assert_int_equal(segment_count(), 4);
    span_put(all[0]);
    assert_int_equal(segment_count(), 4);
    assert_int_equal(page_heap.empty_segments, 1);
    for (size_t i = 1; i < 4; i++) {
        span_put(all[i]);
        assert_int_equal(segment_count(), 4 - i);
        assert_int_equal(page_heap.empty_segments, 1);
        assert_int_equal(page_heap.cache.count, i);
        assert_page_heap_sound();
    }
    /* Up and down, nothing is mapped or unmapped. */
    unsigned takes = fake.takes;
    for (unsigned i = 0; i < 100; i++) {
        for (size_t j = 0; j < 4; j++)
            all[j] = span_get(FIRST_SEGMENT_PAGES);
        for (size_t j = 0; j < 4; j++)
            span_put(all[j]);
    }
    assert_int_equal(fake.takes, takes);
    assert_int_equal(fake.gives, 0);
    assert_page_heap_empty();
}

TEST(a_purge_of_everything_gives_empty_segments_back)
{
    struct span *first = span_get(FIRST_SEGMENT_PAGES), *second = span_get(1);
    span_put(first);
    assert_int_equal(segment_count(), 2);
    page_heap_purge(&page_heap, 1); /* something may be kept, and so is the segment */
    assert_int_equal(segment_count(), 2);
    assert_true(page_heap_purge(&page_heap, 0) > 0);
    assert_int_equal(segment_count(), 1);
    assert_int_equal(page_heap.empty_segments, 0);
    assert_int_equal(page_heap_purge(&page_heap, 0), 0);
    span_put(second);
    assert_page_heap_empty();
}

TEST(a_segment_that_cannot_go_is_used_again)
{
    struct span *first = span_get(FIRST_SEGMENT_PAGES), *second = span_get(FIRST_SEGMENT_PAGES);
    struct span *third = span_get(1);
    memset(first->start, 1, PAGE_BYTES);
    memset(second->start, 1, PAGE_BYTES);
    options.dirty = GIB;
    fake.refuse_give = true;
    span_put(first);
    span_put(second);
    assert_int_equal(segment_count(), 2);
    assert_int_equal(page_heap.empty_segments, 1);
    assert_int_equal(page_heap_kept_pages(&page_heap), 2 * FIRST_SEGMENT_PAGES);
    assert_page_heap_sound();
    page_heap_purge(&page_heap, 0); /* the pages go, the addresses stay */
    assert_int_equal(page_heap_kept_pages(&page_heap), 0);
    assert_int_equal(page_heap.cache.count, 2);
    assert_page_heap_sound();
    first = span_get(FIRST_SEGMENT_PAGES);
    second = span_get(FIRST_SEGMENT_PAGES);
    assert_int_equal(segment_count(), 3);
    for (size_t i = 0; first->zero && i < PAGE_BYTES; i++)
        ASSERT_THAT(first->start[i] == 0, "at %zu", i);
    span_put(first);
    span_put(second);
    span_put(third);
    fake.refuse_give = false;
    assert_page_heap_empty();
}

TEST(a_small_segment_will_do_where_there_is_no_room)
{
    fake.most = 256 * KIB;
    assert_null(span_new(SPAN_LARGE, 65, PAGE_BYTES));
    assert_int_equal(segment_count(), 0);
    struct span *all[8];
    for (size_t i = 0; i < 8; i++) {
        all[i] = span_get(60);
        assert_int_equal(all[i]->segment->pages, 64);
        assert_page_heap_sound();
    }
    assert_int_equal(segment_count(), 8);
    assert_null(span_new(SPAN_LARGE, 61, 16 * PAGE_BYTES));
    for (size_t i = 0; i < 8; i++)
        span_put(all[i]);
    assert_page_heap_empty();
}

TEST(a_request_longer_than_a_segment_gets_one_of_its_length)
{
    struct span *span = span_get(10 * FIRST_SEGMENT_PAGES);
    assert_int_equal(span->segment->pages, 10 * FIRST_SEGMENT_PAGES);
    assert_int_equal(page_heap.clean.pages, 0);
    span_put(span);
    assert_page_heap_empty();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(what_was_free_for_the_longest_time_goes_first, page_heap_begin, page_heap_end),
        ROW_WITH(a_run_is_as_young_as_its_youngest_part, page_heap_begin, page_heap_end),
        ROW_WITH(purged_runs_are_zero_and_joined_with_clean_ones, page_heap_begin, page_heap_end),
        ROW_WITH(freeing_keeps_no_more_dirty_pages_than_the_option_says, page_heap_begin,
                 page_heap_end),
        ROW_WITH(an_eighth_of_what_is_in_use_may_be_dirty, page_heap_begin, page_heap_end),
        ROW_WITH(a_refused_purge_is_tried_again_later, page_heap_begin, page_heap_end),
        ROW_WITH(short_runs_go_together, page_heap_begin, page_heap_end),
        ROW_WITH(no_more_go_together_than_have_to, page_heap_begin, page_heap_end),
        ROW_WITH(what_was_refused_among_others_stays, page_heap_begin, page_heap_end),
        ROW_WITH(where_all_is_refused_one_is_tried_at_a_time, page_heap_begin, page_heap_end),
        ROW_WITH(segments_grow_with_the_heap, page_heap_begin, page_heap_end),
        ROW_WITH(segments_that_are_present_at_once_are_a_smaller_share, page_heap_begin,
                 page_heap_end),
        ROW_WITH(empty_segments_but_one_go_to_the_cache, page_heap_begin, page_heap_end),
        ROW_WITH(a_purge_of_everything_gives_empty_segments_back, page_heap_begin, page_heap_end),
        ROW_WITH(a_segment_that_cannot_go_is_used_again, page_heap_begin, page_heap_end),
        ROW_WITH(a_small_segment_will_do_where_there_is_no_room, page_heap_begin, page_heap_end),
        ROW_WITH(a_request_longer_than_a_segment_gets_one_of_its_length, page_heap_begin,
                 page_heap_end),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
