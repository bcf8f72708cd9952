/*
 * Giving back the middle pages of cells that stay free.
 *
 * A free cell that is not reused for two ticks (a tick is some thousand frees, see cell.c) is not
 * part of the program's working set. Its first and last bytes stay, they hold its header, links and
 * trailer; the whole pages between them go.
 *
 * Cost: a walk over the lists of large cells at every tick; one system call for each cell purged.
 */
#include "cell/cell_list.h"
#include "platform/memory.h"

static size_t cell_purge(struct cells *cells, struct cell *cell)
{
    uintptr_t start = (uintptr_t)(cell_past(cell) + 1);
    uintptr_t end = (uintptr_t)cell + cell->units * CELL_UNIT - sizeof(uint64_t); /* the trailer */
    start = align_up(start, os_page_size());
    end = align_down(end, os_page_size());
    if (start >= end)
        return 0;
    const struct provider *provider = cells->spans->provider;
    if (!provider->purge(provider, (void *)start, end - start))
        return 0;
    cell_past(cell)->purged = true;
    return end - start;
}

static size_t purge_if_idle(struct cells *cells, struct cell *cell, bool all)
{
    const struct cell_past *past = cell_past(cell);
    if (past->purged || !(all || cells->ticks - past->since >= 2))
        return 0;
    return cell_purge(cells, cell);
}

size_t cells_purge_locked(struct cells *cells, bool all)
{
    size_t purged = 0;
    if (cells->top != NULL && cells->top->units >= CELL_AGED_UNITS)
        purged = purge_if_idle(cells, cells->top, all);
    for (size_t list = bitmap_next(cells->bitmap, CELL_WORDS, CELL_AGED_UNITS); list < CELL_LISTS;
         list = bitmap_next(cells->bitmap, CELL_WORDS, list + 1))
        for (struct free_links *links = cells->free[list]; links != NULL; links = links->next)
            purged += purge_if_idle(cells, cell_of_links(links), all);
    return purged;
}

size_t cells_purge(struct cells *cells, bool all)
{
    lock_take(&cells->lock);
    size_t purged = cells_purge_locked(cells, all);
    lock_release(&cells->lock);
    return purged;
}
