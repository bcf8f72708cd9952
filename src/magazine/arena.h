/*
 * Arenas: for each of a few groups of processors, the bins and depots of all classes.
 *
 * The idea: which arena a thread takes from is decided by the processor it runs on at that moment,
 * so memory grows with processors, not with threads, and two processors seldom want the same lock.
 * A process with one thread uses one arena whatever processor it is moved to. Before an arena
 * takes fresh pages it takes what the other arenas can spare, but for cells as long as the heap is
 * hardly larger than what was in use of late: then the memory was needed anyway.
 *
 * Small objects go by thread instead: see arena_place.h.
 *
 * The depot: full magazines wait here for any thread, unless small objects lie in no order. Handing
 * one over or taking one is O(1), so threads that only free and threads that only allocate exchange
 * objects without touching slabs.
 * A depot is bounded in bytes; all depots of an arena together have a share of the heap's base.
 * What nobody took through an epoch goes back to the slabs: at a tick of the heap, or when fresh
 * memory is about to be used, which is when idle objects cost.
 *
 * A thread that finds neither a full magazine nor a free object makes more than one slab: it fills
 * a few magazines for the depot as well, as many as make a 64th of what the class has, so that the
 * next ones that run dry find them. That touches memory before it is asked for, but no more than
 * that part of it; small classes get none.
 *
 * A class is sparse when most of its objects lie free in slabs, as after a peak. Then a few objects
 * in a depot or a magazine can keep many empty slabs from going, one each; so nothing waits there,
 * all goes back to where it came from.
 */
#ifndef SNUG_MAGAZINE_ARENA_H
#define SNUG_MAGAZINE_ARENA_H

#include "magazine/arena_place.h"

void arenas_init(struct arenas *arenas, struct page_heap *page_heap, struct arena *first,
                 unsigned count);

/* Takes up to `count` objects of a class: from its arena, from others that can spare some, or from
 * fresh memory, in this order. 0: there is no memory. */
size_t arenas_refill(struct arenas *arenas, size_t class, uintptr_t *objects, size_t count);

/* An object of the class or of a larger one, of those that are free; for a compact heap that has no
 * room for another slab. 0: there is none. */
uintptr_t arenas_alloc_larger(struct arenas *arenas, size_t class);

/* A full magazine of the class, or NULL. `empty` is as in depot_get. */
struct magazine *arenas_get_full(struct arenas *arenas, size_t class, struct magazine **empty);

/* Puts a full magazine into a depot. `empty` is as in depot_put. False: the depot is full, or what
 * the magazine has belongs in the slabs, and it is still the caller's. */
bool arenas_put_full(struct arenas *arenas, size_t class, struct magazine *magazine,
                     struct magazine **empty);

/* Whether most of a class is free. Read without locks: a hint. */
bool arenas_class_is_sparse(const struct arenas *arenas, size_t class);

/* Gives what waits in the depots of a class back to the slabs. */
void arenas_empty_depots(struct arenas *arenas, size_t class);

/* A program uses many sizes seldom, or for a block or two at a time. A page for each of them makes
 * small programs large. So the first requests of classes above BYTES_SHORT, of which a page holds
 * few objects, are cells, as long as all such cells together hold less than those pages. */

/* Requests: so many of a class may be cells. A new cell costs some 1,000 instructions more than an
 * object, one that has just been freed some 80. */
enum { COLD_REQUESTS = 128 };

/* Bytes (machine): a page for each of these classes. */
#define COLD_BYTES ((SMALL_MOST - BYTES_SHORT) / BYTES_STEP * PAGE_BYTES)

/* Whether a class, of no compact heap, is still so little asked for that a cell, packed among
 * others, serves it better than the first page of a slab of its own. Counts the request. */
bool arenas_class_is_cold(struct arenas *arenas, size_t class);

/* A program whose sizes move on leaves slabs behind in which a few objects live: 12 MiB of each
 * size from 1,000 down to 300 B, of which every twentieth stayed, had 560 MiB. Where classes are
 * coarse the next size fills such holes. So a class that would grow borrows objects of one that is
 * a little larger as long as much of that lies idle, or that grows for it. A borrowed object is one
 * of the lender's in all else, and is freed as such. That makes each of these requests a slow one;
 * so for each LOAN_MOST that is borrowed the class gets a slab of its own: what it only takes and
 * frees soon has its own objects then. And it borrows no more than those have that lie idle: who
 * borrows more has the same again and again, and had better make it. */

