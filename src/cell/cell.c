/*
 * Cells: taking, freeing, joining, resizing. See cell.h.
 *
 * A span of cells from its start: 8 bytes unused, so that blocks are multiples of 16; then cells;
 * in its last 8 bytes a header in state CELL_END, so that every cell has a header behind it and
 * none has to be told from the others. As long as the top is before it, neither that header nor the
 * top's trailer is written: the end of a new span is not touched before it is needed.
 */
#include "cell/cell.h"

#include <string.h>

#include "base/bytes.h"
#include "cell/cell_list.h"
#include "cell/cell_span.h"
#include "meta/meta.h"
#include "meta/page_map.h"
#include "options/options.h"
#include "platform/check.h"
#include "stats/stats.h"

COLD bool cells_init(struct cells *cells, struct page_heap *page_heap)
{
    /* The table is 65 KiB of address space. Only its pages for sizes that are freed are touched. */
    if (cells->free == NULL)
        cells->free = meta_map(CELL_LISTS * sizeof(*cells->free));
    if (cells->free == NULL)
        return false;
    lock_init(&cells->lock, RANK_CELLS);
    /* No request for fewer bytes is a cell: a smaller remainder would serve none. */
    cells->split_least = (uint32_t)(BYTES_SHORT / CELL_UNIT);
    retention_init(&cells->retention, RETENTION_PAGE_PRICE);
    cells->look_step = page_heap_base(page_heap);
    /* release: who sees the cells in use sees them whole */
    __atomic_store_n(&cells->page_heap, page_heap, __ATOMIC_RELEASE);
    return true;
}

COLD void cells_clear(struct cells *cells)
{
    for (size_t list = bitmap_next(cells->bitmap, CELL_WORDS, 0); list < CELL_LISTS;
         list = bitmap_next(cells->bitmap, CELL_WORDS, list + 1))
        cells->free[list] = NULL;
    memset(cells->bitmap, 0, sizeof(cells->bitmap));
    memset(cells->summary, 0, sizeof(cells->summary));
    cells->top = NULL;
    GAUGE_SET(cells->span_count, 0);
    GAUGE_SET(cells->free_units, 0);
    GAUGE_SET(cells->short_units, 0);
    cells->loose_units = 0;
    GAUGE_SET(cells->given, cells->taken);
    cells->aged_units = 0;
    cells->gone_pages = 0;
    cells->kept_told = 0;
    cells->idle_told = 0;
    cells->loose_told = 0;
}

/* Whether a cell that is not free, or the end of a span, has a sound header. The lock must be held;
 * the cell may be any thread's: its units change under the lock only, and its check value is the
 * same while it is live and while it waits. */
static inline bool cell_used_is_sound(const struct cell *cell)
{
    /* relaxed, both: see cell_mark */
    uint8_t state = __atomic_load_n(&cell->state, __ATOMIC_RELAXED);
    uint32_t check = __atomic_load_n(&cell->check, __ATOMIC_RELAXED);
    return check == cell_check_value(cell, cell->units, state);
}

/* ---- Free cells ---- */

/* Makes the range from `cell` on free, with no free cell before it; not listed yet. `former` is the
 * units of the block that was at its beginning, 0 if there was none. */
static inline void cell_clear(const struct cells *cells, struct cell *cell, size_t units,
                              size_t former)
{
    cell_set(cell, units, CELL_FREE);
    cell->prev_free = 0;
    if (units > CELL_LEAST_UNITS)
        cell_past(cell)->units = (uint16_t)former;
    if (units >= CELL_AGED_UNITS) {
        cell_past(cell)->gone = 0;
        cell_past(cell)->since = cells->looks;
    }
}

/* Makes the range from `cell` on a free cell, which has no free neighbours, and lists it. */
static inline void cell_make_free(struct cells *cells, struct cell *cell, size_t units,
                                  size_t former)
{
    cell_clear(cells, cell, units, former);
    struct cell *next = cell_behind(cell, units);
    *trailer_before(next) = units;
    next->prev_free = 1;
    cell_list_add(cells, cell, units);
    if (units >= CELL_AGED_UNITS)
        cells->aged_units += units;
}

