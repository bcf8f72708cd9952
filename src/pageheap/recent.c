/*
 * The blocks that were freed last. See recent.h.
 */
#include "pageheap/recent.h"

#include "pageheap/run.h"
#include "pageheap/segments.h"
#include "pageheap/sparse.h"

NOINLINE void recent_close_gap(struct recent *recent, size_t index)
{
    for (; index < recent->count; index++) {
        recent->spans[index] = recent->spans[index + 1];
        GAUGE_SET(recent->requested[index], recent->requested[index + 1]);
        recent->homes[index] = recent->homes[index + 1];
    }
}

struct span *span_join(struct page_heap *page_heap, struct span *span, enum span_kind kind,
                       size_t object_bytes)
{
    struct segment *segment = span->segment;
    segment_count_out(page_heap, segment, span->pages);
    GAUGE_ADD(page_heap->used_pages, -(size_t)span->pages);
    page_heap_note_use(page_heap);
    span->kind = (uint8_t)kind;
    span->former_bytes = object_bytes;
    struct span *run = run_settle(page_heap, span);
    /* The only empty one stays in the list, or a program that goes up and down across its edge
     * would move it to the cache and back at each turn. */
    bool stays = page_heap->empty_segments == 1 && !page_heap->refused;
    if (segment->used_pages != 0 || stays)
        return run;
    segments_retire(page_heap, segment);
    return NULL;
}

struct span *recent_join_span(struct page_heap *page_heap, struct span *span)
{
    sparse_look(page_heap, span);
    large_table_remove(&page_heap->large, span);
    large_sizes_count(&page_heap->sizes, span->requested, (size_t)-1);
    size_t bytes = span->requested; /* joined, it is a link */
    page_heap_note_freed(page_heap, span->start, bytes);
    return span_join(page_heap, span, SPAN_DIRTY, bytes);
}

/* ---- Where a processor freed last ---- */

/* Blocks: so many after one that another processor freed threads work side by side; later a thread
 * was moved, or one works alone. */
enum { OWN_TURNS = 64 };

/* Bytes (machine): of large blocks in use, for each processor, which its caches hold. Where there
 * are more, what was freed last is seldom in them, and the best fit is worth more. */
#define OWN_MOST (4 * MIB)

/* The processor, as page_heap->home has it. */
static uint8_t home_here(void)
{
    return (uint8_t)(os_cpu() + 1);
}

void recent_note_home(struct page_heap *page_heap)
{
    uint8_t home = home_here();
    if (home != page_heap->home && page_heap->home != 0)
        page_heap->own_turns = OWN_TURNS;
    page_heap->home = home;
}

/* Of blocks that stay nearly empty nothing is in any cache. */
struct span *recent_take_own(struct page_heap *page_heap)
{
    struct recent *recent = &page_heap->recent;
    size_t large = page_heap->used_pages - page_heap->shared_pages;
    if (large > OWN_MOST >> PAGE_SHIFT << page_heap->nearby_log ||
        page_heap->sparse_seen >= SPARSE_SEEN)
        return NULL;
    page_heap->own_turns--;
    uint8_t home = home_here();
    for (size_t i = recent->count; i-- != 0;)
        if (recent->homes[i] == home)
            return recent_take_out(recent, i);
    return NULL;
}

bool recent_join(struct page_heap *page_heap)
{
    bool retired = false;
    while (page_heap->recent.count != 0)
        retired |= recent_join_span(page_heap, recent_take_out(&page_heap->recent, 0)) == NULL;
    return retired;
}
