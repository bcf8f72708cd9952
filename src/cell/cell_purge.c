/*
 * Giving back the middle pages of cells that stay free.
 *
 * A free cell that is not reused for IDLE_LOOKS looks (one comes with each tick of the heap, and
 * when as much was freed as the heap's base) is not part of the program's working set. Its first
 * and last bytes stay, as they hold its header, links and trailer; the whole pages between them go,
 * unless there is reason to keep so much.
 *
 * How much that is, is learned as for free spans (retention/retention.h): pages that went and were
 * soon wanted again should have been kept, and what stays free through a whole epoch should have
 * gone. So of a program that frees some 30 MiB at each turn the first turn's pages go, and no
 * others.
 *
 * A slab cannot have the pages of a free cell, so while slabs take fresh ones a heap would have
 * both. So then as many pages go that were idle meanwhile, though all could stay, but for what was
 * missed.
 *
 * Cost: a walk over the lists of large cells at every look at which more is kept than should be;
 * one system call for up to OS_RANGES_MOST cells purged where the kernel can, the largest first,
 * until only what was learned is kept.
 */
#include "cell/cell_list.h"
#include "cell/cell_span.h"
#include "options/options.h"
#include "platform/memory.h"

/* ---- One cell ---- */

void cell_set_gone(struct cells *cells, struct cell *cell, size_t pages)
{
    uintptr_t start;
    size_t gone = size_min(pages, cell_whole_pages(cell, &start));
    if (cell != cells->top)
        GAUGE_ADD(cells->gone_pages, gone - cell_past(cell)->gone);
    cell_past(cell)->gone = (uint8_t)gone;
}

/* Which cells are purged. */
enum purge_scope {
    IDLE_APART, /* those that stayed free, but not where there are huge pages */
    IDLE,       /* those that stayed free */
    ALL
};

/* Cells whose whole pages go next, together. */
struct purge_batch {
    struct cells *cells;
    size_t count;
    size_t pages; /* in them that are still there */
    size_t purged;
    struct cell *purging[OS_RANGES_MOST];
    struct iovec ranges[OS_RANGES_MOST];
};

static void batch_purge(struct purge_batch *batch)
{
    if (batch->count == 0)
        return;
    uint64_t done =
        provider_purge_ranges(batch->cells->page_heap->provider, batch->ranges, batch->count);
    for (size_t i = 0; i < batch->count; i++)
        if (done >> i & 1) {
            size_t pages = batch->ranges[i].iov_len >> PAGE_SHIFT;
            batch->purged += pages - cell_gone(batch->purging[i]);
            cell_set_gone(batch->cells, batch->purging[i], pages);
        }
    batch->count = 0;
    batch->pages = 0;
}

/* Adds a free cell if it is to go. False: the program wrote to it, so nobody knows how long it is,
 * nor where its links lead. Who would hand it out tells. */
static bool batch_add(struct purge_batch *batch, struct cell *cell, enum purge_scope how)
{
    struct cells *cells = batch->cells;
    if (UNLIKELY(cell_free_misuse(cells, cell).kind != MISUSE_NONE))
        return false;
    uintptr_t start;
    size_t pages = cell_whole_pages(cell, &start), gone = cell_gone(cell);
    if (pages <= gone || !(how == ALL || cell_is_idle(cells, cell)))
        return true;
    const struct span *span = span_of((uintptr_t)cell);
    if (span_has_huge_pages(span)) {
        if (how == IDLE_APART)
            return true;
        span_split_huge(cells->page_heap, span);
    }
    batch->purging[batch->count] = cell;
    batch->ranges[batch->count++] = (struct iovec){(void *)start, pages << PAGE_SHIFT};
    batch->pages += pages - gone;
    if (batch->count == OS_RANGES_MOST)
        batch_purge(batch);
    return true;
}

/* Purges, the largest cells first, until `keep` pages are kept, and looks at `most` of them.
 * Returns the pages that went. The lock must be held. */
static size_t purge_idle(struct cells *cells, enum purge_scope how, size_t keep, size_t most)
{
    struct purge_batch batch;
    batch.cells = cells;
    batch.count = batch.pages = batch.purged = 0;
    if (cells->top != NULL && cells->top->units >= CELL_AGED_UNITS)
        batch_add(&batch, cells->top, how);
    batch_purge(&batch); /* its pages do not count as kept */
    size_t list = bitmap_previous(cells->bitmap, CELL_LISTS - 1);
    struct free_links *links = NULL;
    for (; most != 0 && cells_kept_pages(cells) > keep + batch.pages; most--) {
        if (links == NULL) {
            if (list == SIZE_MAX || list < CELL_AGED_UNITS)
                break;
            links = cells->free[list];
            list = bitmap_previous(cells->bitmap, list - 1);
        }
        links = batch_add(&batch, cell_of_links(links), how) ? links->next : NULL;
    }
    batch_purge(&batch);
    return batch.purged;
}