/* Makes the rest of a span from `cell` on, which has no free neighbour, the top. */
static void cell_make_top(struct cells *cells, struct cell *cell, size_t units, size_t former)
{
    CHECK(cells->top == NULL);
    cell_clear(cells, cell, units, former);
    uint64_t mark = cell_top_mark(cell);
    cell_link(cell)[0] = mark;
    cell_link(cell)[1] = ~mark;
    cells->top = cell;
    char *written = (char *)(cell_past(cell) + 1);
    if (cells->fresh < written) {
        if (cells->fresh_is_zero)
            page_heap_note_fresh(cells->page_heap, (uint32_t)(written - cells->fresh) / CELL_UNIT);
        cells->fresh = written;
    }
}

/* Counts the pages of a cell that is unlisted which are gone, and returns them. */
static inline size_t cell_count_out(struct cells *cells, struct cell *cell)
{
    size_t gone = cell_gone(cell);
    if (cell->units >= CELL_AGED_UNITS) {
        cells->aged_units -= cell->units;
        GAUGE_ADD(cells->gone_pages, -gone);
    }
    return gone;
}

/* Takes a free cell out of its list, or from being the top. Returns its pages that are gone. */
static inline size_t cell_unlist(struct cells *cells, struct cell *cell)
{
    if (UNLIKELY(cell == cells->top)) {
        cells->top = NULL;
        return cell_gone(cell);
    }
    size_t gone = cell_count_out(cells, cell);
    cell_list_remove(cells, cell);
    return gone;
}

/* The free cell before `cell`, or NULL if it is damaged. */
static inline struct cell *free_before(const struct cells *cells, const struct span *span,
                                       const struct cell *cell)
{
    uint64_t units = *trailer_before(cell);
    if (units > (size_t)((const char *)cell - (const char *)first_cell(span)) / CELL_UNIT)
        return NULL;
    struct cell *before = (struct cell *)((char *)cell - units * CELL_UNIT);
    return units != 0 && before->units == units && cell_free_is_sound(cells, before) ? before
                                                                                     : NULL;
}

/* ---- Spans ---- */

/* Whether a new span will be touched throughout, but for the usual share, however little the
 * program writes: most of what is in use lies in the page of a header, or in the next. */
static bool cells_are_packed(const struct cells *cells)
{
    size_t used = cells->span_count * CELL_UNITS - cells->free_units;
    return used != 0 && cells->loose_units <= used / SLACK_SHARE;
}

static inline bool span_new(struct cells *cells)
{
    cells_tell(cells);
    bool (*take)(struct page_heap *, struct span *, enum span_kind, size_t, size_t) =
        cells_are_packed(cells) ? span_alloc_packed : span_alloc;
    struct span *span = meta_alloc_from(cells->page_heap->meta, sizeof(*span));
    if (span == NULL)
        return false;
    span->units = 1;
    if (!take(cells->page_heap, span, SPAN_CELLS, CELL_SPAN_BYTES >> PAGE_SHIFT, PAGE_BYTES)) {
        meta_free_to(cells->page_heap->meta, span, sizeof(*span));
        return false;
    }
    /* release: see cells_of */
    __atomic_store_n(&span->owner, cells, __ATOMIC_RELEASE);
    page_map_fill_classes(span->start, span->pages,
                          cells->page_heap->other ? PAGE_MAP_OTHER_CELL : PAGE_MAP_CELL);
    cells_count_span(cells, 1);
    /* The rest of the old top is too small for this request. It waits in its list. */
    struct cell *old = cells->top;
    if (old != NULL) {
        cells->top = NULL;
        cell_set(next_cell(old), 0, CELL_END);
        size_t gone = cell_gone(old);
        cell_make_free(cells, old, old->units, cell_former_units(old));
        if (UNLIKELY(gone != 0))
            cell_set_gone(cells, old, gone);
    }
    cells->fresh = span->start;
    cells->fresh_is_zero = span->zero;
    cell_make_top(cells, first_cell(span), CELL_UNITS - 1, 0);
    cells_count_span_units(cells, CELL_UNITS - 1, 0);
    cells_tell(cells);
    COUNT(cell_spans_made, 1);
    return true;
}

