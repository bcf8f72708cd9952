/*
 * Buying huge pages, for tests. See huge_pages_support.h.
 */
#include "huge_pages_support.h"

#include <string.h>

#include "meta/meta.h"
#include "options/options.h"

struct shop shop;

/* NULL, or why nothing may be bought here. */
static const char *call_wrong(char *start, size_t bytes, bool huge)
{
    const struct span *run = span_around(&page_heap, (uintptr_t)start);
    if (run == NULL || run->kind != SPAN_BUSY || start + bytes > span_end(run))
        return "not all of it is what is to be made present";
    if (huge && (bytes != OS_HUGE_PAGE || (uintptr_t)start % OS_HUGE_PAGE != 0))
        return "that is not where a huge page can be";
    if (page_heap.shared_pages << PAGE_SHIFT < SHARE_BYTES)
        return "slabs and cells do not take enough";
    if (huge && page_heap_kept_pages(&page_heap) + HUGE_PAGES > page_heap_bound(&page_heap))
        return "more would be kept than may be";
    return NULL;
}

uint64_t shop_populate(const struct provider *provider, void *start, size_t bytes, bool huge)
{
    (void)provider;
    if (shop.wrong == NULL)
        shop.wrong = call_wrong(start, bytes, huge);
    if (shop.wrong == NULL) /* which takes the lock: nobody has it */
        shop.wrong = page_heap_check(&page_heap);
    if (shop.meanwhile != NULL)
        shop.meanwhile();
    uint64_t price = huge ? shop.huge_ns : shop.small_ns;
    if (price == 0) {
        shop.refused++;
        return 0;
    }
    shop.last = start;
    shop.last_bytes = bytes;
    shop.huge += huge;
    shop.small += !huge;
    if (!huge && shop.first_small_end == NULL)
        shop.first_small_end = (char *)start + bytes;
    return price * (bytes >> PAGE_SHIFT);
}

int packed_begin(void **state)
{
    int result = cells_begin(state);
    memset(&shop, 0, sizeof(shop));
    shop.small_ns = 1000;
    shop.huge_ns = 300;
    fake.provider.populate = shop_populate;
    options.prefault = SEGMENT; /* there is no `prepare`, so nothing is touched */
    return result;
}

/* ---- Spans that are filled ---- */

struct span *taken[SPANS_MOST];
size_t taken_count;

void assert_packed_sound(void)
{
    assert_page_heap_sound();
    if (shop.wrong != NULL)
        fail_msg("%s", shop.wrong);
}

struct span *alloc_by(taker *take, enum span_kind kind, size_t pages, size_t alignment)
{
    size_t calls = shop.huge + shop.small + shop.refused;
    struct span *span = meta_alloc_from(page_heap.meta, sizeof(*span));
    assert_non_null(span);
    span->units = 1;
    assert_true(take(&page_heap, span, kind, pages, alignment));
    assert_in_range(taken_count, 0, SPANS_MOST - 1);
    taken[taken_count++] = span;
    bool called = shop.huge + shop.small + shop.refused != calls;
    if (called || taken_count % 1024 == 0)
        assert_packed_sound();
    return span;
}

struct span *piece_take(void)
{
    return alloc_by(span_alloc_packed, SPAN_SLAB, PIECE, PIECE_BYTES);
}

void fill(size_t bytes)
{
    for (size_t done = 0; done < bytes; done += PIECE_BYTES)
        piece_take();
}

void fill_share(void)
{
    fill(SHARE_BYTES);
    assert_int_equal(shop.huge + shop.small + shop.refused, 0);
    assert_packed_sound();
}

struct span *fill_to_huge(void)
{
    size_t huge = shop.huge;
    struct span *piece;
    do
        piece = piece_take();
    while (shop.huge == huge);
    return piece;
}

void fill_rest(void)
{
    while (page_heap.clean.pages + page_heap.dirty.pages >= 2 * PIECE)
        piece_take();
}

void give_all(void)
{
    assert_packed_sound();
    while (taken_count > 0)
        span_put(taken[--taken_count]);
    assert_page_heap_empty();
}

int packed_end(void **state)
{
    taken_count = 0;
    return page_heap_end(state);
}

static const struct segment *first_segment(void)
{
    return CONTAINER_OF(page_heap.segments.next, struct segment, link);
}

size_t ranges_from(const char *start)
{
    uintptr_t first = align_up((uintptr_t)start, OS_HUGE_PAGE);
    uintptr_t last = align_down((uintptr_t)segment_end(first_segment()), OS_HUGE_PAGE);
    return last > first ? (last - first) / OS_HUGE_PAGE : 0;
}
