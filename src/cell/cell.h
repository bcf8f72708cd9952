/*
 * Cells: medium objects, cut to their size from spans of 1 MiB by best fit.
 *
 * The idea (boundary tags): a header of 8 bytes stands before every cell, and a free cell repeats
 * its size in its last 8 bytes. So both neighbours of a cell are found by arithmetic, and a cell
 * that becomes free is joined with free neighbours at once: never do two free cells lie side by
 * side. Free cells stand in lists by size, one list for each multiple of 16 bytes that a request
 * can have, under a bitmap of two levels; the smallest cell that is large enough, the best fit, is
 * found by looking at a few words, however many cells are free.
 *
 * The rest of the newest span, the top, is in no list. It is used when no free cell fits, as it
 * would be in its list, being the largest; outside of the lists it does not have to change list at
 * each turn, and the table of lists is touched only where sizes are really freed.
 *
 * A span in which no cell is in use goes back, but for the last, which is the top then: the next
 * block would need one at once. It goes when it stays idle (cell_purge.c).
 *
 * A remainder too small to serve any request is not split off: it would be joined again when its
 * neighbour is freed, and until then it is of no use to anybody.
 *
 * The header carries a check value made of a secret, its address, the size and the state. A second
 * free, a pointer into the middle of a cell and a header that an overflow has written over are
 * recognised before anything is changed.
 *
 * Cost: 8 bytes per cell; taking and freeing O(1) under one lock per arena.
 * Source: D. Knuth, The Art of Computer Programming 1, 2.5 (boundary tags); M. Masmano et al.,
 * "TLSF" (2004) for the two levels.
 */
#ifndef SNUG_CELL_CELL_H
#define SNUG_CELL_CELL_H

#include "base/bits.h"
#include "meta/extent.h"
#include "meta/misuse.h"
#include "meta/page_map.h"
#include "pageheap/page_heap.h"

/* Layout: blocks are aligned to a unit, and a header lies before each. */
#define CELL_UNIT ((size_t)16)
#define CELL_HEADER ((size_t)8)

/* Bytes: in a shorter span the rest at its end, in which no cell fits, is a larger part. */
#define CELL_SPAN_BYTES (1024 * KIB)

/* Layout: a larger block takes whole pages. */
#define CELL_MOST (LARGE_LEAST - CELL_HEADER)

/* Layout: of the lists by size. */
enum {
    CELL_UNITS = (int)(CELL_SPAN_BYTES / CELL_UNIT), /* sizes are below this many units */
    CELL_LEAST_UNITS = 2,                            /* room for header, links and trailer */

    /* Free cells below 128 KiB, as large as a request can be, have a list for each size; larger
     * ones, any of which serves any request, 32 to a doubling. */
    CELL_EXACT_LOG = 13,
    CELL_EXACT_UNITS = 1 << CELL_EXACT_LOG,
    CELL_STEP_LOG = 5,
    CELL_LISTS = CELL_EXACT_UNITS + (3 << CELL_STEP_LOG),
    CELL_WORDS = CELL_LISTS / 64 + 1
};

/* Layout: live cells are sorted by numbers, so many to a doubling of their units and the offset:
 * with it short cells have few numbers, two units apart, and all of them fit into a byte. */
enum {
    CELL_SORT_OFFSET = 48,   /* units */
    CELL_SORT_FIRST_LOG = 6, /* of the units of BYTES_SHORT, and the offset */
    CELL_SORT_STEP_LOG = 5,  /* log of the numbers in a doubling */
    CELL_SORTS = (7 << CELL_SORT_STEP_LOG) + 1
};

/* Layout: slabs serve what cells of fewer units serve, up to 1 KiB, too. */
enum { CELL_SHORT_UNITS = 64 };

/* Layout: the state that a header says. The state of a live cell is the number of its sort, or
 * CELL_LIVE if it has none: so free does not have to make that number of its size. CELL_END is the
 * state of a span's last header, which has no units. */
