/*
 * Large and huge objects. See large.h.
 */
#include "span/large.h"

#include "platform/memory.h"
#include "span/span_runs.h"
#include "stats/stats.h"

static size_t span_bytes(const struct span *span)
{
    return (size_t)span->pages << PAGE_SHIFT;
}

/* Changes what the program asked for a block to be, and `sum`, that of all blocks of its kind. */
static void span_request(size_t *sum, struct span *span, size_t requested)
{
    gauge_change(sum, requested - span->requested);
    span->requested = requested;
}

/* What is larger has a mapping of its own. */
static size_t large_most(const struct spans *spans)
{
    return spans->compact ? MAX_REQUEST : spans->large_most;
}

/* ---- Huge: mappings of their own ---- */

/* Tells the page map what is at `start`. Without memory for its leaf the map stays silent there,
 * and the span is found by walking the list of huge ones: slow, but nothing is lost. */
static void huge_map_entry(const char *start, uintptr_t entry)
{
    if (page_map_reserve(start, PAGE_BYTES))
        page_map_set_entry(start, entry);
}

/* The huge span that `address` is in. The lock must be held. */
static struct span *huge_around(struct spans *spans, uintptr_t address)
{
    LIST_EACH(node, &spans->huge)
    {
        struct span *span = CONTAINER_OF(node, struct span, link);
        if (address - (uintptr_t)span->start < span_bytes(span))
            return span;
    }
    return NULL;
}

/* `fresh` are the pages in it that occupied no memory when they were taken. */
static void huge_list(struct spans *spans, struct span *span, size_t fresh)
{
    lock_take(&spans->lock);
    list_push(&spans->huge, &span->link);
    GAUGE_ADD(spans->huge_count, 1);
    GAUGE_ADD(spans->huge_pages, span->pages);
    gauge_change(&spans->huge_requested, span->requested);
    spans_note_peak(spans);
    huge_map_entry(span->start, (uintptr_t)span);
    spans_took(spans, fresh, fresh != 0);
    lock_release(&spans->lock);
}

/* The lock must be held. */
static void huge_unlist(struct spans *spans, struct span *span)
{
    list_remove(&span->link);
    GAUGE_ADD(spans->huge_count, (size_t)-1);
    GAUGE_ADD(spans->huge_pages, -(size_t)span->pages);
    gauge_change(&spans->huge_requested, -span->requested);
    huge_map_entry(span->start, entry_freed(span_bytes(span)));
}

static void *huge_take(struct spans *spans, size_t requested, size_t alignment, bool *zero)
{
    size_t bytes = align_up(requested, os_page_size());
    if (bytes >> PAGE_SHIFT > UINT32_MAX)
        return NULL;
    struct span *span = descriptor_take(spans);
    if (span == NULL)
        return NULL;
    if (!spans_take_range(spans, span, bytes, alignment)) {
        descriptor_give(spans, span);
        return NULL;
    }
    char *start = span->start;
    *zero = span->zero;
    span->requested = requested;
    huge_list(spans, span, span->zero ? span->pages : 0);
    return start;
}

static void *huge_resize(struct spans *spans, struct span *span, size_t requested)
{
    size_t bytes = align_up(requested, os_page_size());
    if (bytes >> PAGE_SHIFT > UINT32_MAX)
        return NULL;
    if (bytes == span_bytes(span)) {
        span_request(&spans->huge_requested, span, requested);
        return span->start;
    }
    lock_take(&spans->lock);
    huge_unlist(spans, span);
    lock_release(&spans->lock);
    char *moved =
        spans->provider->resize(spans->provider, span->start, span_bytes(span), bytes, true);
    if (moved != NULL) {
        span->start = moved;
        span->pages = (uint32_t)(bytes >> PAGE_SHIFT);
        span->requested = requested;
    }
    huge_list(spans, span, 0);
    return moved;
}

/* ---- Both kinds ---- */

static void *span_as_block(struct spans *spans, struct span *span, size_t requested, bool *zero)
{
    span->requested = 0;
    span_request(&spans->large_requested, span, requested);
    gauge_change(&spans->large_count, 1);
    *zero = span->zero;
    return span->start;
}

static void *span_as_large(struct spans *spans, size_t bytes, size_t alignment, bool *zero)
{
    struct span *span = descriptor_take(spans);
    if (span == NULL)
        return NULL;
    if (!span_take(spans, span, SPAN_LARGE, bytes_to_pages(bytes), alignment)) {
        descriptor_give(spans, span);
        return NULL;
    }
    return span_as_block(spans, span, bytes, zero);
}

