/*
 * Tests of pages that become metadata (meta_pages.h), on a heap whose metadata
 * is a small area of its own.
 */
#include "page_heap_support.h"

#include "meta/meta.h"
#include "pageheap/meta_pages.h"

enum { ROOM = 80, SPANS = 1500 };
static struct meta own;
static _Alignas(META_MOST) char room[ROOM * META_LEAST];
static struct span *spans[SPANS];

static int begin(void **state)
{
    int result = page_heap_begin(state);
    meta_init(&own, room, sizeof(room));
    page_heap.meta = &own;
    return result;
}

/* A page, or NULL as there is no descriptor, or no room in the table. */
static struct span *page_take(void)
{
    struct span *span = meta_alloc_from(&own, sizeof(*span));
    if (span == NULL) {
        own.lacks = sizeof(*span); /* as the system's own would: this one does not grow */
        return NULL;
    }
    span->units = 1;
    span->requested = PAGE_BYTES;
    if (span_alloc(&page_heap, span, SPAN_LARGE, 1, PAGE_BYTES))
        return span;
    meta_free_to(&own, span, sizeof(*span));
    return NULL;
}

static size_t pages_take(size_t from, size_t most)
{
    size_t count = from;
    while (count < most && (spans[count] = page_take()) != NULL)
        count++;
    return count;
}

TEST(pages_become_descriptors_and_a_table)
{
    NEED_SMALL_PAGES;
    size_t count = pages_take(0, SPANS);
    assert_in_range(count, 40, ROOM);
    assert_true(page_heap.clean.pages > 100);
    assert_true(page_heap_feed_meta(&page_heap));
    assert_int_equal(own.lacks, 0);
    assert_int_equal(page_heap.busy_pages, 16);
    assert_page_heap_sound();
    /* A table of more than 4 KiB is not made of blocks of metadata. */
    count = pages_take(count, SPANS);
    assert_int_equal(count, 512 - 512 / SLACK_SHARE);
    assert_int_equal(page_heap.large.lacks, 2 * META_MOST);
    assert_true(page_heap_feed_meta(&page_heap));
    assert_int_equal(page_heap.busy_pages, 32);
    count = pages_take(count, SPANS);
    assert_in_range(count, 800, 1024);
    assert_page_heap_sound();
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(large_table_find(&page_heap.large, spans[i]->start), spans[i]);
        memset(spans[i]->start, 0xff, PAGE_BYTES); /* it is nobody else's */
    }
    for (size_t i = 0; i < count; i++)
        span_put(spans[i]);
    assert_page_heap_sound();
    assert_int_equal(page_heap.large.count, 0);
    assert_int_equal(page_heap_in_use_pages(&page_heap), 0);
    assert_int_equal(page_heap.busy_pages, 32); /* for good */
}

TEST(no_pages_go_unless_some_were_refused)
{
    size_t count = pages_take(0, 10);
    assert_int_equal(count, 10);
    assert_false(page_heap_feed_meta(&page_heap));
    assert_int_equal(page_heap.busy_pages, 0);
    while (count > 0)
        span_put(spans[--count]);
    assert_page_heap_empty();
}

/* All runs but the last are of three pages. */
TEST(shorter_runs_go_as_a_whole)
{
    NEED_SMALL_PAGES;
    struct span *triples[4], *walls[4], *rest;
    for (size_t i = 0; i < 4; i++) {
        triples[i] = span_new(SPAN_LARGE, 3, PAGE_BYTES);
        walls[i] = span_new(SPAN_LARGE, 1, PAGE_BYTES);
    }
    rest = span_new(SPAN_LARGE, page_heap.clean.pages, PAGE_BYTES);
    assert_non_null(rest);
    own.lacks = META_LEAST;
    assert_false(page_heap_feed_meta(&page_heap)); /* nothing is free */
    span_put(triples[1]);
    page_heap_purge(&page_heap, 0);
    assert_true(page_heap_feed_meta(&page_heap));
    assert_int_equal(page_heap.busy_pages, 3);
    assert_int_equal(page_heap.clean.pages, 0);
    assert_page_heap_sound();
    assert_int_equal(own.chunk_end - own.chunk, 3 * PAGE_BYTES - META_LEAST);
    char *first = triples[0]->start + 4 * PAGE_BYTES + META_LEAST, *block;
    do {
        block = meta_alloc_from(&own, META_LEAST);
        assert_non_null(block);
    } while (block != first); /* after what was there before */
    span_put(rest);
    for (size_t i = 0; i < 4; i++) {
        span_put(walls[i]);
        if (i != 1)
            span_put(triples[i]);
    }
    assert_page_heap_sound();
    assert_int_equal(page_heap_in_use_pages(&page_heap), 0);
}

/* Or pages would go for nothing, one after the other. */
TEST(pages_go_only_where_the_block_fits)
{
    NEED_SMALL_PAGES;
    struct span *holes[3], *walls[3], *rest;
    for (size_t i = 0; i < 3; i++) {
        holes[i] = span_new(SPAN_LARGE, i == 0 ? 2 : 1, PAGE_BYTES);
        walls[i] = span_new(SPAN_LARGE, 1, PAGE_BYTES);
    }
    rest = span_new(SPAN_LARGE, page_heap.clean.pages, PAGE_BYTES);
    span_put(holes[1]);
    span_put(holes[2]);
    page_heap_purge(&page_heap, 0);
    own.lacks = META_MOST;
    assert_false(page_heap_feed_meta(&page_heap));
    own.lacks = META_MOST / 2;
    assert_true(page_heap_feed_meta(&page_heap));
    assert_int_equal(page_heap.busy_pages, 1);
    assert_non_null(meta_alloc_from(&own, META_MOST / 2));
    span_put(holes[0]);
    page_heap_purge(&page_heap, 0);
    own.lacks = META_MOST;
    assert_true(page_heap_feed_meta(&page_heap));
    assert_int_equal(page_heap.busy_pages, 3);
    assert_non_null(meta_alloc_from(&own, META_MOST));
    span_put(rest);
    for (size_t i = 0; i < 3; i++)
        span_put(walls[i]);
    assert_page_heap_sound();
    assert_int_equal(page_heap_in_use_pages(&page_heap), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(pages_become_descriptors_and_a_table, begin, page_heap_end),
        ROW_WITH(no_pages_go_unless_some_were_refused, begin, page_heap_end),
        ROW_WITH(shorter_runs_go_as_a_whole, begin, page_heap_end),
        ROW_WITH(pages_go_only_where_the_block_fits, begin, page_heap_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