/* Gives the span of the top back to the page heap if no cell is in use in it, and none was for some
 * looks if it must be `idle`. The lock must be held. */
static void release_top(struct cells *cells, bool idle)
{
    struct cell *top = cells->top;
    if (top == NULL || top->units != CELL_UNITS - 1 || (idle && !cell_is_idle(cells, top)))
        return;
    cells->top = NULL;
    span_release(cells, span_of((uintptr_t)top));
    cells_tell(cells);
}

COLD size_t cells_purge(struct cells *cells, bool all)
{
    lock_acquire(&cells->lock);
    release_top(cells, !all);
    size_t purged = purge_idle(cells, all ? ALL : IDLE, 0, SIZE_MAX);
    lock_release(&cells->lock);
    return purged << PAGE_SHIFT;
}

/* ---- How much is kept ---- */

static size_t units_to_pages(size_t units)
{
    return units * CELL_UNIT >> PAGE_SHIFT;
}

void cells_note_missed(struct cells *cells, struct cell *rest, size_t gone)
{
    /* relaxed: as in cell_is_free */
    bool is_free = __atomic_load_n(&rest->state, __ATOMIC_RELAXED) == CELL_FREE;
    size_t left = 0;
    if (is_free && rest->units >= CELL_AGED_UNITS) {
        cell_set_gone(cells, rest, gone);
        left = cell_past(rest)->gone;
    }
    retention_missed(&cells->retention, gone - left, cells->page_heap->now());
}

/* The pages that may be kept without having been missed. */
static size_t base_pages(const struct cells *cells)
{
    return page_heap_base_of_cells(cells->page_heap, cells->kept_told);
}

static size_t used_pages(const struct cells *cells)
{
    return cells_used_bytes(cells) >> PAGE_SHIFT;
}

void cells_tell(struct cells *cells)
{
    size_t kept = cells_kept_pages(cells), idle = units_to_pages(cells->free_units);
    size_t loose = units_to_pages(cells->loose_units);
    page_heap_note_cells(cells->page_heap, kept - cells->kept_told, idle - cells->idle_told,
                         loose - cells->loose_told);
    cells->kept_told = kept;
    cells->idle_told = idle;
    cells->loose_told = loose;
}

/* Asks for a tick at the time when the pages that are kept now will be too old. */
static void ask_tick(struct cells *cells, size_t base)
{
    size_t kept = cells_kept_pages(cells);
    if (kept > base && options.purge_delay != DELAY_NEVER)
        page_heap_ask_tick(cells->page_heap, retention_due(&cells->retention, kept, base));
}

/* A cell is looked at for each page that was fresh: where cells are far from the processor a look
 * takes a tenth of what it takes to have the page. */
void cells_look(struct cells *cells, size_t fresh)
{
    struct retention *retention = &cells->retention;
    cells_tell(cells);
    size_t kept = cells_kept_pages(cells), base = base_pages(cells), most = fresh;
    size_t keep = size_max(kept - size_min(kept, fresh), retention->wanted);
    enum purge_scope how = IDLE_APART;
    retention->tight = false; /* what goes for fresh ones goes because it is idle */
    if (fresh == 0) {
        size_t bound = retention_bound(retention, base, used_pages(cells));
        keep = kept > bound ? bound - size_min(bound, base) : kept;
        most = SIZE_MAX;
        /* A part of a huge page that is free now may soon be in use, or free as a whole with its
         * span. Parts go when they are many. */
        if (kept > KEPT_WITH_PARTS_MOST * bound)
            how = IDLE;
    }
    cells->looks++;
    cells->look_step = page_heap_base(cells->page_heap);
    size_t purged = kept > keep ? purge_idle(cells, how, keep, most) : 0;
    if (purged != 0)
        retention_released(retention, purged, cells->page_heap->now());
    cells->kept_least = cells_kept_pages(cells);
    cells_tell(cells);
    ask_tick(cells, base);
}

void cells_end_epoch(struct cells *cells, size_t fresh)
{
    lock_acquire(&cells->lock);
    cells_look(cells, fresh);
    lock_release(&cells->lock);
}

void cells_tick(struct cells *cells)
{
    lock_acquire(&cells->lock);
    size_t idle;
    retention_tick(&cells->retention, cells_kept_pages(cells), base_pages(cells), used_pages(cells),
                   cells->page_heap->now(), &idle);
    cells_look(cells, 0);
    release_top(cells, true);
    lock_release(&cells->lock);
}
