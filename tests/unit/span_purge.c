/*
 * Tests of span/: giving pages back to the system, and the segments that spans are cut from.
 */
#include "span_support.h"

#include <string.h>

#include "options/options.h"

/* Spans of so many pages each, with one in use after each, so that they are not joined. */
enum { ROW_MOST = 64 };

struct row {
    struct span *spans[ROW_MOST];
    struct span *walls[ROW_MOST];
    size_t count;
};

static void row_take(struct row *row, const size_t *pages, size_t count)
{
    row->count = count;
    for (size_t i = 0; i < count; i++) {
        row->spans[i] = span_get(pages[i]);
        row->walls[i] = span_get(1);
        memset(row->spans[i]->start, 1, span_bytes_of(row->spans[i]));
    }
}

static void row_free(struct row *row)
{
    for (size_t i = 0; i < row->count; i++)
        span_put(row->spans[i]);
}

static void walls_free(struct row *row)
{
    for (size_t i = 0; i < row->count; i++)
        span_put(row->walls[i]);
}

/* ---- Purging ---- */

TEST(the_longest_runs_are_purged_first)
{
    static const size_t pages[] = {5, 100, 50, 20};
    struct row row;
    row_take(&row, pages, 4);
    row_free(&row);
    assert_int_equal(spans.dirty.pages, 175);
    assert_int_equal(spans_purge(&spans, 80), 100 * PAGE_BYTES);
    assert_int_equal(spans.dirty.pages, 75);
    assert_int_equal(fake.purges, 1);
    assert_int_equal(fake.purged_bytes, 100 * PAGE_BYTES);
    assert_spans_sound();
    assert_int_equal(spans_purge(&spans, 75), 0);
    assert_int_equal(spans_purge(&spans, 74), 50 * PAGE_BYTES);
    assert_int_equal(spans_purge(&spans, 0), 25 * PAGE_BYTES);
    assert_int_equal(spans.dirty.pages, 0);
    assert_int_equal(fake.purges, 4);
    assert_spans_sound();
    walls_free(&row);
    assert_spans_empty();
}

TEST(purged_runs_are_zero_and_joined_with_clean_ones)
{
    struct span *span = span_get(10);
    memset(span->start, 1, span_bytes_of(span));
    struct span *behind = span_get(10), *wall = span_get(1);
    char *start = span->start;
    span_put(span);
    spans_purge(&spans, 0);
    assert_int_equal(runs_count(&spans.clean), 2);
    span_put(behind);
    assert_int_equal(runs_count(&spans.dirty), 1); /* not joined with the clean one before it */
    spans_purge(&spans, 0);
    assert_int_equal(runs_count(&spans.dirty), 0);
    assert_int_equal(runs_count(&spans.clean), 2);
    span = span_get(20);
    assert_ptr_equal(span->start, start);
    assert_true(span->zero);
    for (size_t i = 0; i < span_bytes_of(span); i++)
        ASSERT_THAT(span->start[i] == 0, "at %zu", i);
    span_put(span);
    span_put(wall);
    assert_spans_empty();
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
        size_t before = spans.dirty.pages;
        unsigned purges = fake.purges;
        span_put(row.spans[i]);
        assert_true(spans.dirty.pages <= limit);
        if (before + 20 > limit) /* some go at once, so that it is not done at every free */
            assert_true(spans.dirty.pages <= limit / 2 && fake.purges > purges);
        else
            assert_int_equal(fake.purges, purges);
        assert_spans_sound();
    }
    assert_true(fake.purges > 0);
    walls_free(&row);
    assert_spans_empty();
}

TEST(an_eighth_of_what_is_in_use_may_be_dirty)
{
    options.dirty = 0;
    struct span *large[20];
    for (size_t i = 0; i < 20; i++)
        large[i] = span_get(800);
    for (size_t i = 0; i < 19; i++) {
        span_put(large[i]);
        assert_true(spans.dirty.pages <= spans.used_pages / 8);
        assert_spans_sound();
    }
    span_put(large[19]);
    assert_int_equal(spans.dirty.pages, 0);
    assert_spans_empty();
}

TEST(a_refused_purge_is_tried_again_later)
{
    static const size_t pages[] = {10, 20, 30};
    struct row row;
    row_take(&row, pages, 3);
    fake.refuse_purge = true;
    row_free(&row);
    assert_int_equal(spans_purge(&spans, 0), 0);
    assert_int_equal(spans.dirty.pages, 60);
    assert_spans_sound();
    struct span *span = span_get(30);
    assert_false(span->zero);
    assert_int_equal(span->start[0], 1);
    span_put(span);
    options.dirty = 0;
    span = span_get(10);
    span_put(span); /* tries, and gives up */
    assert_int_equal(spans.dirty.pages, 60);
    fake.refuse_purge = false;
    assert_int_equal(spans_purge(&spans, 0), 60 * PAGE_BYTES);
    walls_free(&row);
    assert_spans_empty();
}

/* ---- Segments ---- */