enum cell_state { CELL_LIVE = CELL_SORTS, CELL_CACHED = 0xe9, CELL_FREE = 0xf6, CELL_END = 0xff };

/* The header, 8 bytes before the block. Each field is a memory location of its own: `prev_free` may
 * be changed under the lock only; the rest by the owner of the cell, or under the lock when it is
 * free. */
struct cell {
    uint16_t units; /* of header and block; the next cell is that far away */
    uint8_t state;  /* enum cell_state; of a live cell cell_sort_of(), or CELL_LIVE */
    uint8_t prev_free;
    uint32_t check; /* cell_check_value() of the above but prev_free */
};

_Static_assert(sizeof(struct cell) == CELL_HEADER, "see cell_of");

struct free_links;

struct cells {
    struct lock lock;
    uint32_t split_least; /* units, at least 2: smaller remainders are not split off */
    struct page_heap *page_heap;
    uint32_t looks;             /* at what is kept: at each tick, and in a free (cell_purge.c) */
    size_t look_step;           /* when that many pages, the base of the heap, were freed, */
    size_t kept_least;          /* counted from the least of cells_kept_pages since the last */
    size_t kept_told;           /* what the page heap was told of them, */
    size_t idle_told;           /* and of all free pages, gone ones too, */
    size_t loose_told;          /* and of loose ones */
    size_t aged_units;          /* == sum over the lists of CELL_AGED_UNITS and more, */
    size_t gone_pages;          /* and of cell_gone over the same cells */
    struct retention retention; /* how many free pages are worth keeping */
    size_t span_count;
    size_t taken;       /* cells, ever */
    size_t taken_units; /* and the units in them */
    size_t given;       /* back; taken - given are live, or in magazines */
    size_t free_units;  /* == sum over the lists, and the units of top */
    size_t short_units; /* == sum over the cells in use for which cell_is_short() */
    size_t loose_units; /* == sum over the cells in use of cell_loose_units() */
    struct cell *top;   /* the free rest of the newest span, in no list; NULL if there is none */
    char *fresh;        /* from here on the top was in no block since the span was taken, */
    bool fresh_is_zero; /* and is zero, or was in a block of another span */
    uint64_t summary[CELL_WORDS / 64 + 1]; /* bit w == bitmap[w] is not 0 */
    uint64_t bitmap[CELL_WORDS];           /* bit l == free[l] is not empty */
    struct free_links **free;              /* CELL_LISTS lists; see cell_list_of */
};

/* `cells` must be zero, but may have its table of lists already. False: no memory for that. */
bool cells_init(struct cells *cells, struct page_heap *page_heap);

/* Where a block may come from: a free cell, or of the top what some block has had before; the top
 * at all; or a new span as well. */
enum cells_reach { CELLS_USED, CELLS_HELD, CELLS_NEW };

/* A block of at least `bytes` (at most CELL_MOST) at a multiple of `alignment` (a power of two, at
 * most PAGE_BYTES), or NULL: there is none within that `reach`. If free cells turn out to be
 * damaged, says so in `*misuse`, which is left as it is otherwise, and the block is NULL. Behind
 * its first `*dirty` bytes the block is known to be zero. SIZE_MAX: nothing is known of it;
 * otherwise what may not be zero was in use not long ago. */
void *cells_alloc(struct cells *cells, size_t bytes, size_t alignment, enum cells_reach reach,
                  struct misuse *misuse, size_t *dirty);

/* The same without a new span. NULL: there is none, or a free cell is damaged; cells_alloc tells.
 */
void *cells_alloc_near(struct cells *cells, size_t bytes, size_t alignment, enum cells_reach reach,
                       size_t *dirty);

/* Gives blocks back, which must be in the state CELL_CACHED, of whatever cells. What is wrong is
 * reported as misuse of free when no lock is held. */
void cells_free(const uintptr_t *blocks, size_t count);

/* Makes a live block larger or smaller in place, for `bytes` or, if there is room, up to `wish` (at
 * most CELL_MOST). False: it cannot be, and is as before. */