/* ---- Taking ---- */

/* Makes a live cell of `units`, `front` units into a free cell that is in no list any more. The
 * parts before and behind it become free cells; the part behind is the top again if the cell was
 * that. */
static inline struct cell *cell_cut(struct cells *cells, struct cell *cell, size_t front,
                                    size_t units, bool was_top)
{
    size_t back = cell->units - front - units;
    if (UNLIKELY(front != 0)) {
        struct cell *before = cell;
        cell = (struct cell *)((char *)cell + front * CELL_UNIT);
        cell_make_free(cells, before, front, 0);
    } else {
        cell->prev_free = 0;
    }
    /* A small request, of a size that is still rare, must not take a large cell whole. */
    if (back < size_min(cells->split_least, size_max(units, CELL_LEAST_UNITS))) {
        units += back;
        back = 0;
    }
    cell_set(cell, units, CELL_LIVE);
    struct cell *next = cell_behind(cell, units);
    if (was_top) {
        if (back != 0)
            cell_make_top(cells, next, back, 0);
        else
            cell_set(next, 0, CELL_END);
    } else if (back != 0) {
        cell_make_free(cells, next, back, 0);
        return cell;
    }
    next->prev_free = 0;
    return cell;
}

/* How many units into a free cell a block with this alignment begins: none, or as many as make a
 * cell. */
static size_t aligned_front(const struct cell *cell, size_t alignment)
{
    uintptr_t block = (uintptr_t)cell + CELL_HEADER;
    if ((block & (alignment - 1)) == 0)
        return 0;
    uintptr_t least = block + CELL_LEAST_UNITS * CELL_UNIT;
    return (align_up(least, alignment) - block) / CELL_UNIT;
}

/* How many bytes of a block in the top, of `units` and `front` units into it, may not be zero, as
 * cells_alloc says it. */
static size_t top_dirty_bytes(const struct cells *cells, size_t front, size_t units)
{
    const char *block = (const char *)cells->top + front * CELL_UNIT + CELL_HEADER;
    size_t below = cells->fresh > block ? (size_t)(cells->fresh - block) : 0;
    return cells->fresh_is_zero || below >= units * CELL_UNIT ? below : SIZE_MAX;
}

/* Whether the top has so many units, which blocks have had before if only USED ones are asked for.
 */
static bool top_serves(const struct cells *cells, size_t units, enum cells_reach reach)
{
    if (cells->top == NULL || cells->top->units < units)
        return false;
    return reach != CELLS_USED || (char *)cells->top + units * CELL_UNIT <= cells->fresh;
}

/* Takes the first cell of a list out of it, and cuts a block from it; NULL: it was written to. */
static inline struct cell *cut_listed(struct cells *cells, size_t list, size_t units,
                                      size_t alignment)
{
    struct cell *cell = cell_of_links(cells->free[list]);
    if (UNLIKELY(!cell_first_is_sound(cell, list)))
        return NULL;
    size_t gone = cell_count_out(cells, cell);
    cell_list_remove_first(cells, list, cell);
    cell = cell_cut(cells, cell, aligned_front(cell, alignment), units, false);
    if (UNLIKELY(gone != 0))
        cells_note_missed(cells, next_cell(cell), gone);
    return cell;
}

/* The same of the top. */
static struct cell *cut_top(struct cells *cells, size_t units, size_t alignment, size_t *dirty)
{
    struct cell *cell = cells->top;
    if (UNLIKELY(!cell_free_is_sound(cells, cell)))
        return NULL;
    size_t front = aligned_front(cell, alignment), gone = cell_gone(cell);
    *dirty = top_dirty_bytes(cells, front, units);
    cells->top = NULL;
    cell = cell_cut(cells, cell, front, units, true);
    if (UNLIKELY(gone != 0))
        cells_note_missed(cells, next_cell(cell), gone);
    return cell;
}

/* The units to look for, so that a block of so many begins at a multiple of the alignment. */
static inline size_t units_wanted(size_t units, size_t alignment)
{
    return alignment <= CELL_UNIT ? units : units + alignment / CELL_UNIT + CELL_LEAST_UNITS;
}

