/*
 * cells_first_fit.c - the reference of `cells`: the same layout as snug's cells, but the free cells
 * stand in one list, in the order of their addresses, and a request walks along it to the first
 * that is large enough.
 *
 * A header of 8 bytes stands before each cell, a free cell repeats its size in its last 8 bytes,
 * and neighbours are joined at once. A remainder that can hold links and a trailer is cut off. All
 * cells are in one range of memory.
 *
 * Source: D. Knuth, The Art of Computer Programming 1, 2.5: algorithm A, and for the second form
 * exercise 6.
 */
#include <stdbool.h>

#include "cells_first_fit.h"
#include "workload.h"

enum { UNIT = 16, HEADER = 8, LEAST_UNITS = 2 };

/* More than all blocks of the workload together; only what is used is touched. */
#define RANGE ((size_t)128 << 20)

struct cell {
    uint32_t units;
    uint16_t is_free;
    uint16_t before_free;
    /* in free cells: */
    struct cell *next;
    struct cell *previous;
};

static char *range;
static struct cell list;   /* a ring: its `next` is the free cell with the lowest address */
static struct cell *start; /* where the next walk begins */
static bool goes_on;       /* where the last ended */

static struct cell *after(struct cell *cell)
{
    return (struct cell *)((char *)cell + (size_t)cell->units * UNIT);
}

static uint64_t *trailer_before(struct cell *cell)
{
    return (uint64_t *)cell - 1;
}

static struct cell *before(struct cell *cell)
{
    return (struct cell *)((char *)cell - *trailer_before(cell) * UNIT);
}

/* ---- The list ---- */

static void insert_before(struct cell *place, struct cell *cell)
{
    cell->next = place;
    cell->previous = place->previous;
    place->previous->next = cell;
    place->previous = cell;
}

static void unlist(struct cell *cell)
{
    cell->previous->next = cell->next;
    cell->next->previous = cell->previous;
    if (start == cell)
        start = cell->next;
}

/* The first free cell behind one that is not free yet. The end is marked as free, as the list. */
static struct cell *free_behind(struct cell *cell)
{
    do
        cell = after(cell);
    while (!cell->is_free);
    return cell->units == 0 ? &list : cell;
}

static void make_free(struct cell *cell, size_t units)
{
    cell->units = (uint32_t)units;
    cell->is_free = 1;
    struct cell *next = after(cell);
    *trailer_before(next) = units;
    next->before_free = 1;
}

/* ---- The method ---- */

static void begin(void)
{
    if (range == NULL) {
        range = mmap(NULL, RANGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (range == MAP_FAILED)
            die("mmap");
    }
    list.next = list.previous = &list;
    struct cell *first = (struct cell *)(range + HEADER);
    struct cell *end = (struct cell *)(range + RANGE - HEADER);
    first->before_free = 0;
    end->units = 0; /* there is room for these two fields and no more */
    end->is_free = 1;
    make_free(first, (size_t)((char *)end - (char *)first) / UNIT);
    insert_before(&list, first);
    start = first;
}

static void begin_first_fit(void)
{
    goes_on = false;
    begin();
}

static void begin_next_fit(void)
{
    goes_on = true;
    begin();
}

static struct cell *walk(size_t units)
{
    struct cell *from = goes_on ? start : list.next;
    struct cell *cell = from;
    do {
        if (cell->units >= units && cell != &list)
            return cell;
        cell = cell->next;
    } while (cell != from);
    return NULL;
}

static void *take(size_t bytes)
{
    size_t units = (bytes + HEADER + UNIT - 1) / UNIT;
    struct cell *cell = walk(units);
    if (cell == NULL)
        return NULL;
    start = cell->next;
    if (cell->units - units < LEAST_UNITS) {
        unlist(cell);
        after(cell)->before_free = 0;
    } else {
        size_t rest_units = cell->units - units;
        cell->units = (uint32_t)units;
        struct cell *rest = after(cell);
        struct cell *place = cell->next;
        unlist(cell);
        make_free(rest, rest_units);
        rest->before_free = 0;
        insert_before(place, rest);
        start = rest;
    }
    cell->is_free = 0;
    return (char *)cell + HEADER;
}

static void give(void *block)
{
    struct cell *cell = (struct cell *)((char *)block - HEADER);
    struct cell *next = after(cell);
    size_t units = cell->units;
    struct cell *place = NULL; /* where it goes, unless the cell before it is in the list */
    if (next->is_free && next->units != 0) {
        units += next->units;
        place = next->next;
        bool was_start = start == next;
        unlist(next);
        if (was_start)
            start = cell;
    }
    if (cell->before_free) {
        struct cell *whole = before(cell);
        if (start == cell)
            start = whole;
        make_free(whole, whole->units + units);
        return;
    }
    if (place == NULL)
        place = free_behind(cell);
    make_free(cell, units);
    insert_before(place, cell);
}

static void end(void)
{
    const struct cell *first = (const struct cell *)(range + HEADER);
    if (list.next != first || first->next != &list) {
        fprintf(stderr, "first fit: all was freed, but the memory is not whole\n");
        exit(1);
    }
}

const struct method first_fit = {"first-fit", begin_first_fit, take, give, end};
const struct method next_fit = {"next-fit", begin_next_fit, take, give, end};