bool cell_resize(uintptr_t block, size_t bytes, size_t wish);

/* What is wrong with `block`, an address in a cell span: MISUSE_NONE for a live one. Looks at the
 * header only, unless that is wrong. (cell_inspect.c) */
struct misuse cell_misuse(uintptr_t block);

/* The cell around an address whose page is in a cell span. False: none is known. (cell_extent.c) */
bool cell_extent(uintptr_t address, struct block_extent *extent);

/* Gives back the whole pages inside of large free cells that have been free for two looks or more,
 * or, with `all`, of all. Returns the bytes. (cell_purge.c) */
size_t cells_purge(struct cells *cells, bool all);

/* Part of the heap's tick: ends the epoch if it is over, and looks at what is kept. (cell_purge.c)
 */
void cells_tick(struct cells *cells);

/* Call when `fresh` pages that no slab had before were taken since it was called last: as many of
 * the free ones that nothing needed meanwhile go, but for what is wanted. Takes the lock. */
void cells_end_epoch(struct cells *cells, size_t fresh);

/* Calls `visit` with every live cell of a span until it returns false; false if it did. Nobody else
 * may use the heap meanwhile. (cell_visit.c) */
bool cells_visit(const struct span *span, bool (*visit)(void *context, void *block, size_t bytes),
                 void *context);

/* Forgets all cells; for a heap that is cleared, whose spans go by other means. */
void cells_clear(struct cells *cells);

/* What is wrong with a free cell that is the top, or in a list: its header, or its links. The lock
 * must be held. (this and the next: cell_inspect.c) */
struct misuse cell_free_misuse(const struct cells *cells, struct cell *cell);

/* Asks that of the top and of up to `most` cells of the lists; says what is wrong with one, and
 * returns how many it looked at. */
size_t cells_inspect(struct cells *cells, size_t most, struct misuse *misuse);

/* cell_check.c */
const char *cells_check(struct cells *cells);

/* Bytes of cells that are not free, read without the lock: a hint. */
static inline size_t cells_used_bytes(const struct cells *cells)
{
    size_t page_heap = __atomic_load_n(&cells->span_count, __ATOMIC_RELAXED) * CELL_SPAN_BYTES;
    size_t idle = __atomic_load_n(&cells->free_units, __ATOMIC_RELAXED) * CELL_UNIT;
    return page_heap > idle ? page_heap - idle : 0;
}

/* Free pages that are in memory, and need not be. The top, at most a span, does not count. The lock
 * must be held. */
static inline size_t cells_kept_pages(const struct cells *cells)
{
    return (cells->aged_units * CELL_UNIT >> PAGE_SHIFT) - cells->gone_pages;
}

/* ---- One block, by its owner; no lock ---- */

static inline struct cell *cell_of(uintptr_t block)
{
    return (struct cell *)block - 1;
}

/* A header before an address that need not be aligned. */
typedef const struct cell cell_guess __attribute__((aligned(1)));

/* Whether a header can be read before an address in a span of cells: at the beginning of a page it
 * may lie outside of the span. A processor that reads words at any address may read it anywhere
 * else: the check value tells that no cell begins there. */
static ALWAYS_INLINE bool cell_may_begin(uintptr_t address)
{
#if defined(__x86_64__) || defined(__aarch64__)
    return address % PAGE_BYTES >= CELL_HEADER;
#else
    return address % CELL_UNIT == 0 && address % PAGE_BYTES != 0;
#endif
}

static inline size_t cell_bytes(uintptr_t block)
{
    return cell_of(block)->units * CELL_UNIT - CELL_HEADER;
}

/* The units of a cell whose block has `bytes` bytes. */
static inline size_t cell_units(size_t bytes)
{
    return (bytes + CELL_HEADER + CELL_UNIT - 1) / CELL_UNIT;
}

/* The first two words of a block, which belong to the cache that a cell waits in. */
static inline uint64_t *cell_link(const struct cell *cell)
{
    return (uint64_t *)((uintptr_t)cell + CELL_HEADER);
}