static inline size_t units_of_block(size_t bytes)
{
    return size_max(cell_units(bytes), CELL_LEAST_UNITS);
}

NOINLINE void *cells_alloc_near(struct cells *cells, size_t bytes, size_t alignment,
                                enum cells_reach reach, size_t *dirty)
{
    size_t units = units_of_block(bytes), wanted = units_wanted(units, alignment);
    struct cell *cell = NULL;
    void *block = NULL;
    *dirty = SIZE_MAX;
    lock_acquire(&cells->lock);
    size_t list = cell_list_best(cells, wanted);
    if (LIKELY(list < CELL_LISTS))
        cell = cut_listed(cells, list, units, alignment);
    else if (top_serves(cells, wanted, reach))
        cell = cut_top(cells, units, alignment, dirty);
    if (LIKELY(cell != NULL)) {
        cells_count_free(cells, 0, cell->units);
        GAUGE_ADD(cells->taken, 1);
        GAUGE_ADD(cells->taken_units, units);
        block = cell_link(cell);
    }
    lock_release(&cells->lock);
    return block;
}

/* Why nothing could be cut: a free cell was written to, or there is none. True: there is by now,
 * because another thread freed one, or in a new span. The lock must be held. */
static COLD bool alloc_prepare(struct cells *cells, size_t units, enum cells_reach reach,
                               struct misuse *misuse)
{
    size_t list = cell_list_best(cells, units);
    if (list >= CELL_LISTS && !top_serves(cells, units, reach))
        return reach == CELLS_NEW && span_new(cells);
    struct cell *cell = list < CELL_LISTS ? cell_of_links(cells->free[list]) : cells->top;
    struct misuse found = cell_free_misuse(cells, cell);
    if (found.kind == MISUSE_NONE && list < CELL_LISTS && !cell_first_is_sound(cell, list))
        found = cell_damaged(cell); /* it is not the first, as its link says */
    if (found.kind != MISUSE_NONE)
        *misuse = found;
    return found.kind == MISUSE_NONE;
}

void *cells_alloc(struct cells *cells, size_t bytes, size_t alignment, enum cells_reach reach,
                  struct misuse *misuse, size_t *dirty)
{
    size_t wanted = units_wanted(units_of_block(bytes), alignment);
    for (;;) {
        void *block = cells_alloc_near(cells, bytes, alignment, reach, dirty);
        if (LIKELY(block != NULL))
            return block;
        lock_acquire(&cells->lock);
        bool again = alloc_prepare(cells, wanted, reach, misuse);
        lock_release(&cells->lock);
        if (!again)
            return NULL;
    }
}

/* ---- Giving back ---- */

/* Frees a cell, joining it with its neighbours. NULL; or nothing was done, since this cell was
 * written to, itself or a neighbour. The lock must be held. */
static inline struct cell *free_locked(struct cells *cells, struct span *span, struct cell *cell)
{
    struct cell *whole = cell;
    size_t given = cell->units, units = given, former = given;
    struct cell *next = next_cell(cell);
    struct cell *before = NULL;
    if (cell->prev_free) {
        before = free_before(cells, span, cell);
        if (UNLIKELY(before == NULL))
            return cell;
    }
    bool joins_top = false;
    size_t gone = 0;
    if (cell_is_free(next)) {
        if (UNLIKELY(!cell_free_is_sound(cells, next)))
            return next;
        joins_top = next == cells->top;
        units += next->units;
        gone = cell_unlist(cells, next);
    } else if (UNLIKELY(!cell_used_is_sound(next))) {
        return next;
    }
    if (before != NULL) {
        /* The header stays behind, inside of the free cell: a second free finds it free. */
        cell_clear(cells, cell, units, given);
        gone += cell_unlist(cells, before);
        units += before->units;
        former = cell_former_units(before);
        whole = before;
    }
    GAUGE_ADD(cells->given, 1);
    cells_count_free(cells, given, 0);
    bool last = joins_top && cells->span_count == 1; /* it stays: the next block needs a span */
    bool goes = UNLIKELY(units == CELL_UNITS - 1) && !last;
    if (goes)
        span_release(cells, span);
    else if (joins_top)
        cell_make_top(cells, whole, units, former);
    else
        cell_make_free(cells, whole, units, former);
    if (UNLIKELY(gone != 0)) {
        if (!goes)
            cell_set_gone(cells, whole, gone);
        else /* the span takes them along: they are missed as if they had been taken */
            retention_missed(&cells->retention, gone, cells->page_heap->now());
    }
    return NULL;
}