void *large_take(struct spans *spans, size_t bytes, size_t alignment, bool *zero)
{
    if (alignment < PAGE_BYTES)
        alignment = PAGE_BYTES;
    if (bytes > MAX_REQUEST || alignment > MAX_REQUEST)
        return NULL;
    bytes = size_max(bytes, 1);
    if (spans_tick_is_due(spans))
        spans_tick(spans);
    COUNT(large_taken_bytes, bytes);
    if (bytes + alignment - PAGE_BYTES > large_most(spans))
        return huge_take(spans, bytes, alignment, zero);
    return span_as_large(spans, bytes, alignment, zero);
}

void *large_take_grown(struct spans *spans, size_t bytes, bool *zero)
{
    if (bytes <= GROWN_MOST || bytes > large_most(spans) || spans->compact)
        return large_take(spans, bytes, PAGE_BYTES, zero);
    if (spans_tick_is_due(spans))
        spans_tick(spans);
    COUNT(large_taken_bytes, bytes);
    struct span *span = descriptor_take(spans);
    if (span == NULL)
        return NULL;
    if (span_take_kept(spans, span, SPAN_LARGE, bytes_to_pages(bytes)))
        return span_as_block(spans, span, bytes, zero);
    descriptor_give(spans, span);
    return huge_take(spans, bytes, PAGE_BYTES, zero);
}

/* The large or huge span that begins at `address`; NULL if none does. The lock must be held. */
static struct span *large_at(struct spans *spans, uintptr_t address)
{
    uintptr_t entry = page_map_entry(address);
    struct span *span = entry_is_span(entry) ? (struct span *)entry : huge_around(spans, address);
    if (span == NULL || (uintptr_t)span->start != address)
        return NULL;
    return span->kind == SPAN_LARGE || span->kind == SPAN_HUGE ? span : NULL;
}

struct misuse large_give(struct spans *spans, uintptr_t address)
{
    lock_take(&spans->lock);
    struct span *span = large_at(spans, address);
    if (span == NULL) {
        lock_release(&spans->lock);
        return large_misuse(spans, address);
    }
    if (span->kind == SPAN_LARGE) {
        gauge_change(&spans->large_count, (size_t)-1);
        span_request(&spans->large_requested, span, 0);
        span_free_locked(spans, span, span_bytes(span));
    } else {
        huge_unlist(spans, span);
        spans_give_range(spans, span);
    }
    lock_release(&spans->lock);
    return (struct misuse){.kind = MISUSE_NONE};
}

struct misuse large_usable(struct spans *spans, uintptr_t address, size_t *bytes)
{
    lock_take(&spans->lock);
    struct span *span = large_at(spans, address);
    if (span != NULL)
        *bytes = span_bytes(span);
    lock_release(&spans->lock);
    if (span == NULL)
        return large_misuse(spans, address);
    return (struct misuse){.kind = MISUSE_NONE};
}

void *large_resize(struct spans *spans, uintptr_t address, size_t bytes)
{
    lock_take(&spans->lock);
    struct span *span = large_at(spans, address);
    lock_release(&spans->lock);
    if (span->kind == SPAN_HUGE)
        return bytes > GROWN_MOST ? huge_resize(spans, span, bytes) : NULL;
    if (bytes > large_most(spans))
        return NULL;
    size_t pages = bytes_to_pages(bytes);
    bool done = pages == span->pages;
    if (pages > span->pages)
        done = span_extend(spans, span, pages);
    else if (pages < span->pages)
        done = span_shrink(spans, span, pages);
    if (done)
        span_request(&spans->large_requested, span, bytes);
    return done ? span->start : NULL;
}

void large_clear_locked(struct spans *spans)
{
    while (!list_empty(&spans->huge)) {
        struct span *span = CONTAINER_OF(spans->huge.next, struct span, link);
        huge_unlist(spans, span);
        spans_give_range(spans, span);
    }
}

bool large_has_huge(struct spans *spans, uintptr_t address)
{
    lock_take(&spans->lock);
    bool found = huge_around(spans, address) != NULL;
    lock_release(&spans->lock);
    return found;
}

/* ---- Misuse ---- */

COLD struct misuse large_misuse(struct spans *spans, uintptr_t address)
{
    struct misuse misuse = {.kind = MISUSE_UNKNOWN, .address = address};
    lock_take(&spans->lock);
    uintptr_t entry = page_map_entry(address);
    struct span *span = entry_is_span(entry) ? (struct span *)entry : huge_around(spans, address);
    if (span != NULL && !span_is_free(span)) {
        misuse.kind = MISUSE_INSIDE;
        misuse.bytes = span_bytes(span);
        misuse.start = (uintptr_t)span->start;
    } else if (span != NULL) {
        misuse.kind = MISUSE_DOUBLE_FREE;
        misuse.bytes = address - (uintptr_t)span->start < PAGE_BYTES ? span->former_bytes : 0;
    } else if (entry != 0) {
        misuse.kind = MISUSE_DOUBLE_FREE;
        misuse.bytes = entry >> 1;
    }
    lock_release(&spans->lock);
    return misuse;
}
