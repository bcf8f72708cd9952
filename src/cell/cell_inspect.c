/*
 * Whether free cells were written to: one that is about to be handed out, and those that the last
 * look of a process meets; see magazine/inspect.c.
 */
#include "cell/cell_list.h"

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