static size_t segment_count(void)
{
    size_t count = 0;
    LIST_EACH(node, &spans.segments)
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
        size_t before = spans.segment_pages;
        all[i] = span_get(FIRST_SEGMENT_PAGES);
        size_t segment = all[i]->segment->pages;
        if (spans.segment_pages != before)
            assert_int_equal(segment, spans.segment_pages - before);
        assert_true(segment >= FIRST_SEGMENT_PAGES);
        if (spans.segment_pages != before)
            ASSERT_THAT(segment >= before / 8 &&
                            segment <= size_max(before / 8 + 512, FIRST_SEGMENT_PAGES),
                        "%zu pages after %zu", segment, before);
        most = size_max(most, segment);
    }
    assert_true(most > 16 * FIRST_SEGMENT_PAGES);
    assert_true(segment_count() < 60);
    assert_spans_sound();
    for (size_t i = 0; i < SPANS; i++)
        span_put(all[i]);
    assert_int_equal(segment_count(), 1);
    assert_spans_empty();
}

TEST(empty_segments_but_one_go_to_the_cache)
{
    struct span *all[4];
    for (size_t i = 0; i < 4; i++)
        all[i] = span_get(FIRST_SEGMENT_PAGES);
    assert_int_equal(segment_count(), 4);
    span_put(all[0]);
    assert_int_equal(segment_count(), 4);
    assert_int_equal(spans.empty_segments, 1);
    for (size_t i = 1; i < 4; i++) {
        span_put(all[i]);
        assert_int_equal(segment_count(), 4 - i);
        assert_int_equal(spans.empty_segments, 1);
        assert_int_equal(spans.cache.count, i);
        assert_spans_sound();
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
    assert_spans_empty();
}

TEST(a_purge_of_everything_gives_empty_segments_back)
{
    struct span *first = span_get(FIRST_SEGMENT_PAGES), *second = span_get(1);
    span_put(first);
    assert_int_equal(segment_count(), 2);
    spans_purge(&spans, 1); /* something may be kept, and so is the segment */
    assert_int_equal(segment_count(), 2);
    assert_true(spans_purge(&spans, 0) > 0);
    assert_int_equal(segment_count(), 1);
    assert_int_equal(spans.empty_segments, 0);
    assert_int_equal(spans_purge(&spans, 0), 0);
    span_put(second);
    assert_spans_empty();
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
    assert_int_equal(spans.empty_segments, 1);
    assert_int_equal(spans_kept_pages(&spans), 2 * FIRST_SEGMENT_PAGES);
    assert_spans_sound();
    spans_purge(&spans, 0); /* the pages go, the addresses stay */
    assert_int_equal(spans_kept_pages(&spans), 0);
    assert_int_equal(spans.cache.count, 2);
    assert_spans_sound();
    first = span_get(FIRST_SEGMENT_PAGES);
    second = span_get(FIRST_SEGMENT_PAGES);
    assert_int_equal(segment_count(), 3);
    for (size_t i = 0; first->zero && i < PAGE_BYTES; i++)
        ASSERT_THAT(first->start[i] == 0, "at %zu", i);
    span_put(first);
    span_put(second);
    span_put(third);
    fake.refuse_give = false;
    assert_spans_empty();
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
        assert_spans_sound();
    }
    assert_int_equal(segment_count(), 8);
    assert_null(span_new(SPAN_LARGE, 61, 16 * PAGE_BYTES));
    for (size_t i = 0; i < 8; i++)
        span_put(all[i]);
    assert_spans_empty();
}

TEST(a_request_longer_than_a_segment_gets_one_of_its_length)
{
    struct span *span = span_get(10 * FIRST_SEGMENT_PAGES);
    assert_int_equal(span->segment->pages, 10 * FIRST_SEGMENT_PAGES);
    assert_int_equal(spans.clean.pages, 0);
    span_put(span);
    assert_spans_empty();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(the_longest_runs_are_purged_first, spans_begin, spans_end),
        ROW_WITH(purged_runs_are_zero_and_joined_with_clean_ones, spans_begin, spans_end),
        ROW_WITH(freeing_keeps_no_more_dirty_pages_than_the_option_says, spans_begin, spans_end),
        ROW_WITH(an_eighth_of_what_is_in_use_may_be_dirty, spans_begin, spans_end),
        ROW_WITH(a_refused_purge_is_tried_again_later, spans_begin, spans_end),
        ROW_WITH(segments_grow_with_the_heap, spans_begin, spans_end),
        ROW_WITH(empty_segments_but_one_go_to_the_cache, spans_begin, spans_end),
        ROW_WITH(a_purge_of_everything_gives_empty_segments_back, spans_begin, spans_end),
        ROW_WITH(a_segment_that_cannot_go_is_used_again, spans_begin, spans_end),
        ROW_WITH(a_small_segment_will_do_where_there_is_no_room, spans_begin, spans_end),
        ROW_WITH(a_request_longer_than_a_segment_gets_one_of_its_length, spans_begin, spans_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
