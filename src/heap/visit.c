/*
 * Visiting the live blocks of a heap: segment by segment, span by span.
 */
#include "hardened/hardened.h"
#include "heap/user_heaps.h"
#include "profile/profile.h"

struct visitor {
    bool large_only;
    bool (*visit)(void *context, void *block, size_t bytes);
    void *context;
};

static bool visit_span(const struct page_heap *page_heap, const struct span *span,
                       struct visitor *visitor)
{
    switch (span->kind) {
    case SPAN_SLAB:
        return visitor->large_only || slab_visit((const struct slab *)span, !page_heap->untouched,
                                                 visitor->visit, visitor->context);
    case SPAN_CELLS:
        return visitor->large_only || cells_visit(span, visitor->visit, visitor->context);
    case SPAN_LARGE:
    case SPAN_HUGE:
        return visitor->visit(visitor->context, span->start, span->requested);
    default:
        return true;
    }
}

static bool visit_segment(const struct page_heap *page_heap, const struct segment *segment,
                          struct visitor *visitor)
{
    EACH_SPAN(span, segment)
        if (!visit_span(page_heap, span, visitor))
            return false;
    return true;
}

static bool visit_all(const struct page_heap *page_heap, struct visitor *visitor)
{
    LIST_EACH(node, &page_heap->segments)
        if (!visit_segment(page_heap, CONTAINER_OF(node, struct segment, link), visitor))
            return false;
    for (const struct span *span = page_heap->huge; span != NULL; span = span->right)
        if (!visit_span(page_heap, span, visitor))
            return false;
    return true;
}

/* Keeps heap_reclaim away from a heap, or lets it come again. */
static void set_visited(struct heap *heap, bool visited)
{
    if (heap->record == NULL)
        return;
    lock_acquire(&heaps_lock);
    heap->record->visitor = visited ? &thread_self : NULL;
    lock_release(&heaps_lock);
}

bool heap_visit(struct heap *heap, bool (*visit)(void *context, void *block, size_t bytes),
                void *context)
{
    struct visitor visitor = {false, visit, context};
    set_visited(heap, true);
    bool all = (heap->hardened == NULL || hard_visit(heap->hardened, visit, context)) &&
               visit_all(&heap->page_heap, &visitor);
    set_visited(heap, false);
    return all;
}

static bool forget(void *context, void *block, size_t bytes)
{
    struct profile_block sample;
    (void)context, (void)bytes;
    profile_take(block, &sample);
    return true;
}

void heap_forget_samples(struct heap *heap)
{
    struct visitor visitor = {true, forget, NULL};
    if (!profile_has_blocks())
        return;
    if (heap->hardened != NULL)
        hard_visit(heap->hardened, forget, NULL);
    visit_all(&heap->page_heap, &visitor);
}
