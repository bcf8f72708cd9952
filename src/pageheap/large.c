/*
 * Large and huge objects. See large.h.
 */
#include "pageheap/large.h"

#include "meta/page_map.h"
#include "pageheap/run_find.h"
#include "pageheap/segments.h"
#include "pageheap/sparse.h"
#include "platform/memory.h"
#include "stats/stats.h"

/* Changes what the program asked for a block to be. The lock must be held. */
static void span_request(struct page_heap *page_heap, struct span *span, size_t requested)
{
    large_sizes_change(&page_heap->sizes, span->requested, requested);
    if (span->kind == SPAN_HUGE)
        GAUGE_ADD(page_heap->huge_requested, requested - span->requested);
    span->requested = requested;
}

/* The most bytes of a block that has no mapping of its own, its alignment included. */
static size_t large_most(const struct page_heap *page_heap)
{
    return page_heap->compact ? (size_t)UINT32_MAX << PAGE_SHIFT : page_heap->large_most;
}

/* ---- Huge: mappings of their own ---- */

/* The huge span that `address` is in. The lock must be held. */
static struct span *huge_around(const struct page_heap *page_heap, uintptr_t address)
{
    struct span *span = page_heap->huge;
    while (span != NULL && address - (uintptr_t)span->start >= span_bytes(span))
        span = span->right;
    return span;
}

/* Lists a span, for which there is room in the table. `fresh` are the pages in it that occupied no
 * memory when they were taken. The lock must be held. */
static COLD void huge_list(struct page_heap *page_heap, struct span *span, size_t fresh)
{
    span->left = NULL;
    span->right = page_heap->huge;
    if (span->right != NULL)
        span->right->left = span;
    /* release: who walks the list from outside finds the span whole */
    __atomic_store_n(&page_heap->huge, span, __ATOMIC_RELEASE);
    GAUGE_ADD(page_heap->huge_count, 1);
    GAUGE_ADD(page_heap->huge_pages, span->pages);
    GAUGE_ADD(page_heap->huge_requested, span->requested);
    large_sizes_count(&page_heap->sizes, span->requested, 1);
    page_heap_note_peak(page_heap);
    peak_compare(page_heap);
    large_table_add(&page_heap->large, span);
    page_heap_note_alloc(page_heap, fresh, fresh != 0);
}

/* The lock must be held. */
static COLD void huge_unlist(struct page_heap *page_heap, struct span *span)
{
    if (span->left != NULL)
        span->left->right = span->right;
    else
        page_heap->huge = span->right;
    if (span->right != NULL)
        span->right->left = span->left;
    GAUGE_ADD(page_heap->huge_count, (size_t)-1);
    GAUGE_ADD(page_heap->huge_pages, -(size_t)span->pages);
    page_heap_note_use(page_heap);
    GAUGE_ADD(page_heap->huge_requested, -span->requested);
    large_sizes_count(&page_heap->sizes, span->requested, (size_t)-1);
    large_table_remove(&page_heap->large, span);
    page_heap_note_freed(page_heap, span->start, span->requested);
}

static COLD void *huge_alloc(struct page_heap *page_heap, size_t requested, size_t alignment,
                             size_t *dirty)
{
    size_t bytes = align_up(requested, os_page_size());
    if (bytes >> PAGE_SHIFT > UINT32_MAX)
        return NULL;
    struct span *span = descriptor_alloc(page_heap);
    if (span == NULL)
        return NULL;
    lock_acquire(&page_heap->lock);
    page_heap_join_recent(page_heap, NULL);
    bool done;
    do {
        done = large_table_reserve(&page_heap->large, page_heap->meta) &&
               (segments_alloc_range(page_heap, span, bytes, alignment) ||
                (page_heap_release_cache(page_heap, bytes) != 0 &&
                 segments_alloc_range(page_heap, span, bytes, alignment)));
    } while (!done && page_heap_wait_apart(page_heap));
    if (done) {
        span->requested = requested;
        *dirty = span->zero ? 0 : bytes;
        bool zero = span->zero;
        margin_make(page_heap, span, zero);
        huge_list(page_heap, span, zero ? span->pages : 0);
    }
    char *start = done ? span->start : NULL;
    lock_release(&page_heap->lock);
    if (done)
        COUNT(large_taken_bytes, requested);
    else
        descriptor_free(page_heap, span);
    return start;
}

