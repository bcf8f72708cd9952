/*
 * Large spans: taking, giving back, growing and shrinking in place, purging.
 */
#include <string.h>

#include "meta/meta.h"
#include "meta/page_map.h"
#include "options/options.h"
#include "platform/memory.h"
#include "world.h"

enum { LARGE_COUNT = 64, LONG_PAGES = 1200 };

static struct shadow_span {
    struct span *span;
    uintptr_t start;
    size_t pages;
    uint32_t id; /* of the contents */
} larges[LARGE_COUNT];
static size_t large_count;

void large_begin(void)
{
    large_count = 0;
}

static size_t bytes_of(size_t pages)
{
    return pages << PAGE_SHIFT;
}

static size_t pages_decode(struct input *input)
{
    uint16_t pair = input_pair(input);
    /* mostly a few pages, now and then more than a segment has */
    return 1 + (pair < 0xf000 ? pair % 40 : pair % LONG_PAGES);
}

/* ---- Expectations ---- */

static void expect_zero(uintptr_t start, size_t bytes)
{
    const char *at = (const char *)start;
    EXPECT(*at == 0 && memcmp(at, at + 1, bytes - 1) == 0, "a span that is said to be zero is not");
}

/* That a block is found by its address, and nothing by those of its other pages. */
static void expect_found(uintptr_t start, size_t pages, const struct span *span)
{
    for (size_t i = 0; i < pages; i++) {
        const char *page = (const char *)start + bytes_of(i);
        EXPECT(large_table_find(&page_heap.large, page) == (i == 0 ? span : NULL),
               "the table leads elsewhere");
        EXPECT(page_map_class((uintptr_t)page) == 0, "a page of a large span has a size class");
    }
}

static void expect_as_said(const struct shadow_span *large)
{
    const struct span *span = large->span;
    EXPECT((uintptr_t)span->start == large->start && span->pages == large->pages &&
               span->kind == SPAN_LARGE,
           "a large span's descriptor has changed");
}

/* ---- Operations ---- */

static void take(struct input *input)
{
    size_t pages = pages_decode(input);
    size_t alignment = PAGE_BYTES << input_byte(input) % 9;
    struct span *span = large_count < LARGE_COUNT ? meta_alloc(sizeof(*span)) : NULL;
    if (span == NULL)
        return;
    span->units = 1;
    size_t refused = fuzz_provider.refused;
    if (!span_alloc(&page_heap, span, SPAN_LARGE, pages, alignment)) {
        EXPECT(fuzz_provider.refused != refused, "no span, but the provider was not asked");
        meta_free(span, sizeof(*span));
        return;
    }
    struct shadow_span *large = &larges[large_count++];
    *large = (struct shadow_span){span, (uintptr_t)span->start, pages, pattern_new()};
    EXPECT((large->start & (alignment - 1)) == 0, "a span is not aligned to %zu", alignment);
    expect_as_said(large);
    expect_found(large->start, pages, span);
    claim(large->start, bytes_of(pages), CLAIM_NONE, CLAIM_BLOCK);
    if (span->zero)
        expect_zero(large->start, bytes_of(pages));
    pattern_fill(large->start, bytes_of(pages), large->id);
}

static void give_one(size_t index)
{
    struct shadow_span large = larges[index];
    larges[index] = larges[--large_count];
    expect_as_said(&large);
    pattern_expect(large.start, bytes_of(large.pages), bytes_of(large.pages), large.id);
    claim(large.start, bytes_of(large.pages), CLAIM_BLOCK, CLAIM_NONE);
    span_free(&page_heap, large.span, bytes_of(large.pages));
}

static void give(struct input *input)
{
    if (large_count != 0)
        give_one(input_index(input, large_count));
}

static void extend(struct input *input)
{
    if (large_count == 0)
        return;
    struct shadow_span *large = &larges[input_index(input, large_count)];
    size_t more = pages_decode(input);
    uintptr_t end = large->start + bytes_of(large->pages);
    bool room = end + bytes_of(more) <= (uintptr_t)segment_end(large->span->segment) &&
                claimed_as(end, bytes_of(more), CLAIM_NONE);
    if (!span_extend(&page_heap, large->span, large->pages + more)) {
        expect_as_said(large);
        return;
    }
    EXPECT(room, "a span grew by %zu pages into what is in use", more);
    pattern_expect(large->start, bytes_of(large->pages), bytes_of(large->pages), large->id);
    large->pages += more;
    expect_as_said(large);
    expect_found(large->start, large->pages, large->span);
    claim(end, bytes_of(more), CLAIM_NONE, CLAIM_BLOCK);
    pattern_fill(large->start, bytes_of(large->pages), large->id);
}

static void shrink(struct input *input)
{
    if (large_count == 0)
        return;
    struct shadow_span *large = &larges[input_index(input, large_count)];
    if (large->pages == 1)
        return;
    size_t old_pages = large->pages;
    size_t pages = 1 + input_index(input, old_pages - 1);
    uintptr_t end = large->start + bytes_of(pages);
    claim(end, bytes_of(old_pages - pages), CLAIM_BLOCK, CLAIM_NONE);
    EXPECT(span_shrink(&page_heap, large->span, pages), "a span cannot be made shorter");
    large->pages = pages;
    expect_as_said(large);
    pattern_expect(large->start, bytes_of(old_pages), bytes_of(pages), large->id);
    pattern_fill(large->start, bytes_of(pages), large->id);
}

static void purge(struct input *input)
{
    size_t keep = input_byte(input);
    bool obeys = fuzz_provider.fail_purges == 0 && fuzz_provider.fail_gives == 0 &&
                 os_page_size() == PAGE_BYTES;
    page_heap_purge(&page_heap, keep);
    if (obeys)
        EXPECT(page_heap.dirty.pages <= keep, "%zu pages are dirty after a purge down to %zu",
               page_heap.dirty.pages, keep);
}

static void set_dirty(struct input *input)
{
    options.dirty = bytes_of(input_byte(input));
}

const struct operation large_operations[] = {
    {"span_alloc", take, 6},
    {"span_free", give, 4},
    {"span_extend", extend, 2},
    {"span_shrink", shrink, 2},
    {"page_heap_purge", purge, 1},
    {"set dirty", set_dirty, 1},
    {NULL, NULL, 0},
};

void large_expect_sound(void)
{
    for (size_t i = 0; i < large_count; i++) {
        expect_as_said(&larges[i]);
        expect_found(larges[i].start, larges[i].pages, larges[i].span);
    }
}

size_t large_pages(void)
{
    size_t pages = 0;
    for (size_t i = 0; i < large_count; i++)
        pages += larges[i].pages;
    return pages;
}

void large_end(void)
{
    while (large_count != 0)
        give_one(large_count - 1);
}