/* Call under the lock before something is freed: at that moment least is kept, and most is in
 * use. */
static inline void note_extremes(struct cells *cells)
{
    size_t used = cells->span_count * CELL_UNITS - cells->free_units;
    size_t kept = cells_kept_pages(cells);
    cells->kept_least = size_min(cells->kept_least, kept);
    retention_see(&cells->retention, kept, used * CELL_UNIT >> PAGE_SHIFT);
}

/* Call under the lock when all that was to be freed here is. Releases it. */
static void end_of_frees(struct cells *cells)
{
    if (UNLIKELY(cells_kept_pages(cells) > cells->kept_least + cells->look_step))
        cells_look(cells, 0);
    lock_release(&cells->lock);
}

void cells_free(const uintptr_t *blocks, size_t count)
{
    struct cells *locked = NULL;
    for (size_t i = 0; i < count; i++) {
        struct span *span = span_of(blocks[i]);
        struct cells *cells = cells_of(span);
        if (locked == NULL || cells != locked) {
            if (locked != NULL)
                end_of_frees(locked);
            lock_acquire(&cells->lock);
            note_extremes(cells);
            locked = cells;
        }
        struct cell *cell = cell_of(blocks[i]);
        bool waited = cell->state == CELL_CACHED && cell_is_sound(cell);
        struct cell *wrong = LIKELY(waited) ? free_locked(cells, span, cell) : cell;
        if (UNLIKELY(wrong != NULL)) {
            bool is_free = waited && cell_is_free(wrong);
            struct misuse misuse = is_free ? cell_free_misuse(cells, wrong) : cell_damaged(wrong);
            end_of_frees(locked);
            locked = NULL;
            misuse_report("free", &misuse);
        }
    }
    if (locked != NULL)
        end_of_frees(locked);
}

/* ---- Resizing ---- */

static bool resize_locked(struct cells *cells, struct cell *cell, size_t units, size_t wish)
{
    struct cell *next = next_cell(cell);
    bool next_free = cell_is_free(next);
    if (next_free && !cell_free_is_sound(cells, next))
        return false;
    size_t old_units = cell->units;
    size_t room = old_units + (next_free ? next->units : 0u);
    if (room < units)
        return false;
    units = size_max(units, size_min(wish, room));
    uint8_t prev_free = cell->prev_free;
    bool next_top = next_free && next == cells->top;
    size_t gone = next_free ? cell_unlist(cells, next) : 0;
    cell->units = (uint16_t)room; /* for cell_cut, which also makes the check right again */
    cell_cut(cells, cell, 0, units, next_top);
    cell->prev_free = prev_free;
    cells_count_free(cells, old_units, cell->units);
    if (UNLIKELY(gone != 0))
        cells_note_missed(cells, next_cell(cell), gone);
    return true;
}

/* The same where the cell behind is free, or it becomes shorter. */
static NOINLINE bool resize_free(struct cell *cell, size_t units, size_t wish)
{
    struct cells *cells = cells_of(span_of((uintptr_t)cell));
    size_t old_units = cell->units;
    /* Nothing useful would be freed. */
    if (units <= old_units && old_units - units < cells->split_least)
        return true;
    lock_acquire(&cells->lock);
    bool done = resize_locked(cells, cell, units, wish);
    lock_release(&cells->lock);
    return done;
}

bool cell_resize(uintptr_t block, size_t bytes, size_t wish)
{
    struct cell *cell = cell_of(block);
    size_t units = units_of_block(bytes);
    /* Mostly no room is behind it. That takes no lock: nobody else changes the units of a cell in
     * use, and whether there is room is a hint. */
    if (units > cell->units && !cell_is_free(next_cell(cell)))
        return false;
    return resize_free(cell, units, cell_units(wish));
}
