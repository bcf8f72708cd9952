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

/* What becomes shorter than this moves: the system has room for some ten thousand mappings. */
#define HUGE_LEAST (128 * KIB)

/* The huge span that `address` is in. The lock must be held. */
static struct span *huge_around(const struct spans *spans, uintptr_t address)
{
    struct span *span = spans->huge;
    while (span != NULL && address - (uintptr_t)span->start >= span_bytes(span))
        span = span->right;
    return span;
}

/* Lists a span, for which there is room in the table. `fresh` are the pages in it that occupied no
 * memory when they were taken. The lock must be held. */
static void huge_list(struct spans *spans, struct span *span, size_t fresh)
{
    span->left = NULL;
    span->right = spans->huge;
    if (span->right != NULL)
        span->right->left = span;
    /* release: who walks the list from outside finds the span whole */
    __atomic_store_n(&spans->huge, span, __ATOMIC_RELEASE);
    GAUGE_ADD(spans->huge_count, 1);
    GAUGE_ADD(spans->huge_pages, span->pages);
    gauge_change(&spans->huge_requested, span->requested);
    spans_note_peak(spans);
    large_table_add(&spans->large, span);
    spans_took(spans, fresh, fresh != 0);
}

/* The lock must be held. */
static void huge_unlist(struct spans *spans, struct span *span)
{
    if (span->left != NULL)
        span->left->right = span->right;
    else
        spans->huge = span->right;
    if (span->right != NULL)
        span->right->left = span->left;
    GAUGE_ADD(spans->huge_count, (size_t)-1);
    GAUGE_ADD(spans->huge_pages, -(size_t)span->pages);
    gauge_change(&spans->huge_requested, -span->requested);
    large_table_remove(&spans->large, span);
    spans_note_freed(spans, span->start, span_bytes(span));
}

static void *huge_take(struct spans *spans, size_t requested, size_t alignment, size_t *dirty)
{
    size_t bytes = align_up(requested, os_page_size());
    if (bytes >> PAGE_SHIFT > UINT32_MAX)
        return NULL;
    struct span *span = descriptor_take(spans);
    if (span == NULL)
        return NULL;
    lock_take(&spans->lock);
    bool done = large_table_reserve(&spans->large, spans->meta) &&
                spans_take_range(spans, span, bytes, alignment);
    if (done) {
        span->requested = requested;
        *dirty = span->zero ? 0 : bytes;
        huge_list(spans, span, span->zero ? span->pages : 0);
    }
    char *start = done ? span->start : NULL;
    lock_release(&spans->lock);
    if (!done)
        descriptor_give(spans, span);
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
    lock_take(&spans->lock);
    huge_list(spans, span, 0);
    lock_release(&spans->lock);
    return moved;
}

/* ---- Both kinds ---- */

static void *span_as_block(struct spans *spans, struct span *span, size_t requested, size_t *dirty)
{
    span_request(&spans->large_requested, span, requested);
    gauge_change(&spans->large_count, 1);
    *dirty = span->dirty_bytes;
    return span->start;
}

static void *span_as_large(struct spans *spans, size_t bytes, size_t alignment, size_t *dirty)
{
    struct span *span = descriptor_take(spans);
    if (span == NULL)
        return NULL;
    if (!span_take(spans, span, SPAN_LARGE, bytes_to_pages(bytes), alignment)) {
        descriptor_give(spans, span);
        return NULL;
    }
    return span_as_block(spans, span, bytes, dirty);
}

void *large_take(struct spans *spans, size_t bytes, size_t alignment, size_t *dirty)
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
        return huge_take(spans, bytes, alignment, dirty);
    return span_as_large(spans, bytes, alignment, dirty);
}