/* Layout: the address of a block is that far up in a word, over 16 bits for its units. */
enum { CELL_WORD_SHIFT = 16 };

/* A cell in one word: its block, and its units. */
static inline uint64_t cell_word(uintptr_t block, size_t units)
{
    return ((uint64_t)block << CELL_WORD_SHIFT) + units;
}

/* The hash of a cell_word(), of which check values for all states are made. */
static inline uint64_t cell_hash(uint64_t word)
{
    return (word * page_map.key) >> 32;
}

/* The number by which a live cell of so many units is sorted; CELL_SORTS or more: it has none. */
static ALWAYS_INLINE size_t cell_sort_of(size_t units)
{
    return bit_part((uint32_t)units + CELL_SORT_OFFSET, CELL_SORT_STEP_LOG) -
           ((CELL_SORT_FIRST_LOG + 127) << CELL_SORT_STEP_LOG);
}

/* Whether slabs serve blocks of this size, too. */
static inline bool cell_is_short(size_t units)
{
    return units < CELL_SHORT_UNITS;
}

/* Units of a cell in which there may be pages that nobody ever touches, if the program writes to
 * the first byte of its block only. */
static inline size_t cell_loose_units(size_t units)
{
    return size_max(units, PAGE_BYTES / CELL_UNIT) - PAGE_BYTES / CELL_UNIT;
}

static inline bool cell_state_is_live(uint8_t state)
{
    return state <= CELL_LIVE;
}

/* The state as the header of a cell of so many units has it. */
static inline uint8_t cell_state_for(size_t units, enum cell_state state)
{
    if (state != CELL_LIVE)
        return (uint8_t)state;
    size_t sort = cell_sort_of(units);
    return (uint8_t)(sort < CELL_SORTS ? sort : CELL_LIVE);
}

/* The check value that belongs to these units and this state. A cell that waits has that of a live
 * one: so neither malloc nor free has to make one. The upper bits tell cells with a sort from
 * others: so free may take the state of a sound header for a sort. */
static inline uint32_t cell_check_value(const struct cell *cell, size_t units, uint8_t state)
{
    if (state == CELL_CACHED)
        state = cell_state_for(units, CELL_LIVE);
    uint32_t hash = (uint32_t)cell_hash(cell_word((uintptr_t)cell + CELL_HEADER, units));
    return state < CELL_SORTS ? hash ^ state : ~(hash ^ state);
}

static inline bool cell_is_sound(const struct cell *cell)
{
    return cell->check == cell_check_value(cell, cell->units, cell->state);
}

/* Whether a cell is a live one, with the header that it should have. */
static inline bool cell_is_live(const struct cell *cell)
{
    return cell_state_is_live(cell->state) && cell_is_sound(cell);
}

/* The next at the beginning of a page. */
bool cell_is_live_at_page(uintptr_t address);

/* Whether the block of a live cell begins at an address in a span of cells, with the header that
 * it should have. At the beginning of a page that may lie outside of the span. */
static inline bool cell_is_live_at(uintptr_t address)
{
    if (UNLIKELY(address % PAGE_BYTES == 0))
        return cell_is_live_at_page(address);
    return LIKELY(address % CELL_UNIT == 0) && LIKELY(cell_is_live(cell_of(address)));
}

/* Makes a live cell one that waits, or the other way round, by its owner, without a lock: `state`
 * as cell_state_for() has it. relaxed: neighbours' threads read the state under the lock, to see
 * whether it is CELL_FREE, which only comes and goes under the lock. */
static inline void cell_mark(struct cell *cell, uint8_t state)
{
    __atomic_store_n(&cell->state, state, __ATOMIC_RELAXED);
}

static inline void cell_set(struct cell *cell, size_t units, enum cell_state state)
{
    uint8_t said = cell_state_for(units, state);
    cell->units = (uint16_t)units;
    cell_mark(cell, said);
    /* relaxed: as the state */
    __atomic_store_n(&cell->check, cell_check_value(cell, units, said), __ATOMIC_RELAXED);
}

#endif
