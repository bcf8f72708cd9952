/*
 * How much of a class lies idle in its slabs, and what follows: whether any of it waits in
 * magazines, whether other threads may take it, and what serves a class that would grow, cells or a
 * larger class. See arena.h.
 *
 * Cost: a look at the counts of each arena. No lock is taken: all are hints.
 */
#include "magazine/arena_depots.h"
#include "options/options.h"

/* One part in: of a class whose objects share lines, so much may lie idle in the slabs of some
 * threads while others make new ones. */
enum { IDLE_SHARE = 8 };

/* The bytes of a class, if more than one part in `share` of them lies idle in slabs; 0: less. Not
 * where less than its part of the base is at stake. A slab's worth in each arena does not count: it
 * is what the arena takes from next. Read without locks: a hint. */
static size_t bytes_if_idle(const struct arenas *arenas, size_t class, size_t share)
{
    size_t total = 0, idle = 0, slab = arena_slab_bytes(arenas, class) / class_bytes(class);
    const struct arena_class *at;
    for (unsigned i = 0; (at = arena_class_next(arenas, &i, class)) != NULL;) {
        size_t free = bin_free_objects(&at->bin);
        total += __atomic_load_n(&at->bin.total_objects, __ATOMIC_RELAXED);
        idle += free - size_min(free, slab);
    }
    size_t bytes = total * class_bytes(class);
    return idle > total / share && bytes > options.dirty / CLASS_COUNT ? bytes : 0;
}

bool arenas_class_is_sparse(const struct arenas *arenas, size_t class)
{
    return bytes_if_idle(arenas, class, MOST_SHARE) != 0;
}

bool arenas_class_is_shared(const struct arenas *arenas, size_t class)
{
    return !class_shares_lines(class) || arenas_are_alone(arenas) ||
           bytes_if_idle(arenas, class, IDLE_SHARE) != 0;
}

/* ---- What serves a class instead of a slab more ---- */

/* The bytes of all cells that are no larger than small objects, read without locks: a hint. */
static size_t short_cells(const struct arenas *arenas)
{
    size_t units = 0;
    const struct cells *cells;
    for (unsigned i = 0; (cells = arena_cells_next(arenas, &i)) != NULL;)
        units += __atomic_load_n(&cells->short_units, __ATOMIC_RELAXED);
    return units * CELL_UNIT;
}

bool arenas_class_is_cold(struct arenas *arenas, size_t class)
{
    if (class_bytes(class) <= BYTES_SHORT)
        return false;
    uint8_t *count = &arenas->cold[class];
    /* relaxed: a little more or less than COLD_REQUESTS is as good */
    uint8_t seen = __atomic_load_n(count, __ATOMIC_RELAXED);
    if (seen >= COLD_REQUESTS)
        return false;
    bool fits = short_cells(arenas) < COLD_BYTES;
    __atomic_store_n(count, (uint8_t)(fits ? seen + 1 : COLD_REQUESTS), __ATOMIC_RELAXED);
    return fits;
}

/* Requests: after so many it is asked anew whether the lender still has objects to spare. */
enum { LOAN_TERM = 32 };

/* Requests: a class that found none that lends looks again after so many. */
enum { LOAN_PAUSE = 7 };

/* Bytes (table): when so many were borrowed, SLACK_SHARE slabs' worth, a class grows by a slab.
 * That is a loan. */
enum { LOAN_MOST = SLACK_SHARE * (8 << PAGE_SHIFT) };

/* Layout: the lender, how many requests are left of the loan, times this, and how many loans the
 * class has begun lately. */
enum { LOAN_LEFT = 256, LOAN_BEGUN = LOAN_LEFT << 13 };

_Static_assert((size_t)CLASS_COUNT < LOAN_LEFT &&
                   (size_t)LOAN_MOST / BORROW_LEAST < LOAN_BEGUN / LOAN_LEFT,
               "they fit");

/* The nearest class that is larger by one part in LENT_SHARE at most, and of which one in
 * IDLE_SHARE lies idle. If there is none, but most of two classes that are as near below, sizes
 * move up, and what this one leaves behind would be as much in the way of larger ones: then the
 * largest, which grows for it. 0: neither. Classes are evenly apart. `*bytes`: of all these. */
static uint32_t lender_find(const struct arenas *arenas, size_t class, size_t *bytes)
{
    uint32_t reach = (uint32_t)class / LENT_SHARE, lender = 0, below = 0;
    uint32_t last = (uint32_t)size_min(class + reach, CLASS_COUNT - 1);
    for (uint32_t near = (uint32_t)class - reach; near <= last; near++) {
        size_t idle = bytes_if_idle(arenas, near, near < class ? MOST_SHARE : IDLE_SHARE);
        if (idle == 0)
            continue;
        if (near == class)
            return 0;
        *bytes += idle;
        if (near < class)
            below++;
        else if (lender == 0)
            lender = near;
    }
    return lender == 0 && below > 1 ? last : lender;
}

/* Counts a loan of a class that has begun so many. False: it has borrowed as many bytes as those
 * have that lie idle near it, so it has the same again and again, or others grow for nothing. For
 * each CLASS_COUNT loans of any class the others may have one more again: that is little for those
 * which all borrow the same again, and enough for one whose turn comes once in a while. */
static bool loan_begin(struct arenas *arenas, uint32_t begun, size_t bytes)
{
    uint32_t all = __atomic_load_n(&arenas->loans, __ATOMIC_RELAXED);
    uint32_t *other = &arenas->lending[all % CLASS_COUNT];
    uint32_t others = __atomic_load_n(other, __ATOMIC_RELAXED);
    if (begun >= bytes / LOAN_MOST)
        return false;
    if (others >= LOAN_BEGUN)
        __atomic_store_n(other, others - LOAN_BEGUN, __ATOMIC_RELAXED);
    __atomic_store_n(&arenas->loans, all + 1, __ATOMIC_RELAXED);
    return true;
}

/* Relaxed, all: a few more or less than are due is as good. */
size_t arenas_class_lender(struct arenas *arenas, size_t class)
{
    const struct arena_class *own = &arena_for(arenas, class)->classes[class];
    /* acquire: pairs with bin_init. What is not in use yet grows first. */
    if (__atomic_load_n(&own->bin.page_heap, __ATOMIC_ACQUIRE) == NULL)
        return 0;
    if (bin_free_objects(&own->bin) != 0 || !depot_is_empty(&own->depot))
        return 0;
    uint32_t *loan = &arenas->lending[class], before = __atomic_load_n(loan, __ATOMIC_RELAXED);
    uint32_t lender = before % LOAN_LEFT, left = before % LOAN_BEGUN / LOAN_LEFT;
    uint32_t begun = before / LOAN_BEGUN;
    uint32_t next = left != 0 ? left - 1 : LOAN_MOST / (uint32_t)class_bytes(class);
    if (left % LOAN_TERM == 0) {
        size_t bytes = 0;
        lender = lender_find(arenas, class, &bytes);
        bool goes_on = lender != 0 && (left != 0 || loan_begin(arenas, begun, bytes));
        begun += goes_on && left == 0;
        lender = goes_on ? lender : 0;
        next = goes_on ? next : LOAN_PAUSE;
    }
    __atomic_store_n(loan, begun * LOAN_BEGUN + next * LOAN_LEFT + lender, __ATOMIC_RELAXED);
    return left == 0 ? 0 : lender; /* a slab of its own first: it may only take and free */
}
