/*
 * Quick lists: the cells that wait in a thread's cache, by size.
 *
 *   malloc: the first of a few neighbouring lists that is not empty; take its newest cell.
 *   free:   the list of the cell's size; put it in front.
 *
 * The idea: one list for each thirty-second of a doubling up to 128 KiB, those of short cells two
 * units apart (cell_sort_of), linked through the cells' own first words, and a byte for each that
 * counts them. A request looks at the newest cell of its own list, which may be a little too small,
 * and at the next lists, all of whose cells are large enough and at most a quarter too large, short
 * ones 256 bytes: those bytes are one word, of which the lowest bit is found, without a loop. So a
 * hit takes no lock, touches no other memory than the cell that is handed out. The own list is
 * asked first, since a size that was just freed is the one that is asked for most, and a word is
 * slow to load around a byte that was just stored.
 *
 * A link is kept as a number that a secret makes, and behind it stands its seal, which covers the
 * cell's check value as well: a program that writes to memory it has freed cannot lead malloc
 * anywhere, what it wrote is seen when the cell is handed out.
 *
 * How much may wait is `limit`: a part of what the heap keeps in any case, and from then on it is
 * learned. What goes back is remembered as ghosts, by size; a request that finds nothing where
 * there are ghosts of its size is a regret. Where the regrets are as many bytes as go back at a
 * time, the limit doubles. Where requests for as many found nothing, some times, and hardly any was
 * a regret, it is halved: a program that grows gains nothing by cells that wait, they would only
 * not be joined. Where cells go back and nothing is asked for, as on the way down from a peak, that
 * says nothing of what will be asked for on the way up.
 * One cell that is larger than all that may wait does so alone, once it was taken and freed in turn
 * a few times: as soon as any other request finds nothing it is joined, so nobody misses its
 * memory.
 *
 * Before memory is touched that no cell had yet, all that waits is joined with its neighbours if it
 * is more than is spared, which is little at first: so what waits makes no heap larger. That can be
 * in vain: a program with a few blocks at a time, each of another size, has all of them joined, cut
 * as others, and joined again. Where most of what was joined was missed, many times in one step of
 * the clock, and the heap hardly grew for it, twice as much is spared; where it grew half as much.
 *
 * When too much waits, the lists give cells back in turn, as the hand of a clock goes round, so
 * that sizes that are not asked for any more do not stay.
 *
 * Cost: O(1), and one miss of the processor's caches where a cold cell is freed, whose header says
 * how large it is and whether it is live; 2 KiB for a thread that frees cells.
 * Source: C. Weinstock and W. Wulf, "Quick Fit" (1988); M. Masmano et al., "TLSF" (2004); ghosts
 * are those of N. Megiddo and D. Modha, "ARC" (2003).
 */
#ifndef SNUG_MAGAZINE_QUICK_H
#define SNUG_MAGAZINE_QUICK_H

#include <string.h>

#include "base/bits.h"
#include "base/peek.h"
#include "cell/cell.h"

/* Bytes: what may wait at first, and what a thread that needs no more is left with; more if the
 * threads are few. */
#define QUICK_LIMIT_LEAST (64 * KIB)

/* Layout: of the lists by size. */
enum {
    QUICK_LISTS = CELL_SORTS, /* one for each number that live cells are sorted by */
    QUICK_WINDOW = 8          /* a request looks at so many, one word; see above */
};

