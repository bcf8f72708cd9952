/*
 * Joining and cutting. See run.h.
 */
#include "pageheap/run.h"

static bool is_free_of_kind(const struct span *span, int kind)
{
    return span != NULL && span->kind == kind;
}

struct span *run_beside(const struct span *span, bool right)
{
    struct span *beside = right ? span->right : span->left;
    return beside != NULL && span_is_free(beside) ? beside : NULL;
}

void run_take_in(struct page_heap *page_heap, struct span *run)
{
    struct span *next = run->right;
    run->pages += next->pages;
    span_unlink(next);
    descriptor_free(page_heap, next);
}

struct span *run_settle(struct page_heap *page_heap, struct span *run)
{
    struct runs *runs = runs_of(page_heap, run);
    uint16_t freed = ++runs->frees;
    if (is_free_of_kind(run->right, run->kind)) {
        runs_remove(runs, run->right);
        run_take_in(page_heap, run);
    }
    if (is_free_of_kind(run->left, run->kind)) {
        run = run->left;
        runs_remove(runs, run);
        run_take_in(page_heap, run);
    }
    run->freed = freed;
    runs_add(runs, run);
    return run;
}

void run_begin_busy(struct page_heap *page_heap, struct span *run)
{
    run->kind = SPAN_BUSY;
    segment_count_in(page_heap, run->segment, run->pages);
    GAUGE_ADD(page_heap->busy_pages, run->pages);
}

void run_end_busy(struct page_heap *page_heap, struct span *run, enum span_kind kind)
{
    GAUGE_ADD(page_heap->busy_pages, -(size_t)run->pages);
    segment_count_out(page_heap, run->segment, run->pages);
    run->kind = (uint8_t)kind;
    run->former_bytes = 0;
    run_settle(page_heap, run);
}

bool run_cut(struct page_heap *page_heap, struct span *run, struct span *span, char *start,
             size_t pages)
{
    size_t front = (size_t)(start - run->start) >> PAGE_SHIFT;
    size_t back = run->pages - front - pages;
    struct span *rest = run;
    if (front != 0 && back != 0) {
        rest = descriptor_alloc(page_heap);
        if (rest == NULL)
            return false;
    }
    struct runs *runs = runs_of(page_heap, run);
    runs_remove(runs, run);
    span->segment = run->segment;
    span->start = start;
    span->pages = (uint32_t)pages;
    span->kind = run->kind;
    if (front != 0) {
        span_link_right(run, span);
        run->pages = (uint32_t)front;
        runs_add(runs, run);
    } else {
        span_link_left(run, span);
    }
    if (back != 0) {
        if (rest != run) {
            rest->segment = run->segment;
            rest->kind = run->kind;
            rest->freed = run->freed;
            span_link_right(span, rest);
        }
        rest->start = start + (pages << PAGE_SHIFT);
        rest->pages = (uint32_t)back;
        rest->former_bytes = 0;
        runs_add(runs, rest);
    }
    if (front == 0 && back == 0) {
        span_unlink(run);
        descriptor_free(page_heap, run);
    }
    return true;
}

struct span *run_part(struct page_heap *page_heap, struct span *run, char *start, size_t pages)
{
    if (pages == run->pages) {
        runs_remove(runs_of(page_heap, run), run);
        return run;
    }
    struct span *part = descriptor_alloc(page_heap);
    if (part == NULL)
        return NULL;
    part->former_bytes = 0;
    if (run_cut(page_heap, run, part, start, pages))
        return part;
    descriptor_free(page_heap, part);
    return NULL;
}

void run_shorten(struct page_heap *page_heap, struct span *run, size_t pages, bool at_start)
{
    struct runs *runs = runs_of(page_heap, run);
    runs_remove(runs, run);
    run->pages -= (uint32_t)pages;
    if (at_start) {
        run->start += pages << PAGE_SHIFT;
        run->former_bytes = 0;
    }
    if (run->pages != 0) {
        runs_add(runs, run);
        return;
    }
    span_unlink(run);
    descriptor_free(page_heap, run);
}

/* A chain of short ones may be as long as a segment. */
bool run_can_widen(const struct span *run, size_t pages)
{
    size_t found = run->pages;
    const struct span *next = run_beside(run, true);
    for (int i = 0; i < RUNS_LOOKED_AT && next != NULL && found < pages; i++) {
        found += next->pages;
        next = run_beside(next, true);
    }
    next = run_beside(run, false);
    for (int i = 0; i < RUNS_LOOKED_AT && next != NULL && found < pages; i++) {
        found += next->pages;
        next = run_beside(next, false);
    }
    return run->pages < pages && found >= pages;
}

struct found run_widen(struct page_heap *page_heap, struct span *run, size_t pages,
                       size_t alignment)
{
    size_t fresh = 0, bytes = pages << PAGE_SHIFT;
    const char *dirty_end = span_end(run);
    runs_remove(&page_heap->dirty, run);
    while (!run_fits(run, pages, alignment)) {
        char *first = (char *)align_up((uintptr_t)run->start, alignment);
        char *last = (char *)align_down((uintptr_t)span_end(run) - bytes, alignment);
        struct span *next = run_beside(run, true);
        bool right = next != NULL;
        if (!right)
            next = run_beside(run, false);
        size_t lacking = (size_t)(right ? first + bytes - span_end(run) : run->start - last);
        size_t more = size_min(next->pages, lacking >> PAGE_SHIFT);
        char *start = right ? next->start : run->start - (more << PAGE_SHIFT);
        if (next->kind == SPAN_CLEAN)
            fresh += more;
        else if (right)
            dirty_end = start + (more << PAGE_SHIFT);
        run_shorten(page_heap, next, more, right);
        run->start = right ? run->start : start;
        run->pages += (uint32_t)more;
    }
    runs_add(&page_heap->dirty, run);
    return (struct found){run, size_min(fresh, pages), dirty_end};
}