static COLD void *huge_resize(struct page_heap *page_heap, struct span *span, size_t requested)
{
    size_t bytes = align_up(requested, os_page_size());
    lock_acquire(&page_heap->lock);
    if (bytes == span_bytes(span)) {
        span_request(page_heap, span, requested);
        margin_make(page_heap, span, false);
        lock_release(&page_heap->lock);
        return span->start;
    }
    page_heap_join_recent(page_heap, NULL);
    huge_unlist(page_heap, span);
    large_table_keep_place(&page_heap->large);
    lock_release(&page_heap->lock);
    char *moved = page_heap->provider->resize(page_heap->provider, span->start, span_bytes(span),
                                              bytes, true);
    size_t fresh = 0;
    if (moved != NULL) {
        bool shorter = bytes < span_bytes(span); /* what is added is zero */
        fresh = shorter ? 0 : (bytes - span_bytes(span)) >> PAGE_SHIFT;
        span->start = moved;
        span->pages = (uint32_t)(bytes >> PAGE_SHIFT);
        span->requested = requested;
        margin_make(page_heap, span, !shorter);
    }
    lock_acquire(&page_heap->lock);
    large_table_use_place(&page_heap->large);
    huge_list(page_heap, span, fresh);
    lock_release(&page_heap->lock);
    return moved;
}

/* Moves a block of a segment into a mapping of its own that is longer, without a copy. Where it was
 * is clean then. NULL: that cannot be done. */
static void *span_detach(struct page_heap *page_heap, struct span *span, size_t requested)
{
    const struct provider *provider = page_heap->provider;
    size_t bytes = align_up(requested, os_page_size());
    struct span *huge = descriptor_alloc(page_heap);
    if (huge == NULL)
        return NULL;
    char *start = provider->detach(provider, span->start, span_bytes(span), bytes);
    if (start == NULL) {
        descriptor_free(page_heap, huge);
        return NULL;
    }
    *huge = (struct span){.requested = requested,
                          .start = start,
                          .owner = page_heap,
                          .pages = (uint32_t)(bytes >> PAGE_SHIFT),
                          .kind = SPAN_HUGE,
                          .units = 1};
    margin_make(page_heap, huge, true);
    size_t fresh = huge->pages - span->pages;
    lock_acquire(&page_heap->lock);
    span_free_locked(page_heap, span, SPAN_CLEAN, span->requested);
    huge_list(page_heap, huge, fresh); /* in the place that this leaves in the table */
    lock_release(&page_heap->lock);
    COUNT(large_taken_bytes, requested);
    return start;
}

/* Whether a block moves like that if it becomes so long: not where memory that is kept has room for
 * all of it, for a copy costs less than new pages, nor out of huge pages. */
static bool may_detach(struct page_heap *page_heap, const struct span *span, size_t bytes)
{
    if (bytes <= GROWN_MOST || bytes <= span_bytes(span) || page_heap->provider->detach == NULL ||
        page_heap->locked || span->segment->huge == HUGE_THERE)
        return false;
    lock_acquire(&page_heap->lock);
    bool kept = run_find_dirty(page_heap, bytes_to_pages(bytes), PAGE_BYTES) != NULL;
    lock_release(&page_heap->lock);
    return !kept;
}

/* ---- Both kinds ---- */

/* `kept`: only of memory that is kept. The lock must be held, and is not after that. */
static void *span_as_large(struct page_heap *page_heap, size_t bytes, size_t alignment, bool kept,
                           size_t *dirty)
{
    size_t pages = bytes_to_pages(bytes);
    size_t wish = kept ? 0 : sparse_alignment(page_heap, pages);
    struct span *span = pages > UINT32_MAX ? NULL : descriptor_alloc(page_heap);
    if (span == NULL) {
        lock_release(&page_heap->lock);
        return NULL;
    }
    span->requested = bytes;
    bool done = (wish > alignment && span_alloc_large(page_heap, span, pages, wish, false)) ||
                span_alloc_large(page_heap, span, pages, alignment, kept);
    lock_release(&page_heap->lock);
    if (!done) {
        descriptor_free(page_heap, span);
        return NULL;
    }
    COUNT(large_taken_bytes, bytes);
    *dirty = span->dirty_bytes;
    margin_make(page_heap, span, span->dirty_bytes <= bytes);
    return span->start;
}

void *large_alloc(struct page_heap *page_heap, size_t bytes, size_t alignment, size_t *dirty)
{
    if (alignment < PAGE_BYTES)
        alignment = PAGE_BYTES;
    if (bytes > MAX_REQUEST || alignment > MAX_REQUEST)
        return NULL;
    bytes = size_max(bytes, 1);
    if (bytes + alignment - PAGE_BYTES > large_most(page_heap))
        return page_heap->compact ? NULL : huge_alloc(page_heap, bytes, alignment, dirty);
    *dirty = bytes;
    void *waiting = large_alloc_waiting(page_heap, bytes, alignment);
    return waiting != NULL ? waiting : span_as_large(page_heap, bytes, alignment, false, dirty);
}

