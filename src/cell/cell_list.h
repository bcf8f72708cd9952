/*
 * Free cells in lists by size, under a bitmap of two levels. See cell.h.
 */
#ifndef SNUG_CELL_CELL_LIST_H
#define SNUG_CELL_CELL_LIST_H

#include "base/bits.h"
#include "cell/cell.h"
#include "platform/memory.h"

/* The links of a free cell, in its block. */
struct free_links {
    struct free_links *next;
    struct free_links *prev; /* NULL for the first */
};

/* What free cells of more than the least size have behind the links. */
struct cell_past {
    uint16_t units; /* of the block that was here, for the report of a second free; 0: none */
    uint8_t gone;   /* pages that are not in memory; this and below: from CELL_AGED_UNITS on */
    uint32_t since; /* cells->looks when it became free */
};

/* Layout: the whole pages inside of a smaller free cell are too few to be purged. */
enum { CELL_AGED_UNITS = (int)(RETENTION_PURGE_LEAST / CELL_UNIT) };

static inline struct cell_past *cell_past(struct cell *cell)
{
    return (struct cell_past *)((char *)cell + CELL_HEADER + sizeof(struct free_links));
}

/* The units of the block that a free cell was, as far as it is known. */
static inline uint16_t cell_former_units(struct cell *cell)
{
    return cell->units > CELL_LEAST_UNITS ? cell_past(cell)->units : cell->units;
}

/* The pages of a free cell that can be given back: whole ones between its links and its trailer. */
static inline size_t cell_whole_pages(struct cell *cell, uintptr_t *start)
{
    uintptr_t end = (uintptr_t)cell + cell->units * CELL_UNIT - sizeof(uint64_t);
    *start = align_up((uintptr_t)(cell_past(cell) + 1), os_page_size());
    end = align_down(end, os_page_size());
    return *start < end ? (end - *start) >> PAGE_SHIFT : 0;
}

/* Pages of a free cell that are known not to be in memory. */
static inline size_t cell_gone(struct cell *cell)
{
    return cell->units >= CELL_AGED_UNITS ? cell_past(cell)->gone : 0;
}

static inline struct free_links *cell_links(struct cell *cell)
{
    return (struct free_links *)((char *)cell + CELL_HEADER);
}

static inline struct cell *cell_of_links(struct free_links *links)
{
    return cell_of((uintptr_t)links);
}

/* Counts units that come with a span, or go with one. Atomic because other arenas look at it
 * without the lock; relaxed: what they see is a hint. */
static inline void cells_count_span_units(struct cells *cells, size_t more, size_t fewer)
{
    __atomic_store_n(&cells->free_units, cells->free_units + more - fewer, __ATOMIC_RELAXED);
}

/* Counts a cell in use of `more` units as free, and a free one of `fewer` as in use; 0: none. */
static inline void cells_count_free(struct cells *cells, size_t more, size_t fewer)
{
    size_t was = cell_is_short(more) ? more : 0, is = cell_is_short(fewer) ? fewer : 0;
    GAUGE_SET(cells->short_units, cells->short_units + is - was);
    cells->loose_units += cell_loose_units(fewer) - cell_loose_units(more);
    cells_count_span_units(cells, more, fewer);
}

/* The list of free cells of a size. */
static inline size_t cell_list_of(size_t units)
{
    if (LIKELY(units < CELL_EXACT_UNITS))
        return units;
    unsigned log = bit_highest(units);
    return CELL_EXACT_UNITS + ((size_t)(log - CELL_EXACT_LOG) << CELL_STEP_LOG) +
           ((units >> (log - CELL_STEP_LOG)) & ((1u << CELL_STEP_LOG) - 1));
}

static inline void cell_list_add(struct cells *cells, struct cell *cell, size_t units)
{
    size_t list = cell_list_of(units);
    struct free_links *links = cell_links(cell), *first = cells->free[list];
    links->next = first;
    links->prev = NULL;
    cells->free[list] = links;
    if (first != NULL) {
        first->prev = links;
        return;
    }
    bitmap_set(cells->bitmap, list);
    bitmap_set(cells->summary, list / 64);
}

/* Whether links may be those of a cell. */
bool cell_links_there(const struct free_links *links);

/* The word that the top, which is in no list, has in place of links; its complement stands behind
 * it. */
static inline uint64_t cell_top_mark(const struct cell *cell)
{
    return page_map.key + (uintptr_t)cell;
}

static inline bool cell_top_is_sound(const struct cell *top)
{
    uint64_t mark = cell_top_mark(top);
    return cell_link(top)[0] == mark && cell_link(top)[1] == ~mark;
}