/* One part in: so much larger may borrowed objects be. It is what the coarsest classes of other
 * allocators are apart. */
enum { LENT_SHARE = 4 };

/* Bytes: below, the next class is larger by more. */
enum { BORROW_LEAST = LENT_SHARE * BYTES_STEP };

/* Whether any object may be larger than its size asked for by that. */
static inline bool arenas_have_lent(const struct arenas *arenas)
{
    /* relaxed: who frees a borrowed object has it from who took it */
    return __atomic_load_n(&arenas->loans, __ATOMIC_RELAXED) != 0;
}

/* The class that is to serve a request of a class which has nothing free and would grow; 0: it
 * grows. Counts the request. */
size_t arenas_class_lender(struct arenas *arenas, size_t class);

/* A medium block, as cells_alloc: from the arena of the processor, from others that have a lot
 * free unless the cells may grow, or with CELLS_NEW from a new span, in this order. */
void *arenas_alloc_cell(struct arenas *arenas, size_t bytes, size_t alignment,
                        enum cells_reach reach, struct misuse *misuse, size_t *dirty);

/* A medium block at MIN_ALIGN from the cells of the processor alone, as cells_alloc_near; NULL: ask
 * arenas_alloc_cell. */
static ALWAYS_INLINE void *arenas_alloc_cell_here(const struct arenas *arenas, size_t bytes,
                                                  enum cells_reach reach, size_t *dirty)
{
    struct cells *cells = arena_cells_if_used(arenas, arena_index_here(arenas));
    return LIKELY(cells != NULL) ? cells_alloc_near(cells, bytes, MIN_ALIGN, reach, dirty) : NULL;
}

/* Whether something waits in caches of threads that were not forked along (orphans.c). */
static inline bool arenas_have_orphans(const struct arenas *arenas)
{
    /* relaxed: a hint */
    return __atomic_load_n(&arenas->end_orphans, __ATOMIC_RELAXED) != NULL;
}

/* Takes that back if it was not done; true if so. */
static inline bool arenas_end_orphans_once(struct arenas *arenas)
{
    /* relaxed: who comes too late finds nothing to do */
    void (*end)(struct arenas *) = __atomic_load_n(&arenas->end_orphans, __ATOMIC_RELAXED);
    if (LIKELY(end == NULL))
        return false;
    end(arenas);
    return true;
}

/* Their part of the heap's tick: cells and depots give back what nobody needs. */
void arenas_tick(struct arenas *arenas);

/* Empties all depots into the slabs, gives empty slabs back, and the pages inside of free
 * cells. Returns the bytes of the latter. */
size_t arenas_trim(struct arenas *arenas);

/* ---- Statistics (arena_totals.c); no locks ---- */

/* Numbers of objects: `free` in slabs, `waiting` in depots, `total` in all. */
struct arena_totals {
    size_t slabs;
    size_t total;
    size_t free;
    size_t waiting;
};

/* Bytes of all cell spans, and of what is not free in them, read without locks: a hint. */
struct cells_use {
    size_t total, used;
};

struct cells_use arenas_cells_use(const struct arenas *arenas);

/* The totals of one class over all arenas. */
struct arena_totals arenas_totals(struct peek *peek, const struct arenas *arenas, size_t class);

/* Bytes of all cell spans, and of the free cells in them; numbers of cells taken and given back. */
struct cell_totals {
    size_t bytes;
    size_t free;
    size_t gone; /* of it, without memory */
    size_t taken;
    size_t given;
    size_t taken_bytes; /* ever */
};

struct cell_totals arenas_cell_totals(struct peek *peek, const struct arenas *arenas);

/* Forgets all slabs, cells and what waits in depots; for a heap that is cleared. Nobody else may
 * use it meanwhile. */
void arenas_clear(struct arenas *arenas);

/* Looks at some of what is free for the last time, as the process ends, and reports what was
 * written to. (inspect.c) */
void arenas_inspect(struct arenas *arenas);

const char *arenas_check(struct arenas *arenas);

/* Calls `act` with every lock in use of one rank: RANK_DEPOT, RANK_BIN or RANK_CELLS. While
 * arenas->lock is held no others come into use. */
void arenas_each_lock_of(struct arenas *arenas, enum lock_rank rank,
                         void (*act)(struct lock *lock));

#endif