void *large_alloc_missed(struct page_heap *page_heap, size_t bytes, size_t alignment)
{
    size_t dirty;
    /* Of a heap that is not made yet no length is one. */
    if (bytes != 0 && bytes <= large_most(page_heap) && alignment <= PAGE_BYTES)
        return span_as_large(page_heap, bytes, PAGE_BYTES, false, &dirty);
    lock_release(&page_heap->lock);
    return NULL;
}

void *large_alloc_grown(struct page_heap *page_heap, size_t bytes, size_t *dirty)
{
    if (bytes <= GROWN_MOST || page_heap->compact)
        return large_alloc(page_heap, bytes, PAGE_BYTES, dirty);
    lock_acquire(&page_heap->lock);
    void *block = span_as_large(page_heap, bytes, PAGE_BYTES, true, dirty);
    return block != NULL ? block : huge_alloc(page_heap, bytes, PAGE_BYTES, dirty);
}

/* The large or huge span that begins at `address`; NULL if none does. If it ends there, or gets
 * another length, it `leaves`. The lock must be held. */
static struct span *large_at(const struct page_heap *page_heap, uintptr_t address, bool leaves)
{
    if (!page_heap->compact) {
        struct span *found = large_table_find(&page_heap->large, (const char *)address);
        return found != NULL && block_is_live(found, leaves) ? found : NULL;
    }
    uintptr_t entry = page_map_entry(address);
    struct span *span = entry_is_span(entry) ? (struct span *)entry : NULL;
    bool begins = span != NULL && (uintptr_t)span->start == address;
    return begins && span->kind == SPAN_LARGE && span->segment->page_heap == page_heap ? span
                                                                                       : NULL;
}

struct misuse large_free(struct page_heap *page_heap, uintptr_t address)
{
    lock_acquire(&page_heap->lock);
    struct span *span = large_at(page_heap, address, true);
    if (span == NULL) {
        lock_release(&page_heap->lock);
        return large_misuse(page_heap, address);
    }
    struct misuse misuse = margin_misuse(page_heap, span);
    if (span->kind == SPAN_LARGE && !page_heap->compact) {
        if (!lock_is_alone())
            recent_note_home(page_heap);
        large_put_recent(page_heap, span);
    } else if (span->kind == SPAN_LARGE) {
        span_free_locked(page_heap, span, SPAN_DIRTY, span->requested);
    } else {
        huge_unlist(page_heap, span);
        segments_free_range(page_heap, span);
        page_heap_shrink_cache(page_heap);
        page_heap_keep_bound(page_heap);
    }
    lock_release(&page_heap->lock);
    return misuse;
}

struct misuse large_usable(struct page_heap *page_heap, uintptr_t address, size_t *bytes)
{
    struct misuse misuse = {.kind = MISUSE_NONE};
    lock_acquire(&page_heap->lock);
    struct span *span = large_at(page_heap, address, false);
    if (span != NULL) {
        *bytes = span->requested;
        misuse = margin_misuse(page_heap, span);
    }
    lock_release(&page_heap->lock);
    return span != NULL ? misuse : large_misuse(page_heap, address);
}

void *large_resize(struct page_heap *page_heap, uintptr_t address, size_t bytes)
{
    size_t pages = bytes_to_pages(bytes);
    if (align_up(bytes, os_page_size()) >> PAGE_SHIFT > UINT32_MAX)
        return NULL;
    lock_acquire(&page_heap->lock);
    struct span *span = large_at(page_heap, address, true);
    lock_release(&page_heap->lock);
    if (span->kind == SPAN_HUGE) {
        bool stays = bytes > GROWN_MOST || (bytes < span_bytes(span) && bytes >= LARGE_LEAST);
        return stays ? huge_resize(page_heap, span, bytes) : NULL;
    }
    size_t old_pages = span->pages;
    bool done = pages == old_pages;
    if (pages > old_pages)
        done = span_extend(page_heap, span, pages);
    else if (pages < old_pages)
        done = span_shrink(page_heap, span, pages);
    if (!done)
        return may_detach(page_heap, span, bytes) ? span_detach(page_heap, span, bytes) : NULL;
    bool fresh = pages > old_pages && span->dirty_bytes <= bytes;
    lock_acquire(&page_heap->lock);
    span_request(page_heap, span, bytes);
    margin_make(page_heap, span, fresh);
    lock_release(&page_heap->lock);
    return span->start;
}

void large_clear_locked(struct page_heap *page_heap)
{
    while (page_heap->huge != NULL) {
        struct span *span = page_heap->huge;
        huge_unlist(page_heap, span);
        segments_free_range(page_heap, span);
    }
}