void *large_take_grown(struct spans *spans, size_t bytes, size_t *dirty)
{
    if (bytes <= GROWN_MOST || bytes > large_most(spans) || spans->compact)
        return large_take(spans, bytes, PAGE_BYTES, dirty);
    if (spans_tick_is_due(spans))
        spans_tick(spans);
    COUNT(large_taken_bytes, bytes);
    struct span *span = descriptor_take(spans);
    if (span == NULL)
        return NULL;
    if (span_take_kept(spans, span, SPAN_LARGE, bytes_to_pages(bytes)))
        return span_as_block(spans, span, bytes, dirty);
    descriptor_give(spans, span);
    return huge_take(spans, bytes, PAGE_BYTES, dirty);
}

/* The large or huge span that begins at `address`; NULL if none does. The lock must be held. */
static struct span *large_at(const struct spans *spans, uintptr_t address)
{
    if (!spans->compact)
        return large_table_find(&spans->large, (const char *)address);
    uintptr_t entry = page_map_entry(address);
    struct span *span = entry_is_span(entry) ? (struct span *)entry : NULL;
    bool begins = span != NULL && (uintptr_t)span->start == address;
    return begins && span->kind == SPAN_LARGE && span->segment->spans == spans ? span : NULL;
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
        spans_keep_bound(spans);
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
    if (span->kind == SPAN_HUGE) {
        bool stays = bytes > GROWN_MOST || (bytes < span_bytes(span) && bytes >= HUGE_LEAST);
        return stays ? huge_resize(spans, span, bytes) : NULL;
    }
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
    while (spans->huge != NULL) {
        struct span *span = spans->huge;
        huge_unlist(spans, span);
        spans_give_range(spans, span);
    }
}

/* The span that an address is in, or NULL. */
static struct span *around(const struct spans *spans, uintptr_t address)
{
    struct span *huge = huge_around(spans, address);
    return huge != NULL ? huge : span_around(spans, address);
}

bool large_has(struct spans *spans, uintptr_t address)
{
    lock_take(&spans->lock);
    bool found = large_at(spans, address) != NULL;
    lock_release(&spans->lock);
    return found;
}

bool large_covers(struct spans *spans, uintptr_t address)
{
    lock_take(&spans->lock);
    bool found = around(spans, address) != NULL;
    lock_release(&spans->lock);
    return found;
}

/* ---- Misuse ---- */

/* The block that was freed last of those that an address was in, as far as it is remembered. */
static const struct freed_block *freed_around(const struct freed_blocks *freed, uintptr_t address)
{
    for (unsigned i = 1; i <= SPANS_FREED; i++) {
        const struct freed_block *block = &freed->last[(freed->next - i) % SPANS_FREED];
        if (address - block->start < block->bytes)
            return block;
    }
    return NULL;
}

/* Of an address in free memory, which is `run`, or NULL if it is no longer in the heap. */
static struct misuse freed_misuse(const struct spans *spans, const struct span *run,
                                  uintptr_t address)
{
    struct misuse misuse = {.kind = MISUSE_DOUBLE_FREE, .address = address};
    const struct freed_block *block = freed_around(&spans->freed, address);
    uintptr_t entry = page_map_entry(address);
    bool marked = entry != 0 && !entry_is_span(entry);
    if (block != NULL)
        misuse.bytes = block->bytes;
    else if (run != NULL && address - (uintptr_t)run->start < PAGE_BYTES)
        misuse.bytes = run->former_bytes;
    else if (marked)
        misuse.bytes = entry >> 1;
    else if (run == NULL)
        misuse.kind = MISUSE_UNKNOWN;
    return misuse;
}

COLD struct misuse large_misuse(struct spans *spans, uintptr_t address)
{
    struct misuse misuse = {.kind = MISUSE_INSIDE, .address = address};
    lock_take(&spans->lock);
    const struct span *span = around(spans, address);
    if (span != NULL && !span_is_free(span)) {
        misuse.bytes = span_bytes(span);
        misuse.start = (uintptr_t)span->start;
    } else {
        misuse = freed_misuse(spans, span, address);
    }
    lock_release(&spans->lock);
    return misuse;
}
