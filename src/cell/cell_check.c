/*
 * The invariants of cells, by walking all of them:
 *
 *   - the cells of a span tile it, and each header has its check value;
 *   - no two free cells lie side by side;
 *   - prev_free says whether the cell before is free, and a free cell's trailer has its size;
 *   - every free cell but the top is in the list of its size, and nothing else is in the lists;
 *   - a span's last header says that it is the end, unless the top, which has none, is before it;
 *   - aged_units and gone_pages count what is in the lists of large free cells;
 *   - the bitmap says which lists are not empty, the summary which words of it are not 0.
 */
#include "cell/cell_list.h"
#include "cell/cell_span.h"
#include "platform/check.h"

static const char *cell_check(const struct span *span, const struct cell *cell, bool before_free)
{
    /* relaxed, both: the owner of a cell that is not free may make it wait at this moment, or live
     * again, which its check value is the same for */
    uint8_t state = __atomic_load_n(&cell->state, __ATOMIC_RELAXED);
    uint32_t check = __atomic_load_n(&cell->check, __ATOMIC_RELAXED);
    bool known = state == CELL_FREE || state == CELL_CACHED ||
                 state == cell_state_for(cell->units, CELL_LIVE);
    if (!known || check != cell_check_value(cell, cell->units, state))
        return "a cell's header is damaged";
    if (cell->units < CELL_LEAST_UNITS || next_cell(cell) > end_cell(span))
        return "cells do not tile their span";
    if ((cell->prev_free != 0) != before_free)
        return "a cell is wrong about the one before it";
    if (state != CELL_FREE)
        return NULL;
    if (before_free)
        return "two free cells lie side by side";
    const struct cell *next = next_cell(cell);
    const struct cell *top = cells_of(span)->top;
    if (cell == top && next != end_cell(span))
        return "the top is not the last of its span";
    if (cell == top)
        return cell_top_is_sound(top) ? NULL : "the top was written to";
    if (*trailer_before(next) != cell->units)
        return "a free cell's trailer has another size";
    return NULL;
}

/* Units of cells: of those that are free, and of those in use that are short, or loose. */
struct found_units {
    size_t idle, brief, loose;
};

/* Adds up the units of a span's cells. */
static const char *cell_span_check(const struct span *span, struct found_units *found)
{
    bool before_free = false, before_top = false;
    const struct cell *end = end_cell(span);
    for (const struct cell *cell = first_cell(span); cell != end; cell = next_cell(cell)) {
        const char *wrong = cell_check(span, cell, before_free);
        if (wrong != NULL)
            return check_found((const char *)cell + CELL_HEADER, wrong);
        before_free = cell_is_free(cell);
        before_top = cell == cells_of(span)->top;
        if (before_free) {
            found->idle += cell->units;
            continue;
        }
        found->brief += cell_is_short(cell->units) ? cell->units : 0;
        found->loose += cell_loose_units(cell->units);
    }
    if (!before_top && (end->state != CELL_END || !cell_is_sound(end) || end->units != 0 ||
                        (end->prev_free != 0) != before_free))
        return check_found(end, "the end of a span is damaged");
    return NULL;
}

/* False: more pages than it has are said to be gone. */
static bool gone_is_possible(struct cell *cell)
{
    uintptr_t start;
    return cell_gone(cell) <= (cell->units < CELL_AGED_UNITS ? 0 : cell_whole_pages(cell, &start));
}

struct aged {
    size_t units, gone;
};

static const char *list_check(const struct cells *cells, size_t list, size_t *listed,
                              struct aged *aged)
{
    if (bitmap_get(cells->bitmap, list) != (cells->free[list] != NULL))
        return "the bitmap of free cells is wrong";
    for (struct free_links *links = cells->free[list]; links != NULL; links = links->next) {
        struct cell *cell = cell_of_links(links);
        if (!cell_is_sound(cell) || cell->state != CELL_FREE || cell_list_of(cell->units) != list)
            return check_found(
                links, "a list of free cells has a cell that is not free or of another size");
        if (!cell_links_sound(cells, cell))
            return check_found(links, "a free cell's links are damaged");
        *listed += cell->units;
        if (!gone_is_possible(cell))
            return "a free cell has more pages gone than it has";
        aged->units += cell->units >= CELL_AGED_UNITS ? cell->units : 0u;
        aged->gone += cell_gone(cell);
    }
    return NULL;
}

static const char *lists_check(const struct cells *cells, struct aged *aged)
{
    size_t listed = cells->top == NULL ? 0 : cells->top->units;
    if (cells->top != NULL && (cells->top->state != CELL_FREE || !cell_is_sound(cells->top)))
        return "the top is not free";
    for (size_t word = 0; word < CELL_WORDS; word++)
        if (bitmap_get(cells->summary, word) != (cells->bitmap[word] != 0))
            return "the summary of the bitmap of free cells is wrong";
    for (size_t list = 0; list < CELL_LISTS; list++) {
        const char *wrong = list_check(cells, list, &listed, aged);
        if (wrong != NULL)
            return wrong;
    }
    return listed == cells->free_units ? NULL : "the count of free cell units is wrong";
}

/* The spans of these cells, found by walking the heap's segments. Spans of other arenas' cells are
 * left alone: their lock is not held. */
static const char *cell_spans_check(struct cells *cells)
{
    const char *wrong = NULL;
    struct found_units found = {0, 0, 0};
    size_t count = 0;
    struct page_heap *page_heap = cells->page_heap;
    lock_acquire(&page_heap->lock);
    LIST_EACH(node, &page_heap->segments) {
        const struct segment *segment = CONTAINER_OF(node, struct segment, link);
        EACH_SPAN(span, segment)
            if (wrong == NULL && span->kind == SPAN_CELLS && cells_of(span) == cells) {
                wrong = cell_span_check(span, &found);
                count++;
            }
    }
    lock_release(&page_heap->lock);
    if (wrong == NULL && count != cells->span_count)
        wrong = "the count of cell spans is wrong";
    if (wrong == NULL && found.idle != cells->free_units)
        wrong = "a free cell is in no list";
    if (wrong == NULL && found.brief != cells->short_units)
        wrong = "the count of short cells is wrong";
    if (wrong == NULL && found.loose != cells->loose_units)
        wrong = "the count of what may stay untouched in cells is wrong";
    return wrong;
}

const char *cells_check(struct cells *cells)
{
    struct aged aged = {0, 0};
    lock_acquire(&cells->lock);
    const char *wrong = lists_check(cells, &aged);
    if (wrong == NULL)
        wrong = cell_spans_check(cells);
    if (wrong == NULL && (aged.units != cells->aged_units || aged.gone != cells->gone_pages))
        wrong = "the counts of large free cells are wrong";
    lock_release(&cells->lock);
    return wrong;
}