/* The end of the block in a span, or of the free pages. */
static uintptr_t span_block_end(const struct span *span)
{
    bool is_block = span->kind == SPAN_LARGE || span->kind == SPAN_HUGE;
    return is_block ? (uintptr_t)span->start + span->requested : (uintptr_t)span_end(span);
}

/* The span that an address is in, or NULL. */
static struct span *around(const struct page_heap *page_heap, uintptr_t address)
{
    struct span *huge = huge_around(page_heap, address);
    return huge != NULL ? huge : span_around(page_heap, address);
}

COLD bool large_has(struct page_heap *page_heap, uintptr_t address)
{
    lock_acquire(&page_heap->lock);
    bool found = large_at(page_heap, address, false) != NULL;
    lock_release(&page_heap->lock);
    return found;
}

COLD bool large_covers(struct page_heap *page_heap, uintptr_t address)
{
    lock_acquire(&page_heap->lock);
    bool found = around(page_heap, address) != NULL;
    lock_release(&page_heap->lock);
    return found;
}

COLD bool large_extent(struct page_heap *page_heap, uintptr_t address, struct block_extent *extent)
{
    if (!extent_lock(&page_heap->lock))
        return false;
    const struct span *span = around(page_heap, address);
    struct nearby *nearby = span != NULL ? nearby_of(span) : NULL;
    bool known = span != NULL && (nearby == NULL || extent_lock(&nearby->lock));
    if (known)
        *extent = (struct block_extent){(uintptr_t)span->start, span_block_end(span),
                                        !span_is_used(span) ||
                                            (nearby != NULL && nearby_has(nearby, span))};
    if (known && nearby != NULL)
        lock_release(&nearby->lock);
    lock_release(&page_heap->lock);
    return known;
}

/* ---- Misuse ---- */

static void recent_inspect(const struct recent *recent, struct misuse *misuse)
{
    for (uint32_t i = 0; i < recent->count && misuse->kind == MISUSE_NONE; i++)
        if (!waiting_is_sound(recent->spans[i]))
            *misuse = waiting_misuse(recent->spans[i]);
}

COLD struct misuse large_inspect(struct page_heap *page_heap)
{
    struct misuse misuse = {.kind = MISUSE_NONE};
    lock_acquire(&page_heap->lock);
    recent_inspect(&page_heap->recent, &misuse);
    for (size_t i = 0; i < nearby_count(page_heap); i++) {
        struct nearby *nearby = &page_heap->nearby[i];
        lock_acquire(&nearby->lock);
        recent_inspect(&nearby->recent, &misuse);
        lock_release(&nearby->lock);
    }
    lock_release(&page_heap->lock);
    return misuse;
}

/* The block that was freed last of those that an address was in, as far as it is remembered. */
static const struct freed_block *freed_around(const struct freed_blocks *freed, uintptr_t address)
{
    for (unsigned i = 1; i <= BLOCKS_FREED; i++) {
        const struct freed_block *block = &freed->last[(freed->next - i) % BLOCKS_FREED];
        if (address - block->start < block->bytes)
            return block;
    }
    return NULL;
}

/* What is wrong with an address in free memory: in `run`, or if that is NULL no longer in the heap.
 */
static struct misuse freed_misuse(const struct page_heap *page_heap, const struct span *run,
                                  uintptr_t address)
{
    struct misuse misuse = {.kind = MISUSE_DOUBLE_FREE, .address = address};
    const struct freed_block *block = freed_around(&page_heap->freed, address);
    uintptr_t entry = page_map_entry(address);
    bool marked = entry != 0 && !entry_is_span(entry);
    if (run != NULL && (run->kind == SPAN_RECENT || run->kind == SPAN_LARGE)) /* it waits */
        misuse.bytes = run->requested;
    else if (block != NULL)
        misuse.bytes = block->bytes;
    else if (run != NULL && address - (uintptr_t)run->start < PAGE_BYTES)
        misuse.bytes = run->former_bytes;
    else if (marked)
        misuse.bytes = entry >> 1;
    else if (run == NULL)
        misuse.kind = MISUSE_UNKNOWN;
    return misuse;
}

COLD struct misuse large_misuse(struct page_heap *page_heap, uintptr_t address)
{
    struct misuse misuse = {.kind = MISUSE_INSIDE, .address = address};
    lock_acquire(&page_heap->lock);
    struct span *span = around(page_heap, address);
    if (span != NULL && block_is_live(span, false)) {
        misuse.bytes = span->requested;
        misuse.start = (uintptr_t)span->start;
    } else {
        misuse = freed_misuse(page_heap, span, address);
    }
    lock_release(&page_heap->lock);
    return misuse;
}
