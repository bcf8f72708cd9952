/*
 * The shadow of the cells: every cell of every span, free ones too, in the order of their
 * addresses; and the rules by which cells are cut and joined, written down a second time.
 */
#ifndef SNUG_TESTS_FUZZ_CELL_SHADOW_H
#define SNUG_TESTS_FUZZ_CELL_SHADOW_H

#include "cell/cell.h"
#include "world.h"

enum { CELLS_MOST = 4096 };

struct shadow_cell {
    uintptr_t address; /* of the header */
    uintptr_t span;    /* the start of its span */
    size_t units;
    size_t former; /* of a free cell: the units of the block that was at its beginning; 0: none */
    enum cell_state state;
    uint32_t id;    /* of the contents, unless it is free */
    unsigned owner; /* which struct cells */
};

enum { OWNERS = 2 };

extern struct shadow_cell shadow_cells[CELLS_MOST];
extern size_t shadow_count;

/* The header of each owner's top, the free rest of its newest span; 0 if there is none. */
extern uintptr_t shadow_top[OWNERS];

static inline bool shadow_is_top(const struct shadow_cell *cell)
{
    return shadow_top[cell->owner] == cell->address;
}

static inline uintptr_t shadow_block(const struct shadow_cell *cell)
{
    return cell->address + CELL_HEADER;
}

static inline size_t shadow_bytes(const struct shadow_cell *cell)
{
    return cell->units * CELL_UNIT - CELL_HEADER;
}

void shadow_clear(void);

/* What free cells are chosen by: the size itself below 8,192 units, above that a number that 32
 * sizes of a doubling have. */
size_t shadow_rank(size_t units);

/* A free cell that a request of `units` may be cut from: the smallest that is large enough, or any
 * of its rank, but the top only if there is no other. NULL if none is. */
struct shadow_cell *shadow_best(unsigned owner, size_t units);

/* The cell that an address is in, its header included, or NULL. */
struct shadow_cell *shadow_find(uintptr_t address);

/* The cell behind or before one in the same span, or NULL. */
struct shadow_cell *shadow_next(struct shadow_cell *cell);
struct shadow_cell *shadow_previous(struct shadow_cell *cell);

/* The `index`th cell, counted around, that is free, or that is not; NULL if there is none. */
struct shadow_cell *shadow_choose(size_t index, bool is_free);

/* Enters a new span, which is one free cell, the top. */
struct shadow_cell *shadow_span_enter(uintptr_t start, unsigned owner);

/* Takes `units`, `front` units into a free cell. Returns the live cell. Pointers to other cells
 * become invalid, here and below. */
struct shadow_cell *shadow_cut(struct shadow_cell *cell, size_t front, size_t units);

/* Lets an owner's last span go, if all of it is free and it is the top; false if it is not so. The
 * second takes it back. */
bool shadow_yield_top(unsigned owner, struct shadow_cell *yielded);
void shadow_keep_top(const struct shadow_cell *yielded);

/* Makes a cell free, joins it with its neighbours, and forgets its span if that is empty. */
void shadow_free(struct shadow_cell *cell);

/* How many units a cell could have if it were resized in place. */
size_t shadow_room(struct shadow_cell *cell);

/* Resizes a live cell to at most as many. */
void shadow_resize(struct shadow_cell *cell, size_t units);

#endif
