/*
 * What is wrong with cells: with an address that is freed, or asked about; with a free cell that is
 * about to be handed out; and with those that the last look of a process meets (see
 * magazine/inspect.c).
 *
 * The header of a block says what is wrong with it, if it is sound. If it is not, its span is
 * walked from the beginning, under the lock: at most once before the report.
 */
#include "cell/cell_span.h"

/* ---- One block ---- */

/* Looks for the cell around an address by walking its span. The lock must be held. */
static struct misuse misuse_by_walk(const struct span *span, uintptr_t block)
{
    struct misuse misuse = {.kind = MISUSE_UNKNOWN, .address = block};
    struct cell *cell = first_cell(span);
    const struct cell *end = end_cell(span);
    while (cell != end) {
        uintptr_t start = (uintptr_t)cell + CELL_HEADER;
        bool is_free = cell_is_free(cell);
        if (cell->units < CELL_LEAST_UNITS || next_cell(cell) > end ||
            (is_free && !cell_is_sound(cell)))
            return cell_damaged(cell);
        if (block < start)
            return misuse; /* a header */
        if (block < (uintptr_t)next_cell(cell)) {
            if (block == start)
                return cell_damaged(cell); /* its header was looked at before, and was wrong */
            misuse.kind = is_free ? MISUSE_DOUBLE_FREE : MISUSE_INSIDE;
            misuse.bytes = is_free ? 0 : cell_bytes(start);
            misuse.start = start;
            return misuse;
        }
        cell = next_cell(cell);
    }
    return misuse;
}

struct misuse cell_misuse(uintptr_t block)
{
    struct misuse misuse = {.kind = MISUSE_NONE, .address = block};
    struct span *span = span_of(block);
    if (span == NULL || block < (uintptr_t)span->start + 2 * CELL_HEADER) {
        misuse.kind = MISUSE_UNKNOWN;
        return misuse;
    }
    struct cell *cell = cell_of(block);
    if (block % CELL_UNIT == 0 && cell_is_sound(cell)) {
        if (cell_state_is_live(cell->state))
            return misuse;
        size_t units = cell->state == CELL_FREE ? cell_former_units(cell) : cell->units;
        misuse.kind = MISUSE_DOUBLE_FREE;
        misuse.bytes = units == 0 ? 0 : units * CELL_UNIT - CELL_HEADER;
        return misuse;
    }
    struct cells *cells = cells_of(span);
    lock_acquire(&cells->lock);
    misuse = misuse_by_walk(span, block);
    lock_release(&cells->lock);
    return misuse;
}

bool cell_is_live_at_page(uintptr_t address)
{
    return page_map_is_cell(address - CELL_HEADER) && cell_is_live(cell_of(address));
}

/* ---- Free cells ---- */

COLD struct misuse cell_free_misuse(const struct cells *cells, struct cell *cell)
{
    struct misuse misuse = {.kind = MISUSE_NONE, .address = (uintptr_t)cell + CELL_HEADER};
    if (!cell_is_sound(cell) || cell->state != CELL_FREE) {
        misuse.kind = MISUSE_DAMAGED;
    } else if (!cell_free_is_sound(cells, cell)) {
        size_t units = cell_former_units(cell);
        misuse.kind = MISUSE_WRITTEN;
        misuse.bytes = units == 0 ? 0 : units * CELL_UNIT - CELL_HEADER;
        misuse.has_found = true;
        misuse.found = cell_link(cell)[0];
    }
    return misuse;
}

static size_t lists_inspect(const struct cells *cells, size_t most, struct misuse *misuse)
{
    size_t seen = 0;
    for (size_t list = bitmap_next(cells->bitmap, CELL_WORDS, 0); list < CELL_LISTS;
         list = bitmap_next(cells->bitmap, CELL_WORDS, list + 1))
        for (struct free_links *links = cells->free[list]; links != NULL; links = links->next) {
            *misuse = cell_free_misuse(cells, cell_of_links(links));
            if (misuse->kind != MISUSE_NONE || ++seen >= most)
                return seen;
        }
    return seen;
}

size_t cells_inspect(struct cells *cells, size_t most, struct misuse *misuse)
{
    size_t seen = 1;
    misuse->kind = MISUSE_NONE;
    lock_acquire(&cells->lock);
    if (cells->top != NULL)
        *misuse = cell_free_misuse(cells, cells->top);
    if (misuse->kind == MISUSE_NONE)
        seen += lists_inspect(cells, most, misuse);
    lock_release(&cells->lock);
    return seen;
}
