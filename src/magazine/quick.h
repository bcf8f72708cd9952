/*
 * Quick lists: the cells that wait in a thread's cache, by size.
 *
 *   malloc: the first of a few neighbouring lists that is not empty; take its newest cell.
 *   free:   the list of the cell's size; put it in front.
 *
 * The idea: one list for each thirty-second of a doubling, from 1 KiB to 128 KiB, linked through
 * the cells' own first words, under a bitmap. A request looks at the newest cell of its own list,
 * which may be a little too small, and at the next QUICK_WINDOW lists, all of whose cells are large
 * enough and at most a quarter too large: a shift and a mask of the bitmap, and no loop. So a hit
 * takes no lock, touches no other memory than the cell that is handed out, and its one branch is
 * the miss.
 *
 * A link is kept as a number that a secret makes: a program that writes to memory it has freed
 * cannot lead malloc anywhere, what it wrote is seen when the cell is handed out.
 *
 * How much may wait is `limit`. It doubles when cells have to go back although requests had found
 * nothing, and is halved when cells went back some times and nothing had been missed: a program
 * that first takes and then frees gains nothing by cells that wait, they would only not be joined.
 * When too much waits, the lists give cells back in turn, as the hand of a clock goes round, so
 * that sizes that are not asked for any more do not stay.
 *
 * Cost: O(1), and one miss of the processor's caches where a cold cell is freed, whose header says
 * how large it is and whether it is live; 2 KiB for a thread that frees cells.
 * Source: C. Weinstock and W. Wulf, "Quick Fit" (1988); M. Masmano et al., "TLSF" (2004).
 */
#ifndef SNUG_MAGAZINE_QUICK_H
#define SNUG_MAGAZINE_QUICK_H

#include "base/bits.h"
#include "base/peek.h"
#include "cell/cell.h"

/* Layout: of the lists by size. */
enum {
    QUICK_FIRST_LOG = 6, /* of 64 units, 1 KiB: the least cell of the first list */
    QUICK_STEP_LOG = 5,  /* log of the lists in a doubling */
    QUICK_LISTS = (7 << QUICK_STEP_LOG) + 1,
    QUICK_WORDS = QUICK_LISTS / 64 + 2, /* one more than it needs: a window reads two */
    QUICK_WINDOW =
        8 /* Lists: a request looks through so many, so it takes a quarter too much at most */
};

/* Layout: an entry, of the table and in a cell, holds a cell's address, and its units in the upper
 * 16 bits, where addresses have none; 0 is the end. */
enum { QUICK_UNITS_SHIFT = 48 };

struct quick {
    uint64_t bitmap[QUICK_WORDS]; /* bit l == (list[l] != 0) */
    ptrdiff_t room;               /* == limit - sum of the bytes of all cells in the lists */
    size_t count;                 /* == number of cells in the lists */
    size_t limit;                 /* of bytes */
    uint32_t misses;              /* requests that found nothing since cells last went back */
    uint16_t hand;                /* the list that gives its cells back next */
    uint8_t calm;                 /* times that cells went back and nothing had been missed */
    uintptr_t list[QUICK_LISTS];  /* entries */
};

/* Without lists, and without room. */
extern INTERNAL const struct quick quick_none;

static ALWAYS_INLINE uintptr_t quick_block(uintptr_t entry)
{
    return entry & (((uintptr_t)1 << QUICK_UNITS_SHIFT) - 1);
}

static ALWAYS_INLINE size_t quick_units(uintptr_t entry)
{
    return entry >> QUICK_UNITS_SHIFT;
}

/* Bytes of the cells that wait. */
static inline size_t quick_bytes(const struct quick *quick)
{
    return quick->limit - (size_t)quick->room;
}

/* The list of a size in units; QUICK_LISTS or more if there is none. */
static ALWAYS_INLINE size_t quick_list_of(size_t units)
{
    return bit_part((uint32_t)units, QUICK_STEP_LOG) - ((QUICK_FIRST_LOG + 127) << QUICK_STEP_LOG);
}