struct quick {
    uint64_t list[QUICK_LISTS]; /* cell_word() of the newest cell, and 0 if there is none */
    int32_t room;               /* in units: limit less all cells in the lists */
    uint32_t limit;             /* of bytes */
    uint32_t rounds;   /* times that a byte of `waits` went over, less those that it came back */
    uint8_t calm : 3;  /* times that cells went back and nothing had been missed */
    uint8_t turns : 3; /* times that a large cell was freed, and asked for next; see limit_lend */
    uint8_t lent : 1;  /* the limit is the size of one large cell, until a request finds nothing */
    uint8_t hand;      /* the list that gives its cells back next */
    uint8_t asked;     /* the list of the last request that found nothing */
    /* Cells in each list, modulo 256: a list of a multiple of 256 is found by its own sizes only.
     * The statistics read eight at once, which some processors do at multiples of eight alone. */
    _Alignas(uint64_t) uint8_t waits[QUICK_LISTS + QUICK_WINDOW - 1];
    uint32_t kept;   /* pages of the limit that the page heap counts as kept */
    uint32_t wanted; /* in units: what requests did not find since the limit was last judged, */
    uint32_t regret; /* and what of that was missed */
    /* In units: what went back lately of so many neighbouring lists, and was not missed. */
    uint32_t ghosts[QUICK_LISTS / QUICK_WINDOW + 1];
    /* Modulo 2^32: `regret` and the heap's cells_fresh, when all were joined last. */
    uint32_t seen, fresh;
    uint32_t clock; /* what it said when they were joined in vain last, modulo 2^32 */
    uint8_t vain;   /* times that they were, while it said so */
    uint8_t spared; /* log of the QUICK_LIMIT_LEAST that are spared */
};

_Static_assert(sizeof(struct quick) <= 2240, "the lists of a thread are two KiB of metadata");
_Static_assert(QUICK_LISTS <= UINT8_MAX, "the hand is a byte");

/* Without lists, and without room. */
extern INTERNAL const struct quick quick_none;

/* The block of an entry. Entries, in the table and in cells, are cell_word()s of cells; 0 is the
 * end. */
static ALWAYS_INLINE uintptr_t quick_block(uint64_t entry)
{
    return entry >> CELL_WORD_SHIFT;
}

static ALWAYS_INLINE size_t quick_units(uint64_t entry)
{
    return (uint16_t)entry;
}

/* Bytes that wait if there is so much room of a limit. */
static inline size_t quick_used(int32_t room, size_t limit)
{
    return (size_t)((ptrdiff_t)(limit / CELL_UNIT) - room) * CELL_UNIT;
}

/* Bytes of the cells that wait. */
static inline size_t quick_bytes(const struct quick *quick)
{
    return quick_used(quick->room, quick->limit);
}

/* Bytes of the limit that count among what the thread holds. The rest, which was learned, counts as
 * kept by the page heap. */
static inline size_t quick_held(const struct quick *quick)
{
    return quick->limit - ((size_t)quick->kept << PAGE_SHIFT);
}

/* The list of a size in units; QUICK_LISTS or more if there is none. */
static ALWAYS_INLINE size_t quick_list_of(size_t units)
{
    return cell_sort_of(units);
}

/* Whether the newest cell of a list serves a request of `units`. Asked first: free has just written
 * that entry, and the byte for its list, which the processor has to take to its cache before it can
 * load a word around it. */
static ALWAYS_INLINE bool quick_serves(const struct quick *quick, size_t own, size_t units)
{
    return (uint16_t)quick->list[own] >= (uint16_t)units; /* no cell, 0, is of no units */
}

/* The newest cell that serves a request of `units`, at most CELL_MOST, is that of list
 * `own + quick_first(found)`; 0 if there is none. `own` is the list of that size. */
static ALWAYS_INLINE uint64_t quick_find(const struct quick *quick, size_t own, size_t units)
{
    uint64_t filled; /* little-endian, as all machines: the own list is the lowest byte */
    _Static_assert(sizeof(filled) == QUICK_WINDOW, "the window is a word");
    memcpy(&filled, &quick->waits[own], sizeof(filled));
    return (filled & ~(uint64_t)UINT8_MAX) + quick_serves(quick, own, units);
}

static ALWAYS_INLINE size_t quick_first(uint64_t found)
{
    return bit_lowest(found) / 8;
}

static inline bool quick_entry_is_sound(uint64_t entry)
{
    uintptr_t block = quick_block(entry);
    return entry == 0 || (block % CELL_UNIT == 0 && page_map_is_cell(block));
}

/* The entry behind one, as its link says. */
static ALWAYS_INLINE uint64_t quick_next(uint64_t entry)
{
    return *cell_link(cell_of(quick_block(entry))) ^ page_map.key;
}