static inline bool cell_next_is_sound(const struct free_links *links)
{
    return links->next == NULL || (cell_links_there(links->next) && links->next->prev == links);
}

/* Whether the links of a free cell lead to cells that lead back: a program that writes to memory it
 * has freed must not make snug write elsewhere. */
static inline bool cell_links_sound(const struct cells *cells, struct cell *cell)
{
    struct free_links *links = cell_links(cell);
    if (links->prev == NULL ? cells->free[cell_list_of(cell->units)] != links
                            : !cell_links_there(links->prev) || links->prev->next != links)
        return false;
    return cell_next_is_sound(links);
}

/* Whether a cell is free, and is the top or in the list of its size. */
static inline bool cell_free_is_sound(const struct cells *cells, struct cell *cell)
{
    return cell_is_sound(cell) && cell->state == CELL_FREE &&
           (cell == cells->top ? cell_top_is_sound(cell) : cell_links_sound(cells, cell));
}

static inline void cell_list_emptied(struct cells *cells, size_t list)
{
    bitmap_clear(cells->bitmap, list);
    if (cells->bitmap[list / 64] == 0)
        bitmap_clear(cells->summary, list / 64);
}

static inline void cell_list_remove(struct cells *cells, struct cell *cell)
{
    struct free_links *links = cell_links(cell);
    if (links->next != NULL)
        links->next->prev = links->prev;
    if (links->prev != NULL) {
        links->prev->next = links->next;
        return;
    }
    size_t list = cell_list_of(cell->units);
    cells->free[list] = links->next;
    if (links->next == NULL)
        cell_list_emptied(cells, list);
}

/* ---- Keeping and giving back (cell_purge.c); the lock must be held ---- */

/* Notes that so many pages of a free cell, no more than its whole ones, are not in memory. */
void cell_set_gone(struct cells *cells, struct cell *cell, size_t pages);

/* Call when a part of a free cell, `gone` pages of which were not in memory, was taken, after which
 * `rest` follows: what is left of it, or a cell that is not free. As many of those pages as the
 * rest has room for are taken to be there, since the block that was freed last mostly lies at the
 * beginning; the others are missed. By pages, not by the length of the block: many blocks are
 * shorter than a page, and each would miss none. */
void cells_note_missed(struct cells *cells, struct cell *rest, size_t gone);

/* Looks at what is kept, and gives back what is not worth keeping; and of idle pages that could
 * stay as many as `fresh` ones were taken elsewhere. */
void cells_look(struct cells *cells, size_t fresh);

/* Looks: a cell that is free at so many in a row is no part of the working set. */
enum { IDLE_LOOKS = 2 };

/* Whether a free cell of CELL_AGED_UNITS or more was not used for as long. */
static inline bool cell_is_idle(const struct cells *cells, struct cell *cell)
{
    return cells->looks - cell_past(cell)->since >= IDLE_LOOKS;
}

/* Tells the page heap how many pages are free in these cells' spans, and how many of them are in
 * memory. */
void cells_tell(struct cells *cells);

/* The list with the smallest free cell of at least `units`; CELL_LISTS: there is none. Above the
 * sizes that have lists of their own it may be a thirty-second larger than the smallest. */
static inline size_t cell_list_best(const struct cells *cells, size_t units)
{
    /* In a list of several sizes the first cell may be too small: so the next list is taken. Only a
     * request with slack for its alignment is larger than what has a list of its own. */
    size_t list = cell_list_of(units) + (units > CELL_EXACT_UNITS);
    size_t word = list / 64;
    uint64_t bits = cells->bitmap[word] & (~(uint64_t)0 << (list % 64));
    if (bits == 0) {
        word = bitmap_next_here(cells->summary, CELL_WORDS / 64 + 1, word + 1);
        if (word >= CELL_WORDS)
            return CELL_LISTS;
        bits = cells->bitmap[word];
    }
    return word * 64 + bit_lowest(bits);
}

/* Whether the first cell of a list is free, of a size for this list, and its link leads to one that
 * leads back. */
static inline bool cell_first_is_sound(struct cell *cell, size_t list)
{
    const struct free_links *links = cell_links(cell);
    return cell->state == CELL_FREE && cell_is_sound(cell) && cell_list_of(cell->units) == list &&
           links->prev == NULL && cell_next_is_sound(links);
}

/* Takes the first cell of a list out of it. */
static inline void cell_list_remove_first(struct cells *cells, size_t list, struct cell *cell)
{
    struct free_links *next = cell_links(cell)->next;
    cells->free[list] = next;
    if (next != NULL)
        next->prev = NULL;
    else
        cell_list_emptied(cells, list);
}

#endif