/* Which of the own list of a size and the QUICK_WINDOW lists behind it have a cell that serves a
 * request of `units`, at most CELL_MOST: bit 0 is the own list. */
static ALWAYS_INLINE uint64_t quick_find(const struct quick *quick, size_t own, size_t units)
{
    size_t word = own / 64, shift = own % 64;
    uint64_t bits = quick->bitmap[word] >> shift | quick->bitmap[word + 1] << 1 << (63 - shift);
    uint64_t fits = quick_units(quick->list[own]) >= units;
    return bits & ((2u << QUICK_WINDOW) - 2 + fits);
}

static ALWAYS_INLINE bool quick_entry_is_sound(uintptr_t entry)
{
    uintptr_t block = quick_block(entry);
    return entry == 0 || (block % CELL_UNIT == 0 && page_map_is_cell(block));
}

/* Puts a live cell in front of its list, where it waits. False, and nothing is changed: it is not a
 * live cell, or there is no room or no list for it. */
static ALWAYS_INLINE bool quick_put(struct quick *quick, uintptr_t block)
{
    struct cell *cell = cell_of(block);
    size_t units = cell->units; /* no more than a guess until it is checked */
    ptrdiff_t room = quick->room - (ptrdiff_t)(units * CELL_UNIT);
    if (UNLIKELY(room < 0))
        return false;
    uint64_t mix = cell_mix(cell, units);
    if (UNLIKELY(cell->state != CELL_LIVE || cell->check != cell_hash(mix, CELL_LIVE)))
        return false;
    size_t list = quick_list_of(units);
    if (UNLIKELY(list >= QUICK_LISTS))
        return false;
    uint64_t link = quick->list[list] ^ page_map.key;
    *cell_link(cell) = link;
    cell_mark(cell, CELL_CACHED, cell_hash(mix + link, CELL_CACHED));
    __atomic_signal_fence(__ATOMIC_RELEASE); /* as in cache_set_top */
    quick->list[list] = (uintptr_t)units << QUICK_UNITS_SHIFT | block;
    bitmap_set(quick->bitmap, list);
    GAUGE_SET(quick->room, room);
    GAUGE_ADD(quick->count, 1);
    return true;
}

/* Takes the newest cell out of a list that is not empty, and makes it `state`. 0, and nothing is
 * changed: its header or its link was overwritten. */
static ALWAYS_INLINE uintptr_t quick_alloc(struct quick *quick, size_t list, enum cell_state state)
{
    uintptr_t block = quick_block(quick->list[list]);
    struct cell *cell = cell_of(block);
    size_t units = cell->units;
    uint64_t link = *cell_link(cell);
    uint64_t mix = cell_mix(cell, units);
    if (UNLIKELY(cell->state != CELL_CACHED || cell->check != cell_hash(mix + link, CELL_CACHED)))
        return 0;
    if (state == CELL_LIVE)
        cell_mark(cell, CELL_LIVE, cell_hash(mix, CELL_LIVE));
    uintptr_t next = link ^ page_map.key;
    quick->list[list] = next;
    quick->bitmap[list / 64] &= ~((uint64_t)(next == 0) << (list % 64));
    GAUGE_ADD(quick->room, (ptrdiff_t)(units * CELL_UNIT));
    GAUGE_ADD(quick->count, (size_t)-1);
    return block;
}

/* Gives cells back until at most `keep` bytes wait. */
void quick_evict(struct quick *quick, size_t keep);

/* What is wrong with the newest cell of a list that cannot be handed out. Forgets that list: with
 * SNUG_MISUSE=warn its cells are lost. */
struct misuse quick_drop_list(struct quick *quick, size_t list);

/* Says how much may wait from now on. */
void quick_set_limit(struct quick *quick, size_t limit);

/* NULL if every invariant holds, otherwise what does not. */
const char *quick_check(const struct quick *quick);

#endif
