/*
 * Spans for tests. See page_heap_support.h.
 */
#include "page_heap_support.h"

#include <string.h>

#include "meta/meta.h"
#include "pageheap/large.h"

struct fake_provider fake;
struct page_heap page_heap;

uint64_t fake_now;

static uint64_t fake_clock(void)
{
    return fake_now;
}

uint64_t fake_exact_step;

static uint64_t fake_clock_exact(void)
{
    static uint64_t now;
    return now += fake_exact_step;
}

void page_heap_begin_on(const struct provider *provider)
{
    page_heap_init(&page_heap, provider);
    fake_now = 1000 * FAKE_SECOND;
    page_heap.now = fake_clock;
    fake_exact_step = 0;
    page_heap.now_exact = fake_clock_exact;
}

int page_heap_begin(void **state)
{
    fake_provider_init(&fake);
    page_heap_begin_on(&fake.provider);
    page_heap.large_most = BORDER;
    return options_reset(state);
}

int page_heap_end(void **state)
{
    bool bad = fake.unknown_range;
    fake_provider_end(&fake);
    options_reset(state);
    return bad ? -1 : 0;
}

struct span *span_new(enum span_kind kind, size_t pages, size_t alignment)
{
    struct span *span = meta_alloc(sizeof(*span));
    span->units = 1;
    if (span_alloc(&page_heap, span, kind, pages, alignment))
        return span;
    meta_free(span, sizeof(*span));
    return NULL;
}

struct span *span_get(size_t pages)
{
    struct span *span = span_new(SPAN_LARGE, pages, PAGE_BYTES);
    assert_non_null(span);
    return span;
}

char *large_get(size_t bytes)
{
    size_t dirty;
    char *start = large_alloc(&page_heap, bytes, MIN_ALIGN, &dirty);
    assert_non_null(start);
    memset(start, 1, bytes);
    assert_page_heap_sound();
    return start;
}

void large_put(char *start)
{
    assert_int_equal(large_free(&page_heap, (uintptr_t)start).kind, MISUSE_NONE);
    assert_page_heap_sound();
}

size_t runs_count(const struct runs *runs)
{
    size_t count = 0;
    for (size_t bin = 0; bin < RUN_BINS; bin++)
        LIST_EACH(node, &runs->bins[bin])
            count++;
    return count;
}

void assert_page_heap_sound(void)
{
    const char *wrong = page_heap_check(&page_heap);
    if (wrong != NULL)
        fail_msg("%s", wrong);
}

void assert_page_heap_empty(void)
{
    assert_page_heap_sound();
    assert_int_equal(page_heap_in_use_pages(&page_heap), 0);
    assert_int_equal(page_heap.huge_count, 0);
    assert_int_equal(page_heap.huge_pages, 0);
    page_heap_purge(&page_heap, 0);
    assert_page_heap_sound();
    assert_int_equal(page_heap.segment_pages, 0);
    assert_int_equal(page_heap.dirty.pages, 0);
    assert_int_equal(page_heap.clean.pages, 0);
    assert_int_equal(page_heap.empty_segments, 0);
    assert_int_equal(page_heap.cache.count, 0);
    assert_true(list_empty(&page_heap.segments));
    assert_int_equal(fake.bytes, 0);
}
