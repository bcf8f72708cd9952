/*
 * See cell_shadow.h. One sorted array; what is done often in a heap is done by a scan here.
 */
#include "cell_shadow.h"

#include <string.h>

struct shadow_cell shadow_cells[CELLS_MOST];
size_t shadow_count;
uintptr_t shadow_top[OWNERS];

void shadow_clear(void)
{
    shadow_count = 0;
    for (size_t i = 0; i < OWNERS; i++)
        shadow_top[i] = 0;
}

/* ---- Finding ---- */

size_t shadow_rank(size_t units)
{
    size_t doubling = 8192, rank = 8192;
    if (units < doubling)
        return units;
    for (; units >= 2 * doubling; doubling *= 2)
        rank += 32;
    return rank + (units - doubling) / (doubling / 32);
}

/* Whether a free cell may serve a request. Where larger sizes share a rank, one of the same rank is
 * not looked at, since it may be too small. */
static bool serves(const struct shadow_cell *cell, size_t units)
{
    if (cell->units < units)
        return false;
    return shadow_is_top(cell) || units <= 8192 || shadow_rank(cell->units) > shadow_rank(units);
}

struct shadow_cell *shadow_best(unsigned owner, size_t units)
{
    struct shadow_cell *best = NULL;
    for (struct shadow_cell *cell = shadow_cells; cell < shadow_cells + shadow_count; cell++)
        if (cell->state == CELL_FREE && cell->owner == owner && serves(cell, units) &&
            (best == NULL || shadow_is_top(best) ||
             (!shadow_is_top(cell) && cell->units < best->units)))
            best = cell;
    return best;
}

struct shadow_cell *shadow_find(uintptr_t address)
{
    for (struct shadow_cell *cell = shadow_cells; cell < shadow_cells + shadow_count; cell++)
        if (address - cell->address < cell->units * CELL_UNIT)
            return cell;
    return NULL;
}

struct shadow_cell *shadow_next(struct shadow_cell *cell)
{
    struct shadow_cell *next = cell + 1;
    return next < shadow_cells + shadow_count && next->span == cell->span ? next : NULL;
}

struct shadow_cell *shadow_previous(struct shadow_cell *cell)
{
    return cell > shadow_cells && cell[-1].span == cell->span ? cell - 1 : NULL;
}

struct shadow_cell *shadow_choose(size_t index, bool is_free)
{
    for (size_t i = 0; i < shadow_count; i++) {
        struct shadow_cell *cell = &shadow_cells[(index + i) % shadow_count];
        if ((cell->state == CELL_FREE) == is_free)
            return cell;
    }
    return NULL;
}

/* ---- Claims ---- */

/* Cells lie 8 bytes off the units of claims, so each claims the units from its block to the next
 * cell's header; this counts as used, and the first header is a span's own. */
static void cell_claim(const struct shadow_cell *cell)
{
    size_t bytes = cell->units * CELL_UNIT;
    if (cell->state != CELL_FREE) {
        claim(shadow_block(cell), bytes, CLAIM_FREE_CELL, CLAIM_BLOCK);
        return;
    }
    claim_anew(shadow_block(cell), bytes - CELL_UNIT, CLAIM_FREE_CELL);
    claim_anew(shadow_block(cell) + bytes - CELL_UNIT, CELL_UNIT, CLAIM_BLOCK);
}

/* Lets a range of units be claimed by others. */
static void cell_unclaim(const struct shadow_cell *cell)
{
    claim_anew(shadow_block(cell), cell->units * CELL_UNIT, CLAIM_FREE_CELL);
}

/* ---- Changing ---- */

static struct shadow_cell *cell_insert(struct shadow_cell *at, struct shadow_cell cell)
{
    EXPECT(shadow_count < CELLS_MOST, "the shadow is too small");
    memmove(at + 1, at, (size_t)(shadow_cells + shadow_count - at) * sizeof(*at));
    shadow_count++;
    *at = cell;
    return at;
}

static void cell_delete(struct shadow_cell *at)
{
    shadow_count--;
    memmove(at, at + 1, (size_t)(shadow_cells + shadow_count - at) * sizeof(*at));
}