/* What stands behind the link of a cell that waits. One comparison tells whether the link was
 * overwritten, and with it `next`, the header's units or check value, or the seal itself. */
static ALWAYS_INLINE uint64_t quick_seal(uintptr_t block, uint64_t next, size_t units,
                                         uint64_t check)
{
    return block + next + units + check;
}

/* Whether a cell, with `next` behind it, is as it was when it was freed. Its state is not looked
 * at. */
static ALWAYS_INLINE bool quick_cell_is_sound(const struct cell *cell, uint64_t next)
{
    uintptr_t block = (uintptr_t)cell + CELL_HEADER;
    return LIKELY(cell_link(cell)[1] == quick_seal(block, next, cell->units, cell->check));
}

/* Puts a live cell in front of its list, where it waits. False, and nothing is changed: it is not a
 * live cell, or there is no room or no list for it. */
static ALWAYS_INLINE bool quick_put(struct quick *quick, uintptr_t block)
{
    cell_guess *guess = (cell_guess *)(block - CELL_HEADER);
    size_t units = guess->units, list = guess->state;
    uint64_t entry = cell_word(block, units), check = cell_hash(entry) ^ list;
    if (UNLIKELY(guess->check != (uint32_t)check)) /* this also tells that there is such a list */
        return false;
    if (UNLIKELY(quick->room < (int32_t)units))
        return false;
    gauge_take(&quick->room, (uint32_t)units);
    uint64_t next = quick->list[list], *words = cell_link(cell_of(block));
    words[1] = quick_seal(block, next, units, check);
    words[0] = next ^ page_map.key;
    cell_mark(cell_of(block), CELL_CACHED);
    __atomic_signal_fence(__ATOMIC_RELEASE); /* as in cache_set_top */
    quick->list[list] = entry;
    if (UNLIKELY(gauge_step_up(&quick->waits[list])))
        GAUGE_SET(quick->rounds, quick->rounds + 1);
    return true;
}

/* Takes the newest cell out of a list that is not empty, and makes it live, or leaves it one that
 * waits. Its block; 0, and nothing is changed: its header or its link was overwritten. */
static ALWAYS_INLINE uintptr_t quick_alloc(struct quick *quick, size_t list, bool live)
{
    uint64_t entry = quick->list[list];
    uintptr_t block = quick_block(entry);
    uint64_t next = quick_next(entry);
    OPAQUE(next);
    uint64_t units = cell_of(block)->units;
    OPAQUE(units);
    if (UNLIKELY(cell_link(cell_of(block))[1] !=
                 quick_seal(block, next, units, cell_of(block)->check)))
        return 0;
    quick->list[list] = next;
    gauge_give(&quick->room, (uint32_t)units);
    if (UNLIKELY(gauge_step_down(&quick->waits[list])))
        GAUGE_SET(quick->rounds, quick->rounds - 1);
    OPAQUE(block); /* or the compiler keeps the header's address as well */
    if (live)
        cell_mark(cell_of(block), (uint8_t)list);
    if (block == 0) /* callers then ask once only */
        __builtin_unreachable();
    return block;
}

/* Gives cells back until at most `keep` bytes wait. */
void quick_evict(struct quick *quick, size_t keep);

/* Bytes that may wait before memory is touched that no cell had. */
static inline size_t quick_spared(const struct quick *quick)
{
    return QUICK_LIMIT_LEAST << quick->spared;
}

/* Notes that a request of so many units found nothing. */
void quick_note_miss(struct quick *quick, size_t units);

/* The limit was judged by what was noted so far. */
static inline void quick_forget_misses(struct quick *quick)
{
    quick->seen -= quick->regret;
    quick->wanted = quick->regret = 0;
}

/* What is wrong with the newest cell of a list that cannot be handed out. Forgets that list: with
 * SNUG_MISUSE=warn its cells are lost. */
struct misuse quick_drop_list(struct quick *quick, size_t list);

/* Says how much may wait from now on, at most 1 GiB. */
void quick_set_limit(struct quick *quick, size_t limit);

/* NULL if every invariant holds, otherwise what does not. */
const char *quick_check(const struct quick *quick);

#endif
