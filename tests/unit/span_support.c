/*
 * Spans for tests. See span_support.h.
 */
#include "span_support.h"

#include "meta/meta.h"

struct fake_provider fake;
struct spans spans;

uint64_t fake_now;

static uint64_t fake_clock(void)
{
    return fake_now;
}

int spans_begin(void **state)
{
    fake_provider_init(&fake);
    spans_init(&spans, &fake.provider);
    fake_now = 1000 * FAKE_SECOND;
    spans.now = fake_clock;
    spans.large_most = BORDER;
    return options_reset(state);
}

int spans_end(void **state)
{
    bool bad = fake.unknown_range;
    fake_provider_end(&fake);
    options_reset(state);
    return bad ? -1 : 0;
}

struct span *span_new(enum span_kind kind, size_t pages, size_t alignment)
{
    struct span *span = meta_take(sizeof(*span));
    span->units = 1;
    if (span_take(&spans, span, kind, pages, alignment))
        return span;
    meta_give(span, sizeof(*span));
    return NULL;
}

struct span *span_get(size_t pages)
{
    struct span *span = span_new(SPAN_LARGE, pages, PAGE_BYTES);
    assert_non_null(span);
    return span;
}

size_t runs_count(const struct runs *runs)
{
    size_t count = 0;
    for (size_t bin = 0; bin < RUN_BINS; bin++)
        LIST_EACH(node, &runs->bins[bin])
    count++;
    return count;
}

void assert_spans_sound(void)
{
    const char *wrong = spans_check(&spans);
    if (wrong != NULL)
        fail_msg("%s", wrong);
}

void assert_spans_empty(void)
{
    assert_spans_sound();
    assert_int_equal(spans.used_pages, 0);
    assert_int_equal(spans.huge_count, 0);
    assert_int_equal(spans.huge_pages, 0);
    spans_purge(&spans, 0);
    assert_spans_sound();
    assert_int_equal(spans.segment_pages, 0);
    assert_int_equal(spans.dirty.pages, 0);
    assert_int_equal(spans.clean.pages, 0);
    assert_int_equal(spans.empty_segments, 0);
    assert_int_equal(spans.cache.count, 0);
    assert_true(list_empty(&spans.segments));
    assert_int_equal(fake.bytes, 0);
}