struct shadow_cell *shadow_span_enter(uintptr_t start, unsigned owner)
{
    struct shadow_cell cell = {start + CELL_HEADER, start, CELL_UNITS - 1, 0, CELL_FREE, 0, owner};
    struct shadow_cell *at = shadow_cells;
    while (at < shadow_cells + shadow_count && at->address < start)
        at++;
    claim(start, CELL_SPAN_BYTES, CLAIM_NONE, CLAIM_BLOCK);
    cell_insert(at, cell);
    cell_claim(at);
    shadow_top[owner] = at->address;
    return at;
}

/* Cuts the units from `units` on off a cell, as a cell behind it. */
static struct shadow_cell *cell_split(struct shadow_cell *cell, size_t units)
{
    struct shadow_cell rest = *cell;
    rest.address += units * CELL_UNIT;
    rest.units -= units;
    rest.former = 0;
    cell->units = units;
    cell->former = 0;
    return cell_insert(cell + 1, rest);
}

struct shadow_cell *shadow_cut(struct shadow_cell *cell, size_t front, size_t units)
{
    bool was_top = shadow_is_top(cell);
    unsigned owner = cell->owner;
    cell_unclaim(cell);
    if (front != 0) {
        struct shadow_cell *behind = cell_split(cell, front);
        cell_claim(cell);
        cell = behind;
    }
    if (was_top)
        shadow_top[owner] = 0;
    if (cell->units != units) {
        const struct shadow_cell *rest = cell_split(cell, units);
        cell_claim(rest);
        if (was_top)
            shadow_top[owner] = rest->address;
    }
    cell->state = CELL_LIVE;
    cell_claim(cell);
    return cell;
}

/* Joins a cell, which is free or about to be resized, with the free one behind it, if there is one.
 * If that was the top, the whole is. */
static void join_next(struct shadow_cell *cell)
{
    struct shadow_cell *next = shadow_next(cell);
    if (next == NULL || next->state != CELL_FREE)
        return;
    cell_unclaim(next);
    if (shadow_is_top(next))
        shadow_top[cell->owner] = cell->address;
    cell->units += next->units;
    cell_delete(next);
}

static size_t span_count(unsigned owner)
{
    size_t count = 0;
    for (size_t i = 0; i < shadow_count; i++)
        count += shadow_cells[i].owner == owner && shadow_previous(&shadow_cells[i]) == NULL;
    return count;
}

/* Lets a span go in which all is free. */
static void span_leave(struct shadow_cell *cell)
{
    if (shadow_is_top(cell))
        shadow_top[cell->owner] = 0;
    claim_anew(cell->span, CELL_SPAN_BYTES, CLAIM_NONE);
    cell_delete(cell);
}

bool shadow_yield_top(unsigned owner, struct shadow_cell *yielded)
{
    struct shadow_cell *top = shadow_top[owner] == 0 ? NULL : shadow_find(shadow_top[owner]);
    if (top == NULL || top->units != CELL_UNITS - 1)
        return false;
    *yielded = *top;
    span_leave(top);
    return true;
}

void shadow_keep_top(const struct shadow_cell *yielded)
{
    shadow_span_enter(yielded->span, yielded->owner)->former = yielded->former;
}

void shadow_free(struct shadow_cell *cell)
{
    cell_unclaim(cell);
    cell->state = CELL_FREE;
    cell->former = cell->units;
    join_next(cell);
    struct shadow_cell *previous = shadow_previous(cell);
    if (previous != NULL && previous->state == CELL_FREE) {
        cell = previous;
        if (cell->units == CELL_LEAST_UNITS)
            cell->former = cell->units; /* it has no room to remember that it never was a block */
        join_next(cell);
    }
    cell_claim(cell);
    bool stays = shadow_is_top(cell) && span_count(cell->owner) == 1;
    if (cell->units == CELL_UNITS - 1 && !stays)
        span_leave(cell);
}

size_t shadow_room(struct shadow_cell *cell)
{
    const struct shadow_cell *next = shadow_next(cell);
    return cell->units + (next != NULL && next->state == CELL_FREE ? next->units : 0);
}

void shadow_resize(struct shadow_cell *cell, size_t units)
{
    if (units == cell->units)
        return;
    cell_unclaim(cell);
    cell->state = CELL_FREE;
    join_next(cell);
    shadow_cut(cell, 0, units);
}
