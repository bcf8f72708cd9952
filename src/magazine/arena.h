/*
 * Arenas: for each of a few groups of processors, the bins and depots of all classes.
 *
 * The idea: which arena a thread takes from is decided by the processor it runs on at that moment,
 * so memory grows with processors, not with threads, and two processors seldom want the same lock.
 * A process with one thread uses one arena whatever processor it is moved to. Before an arena
 * takes fresh pages it takes what the other arenas can spare.
 *
 * The depot: full magazines wait here for any thread. Handing one over or taking one is O(1), so
 * threads that only free and threads that only allocate exchange objects without touching slabs.
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

#include "cell/cell.h"
#include "magazine/depot.h"
#include "platform/thread.h"
#include "slab/slab.h"

/* Arenas (table): with more processors than this several share one, which is still seldom waited
 * for. */
enum { ARENAS_MOST = 64 };

/* Threads: so many for each arena may hold as much as one may, and have caches soon: no more
 * threads run at a time than there are processors, each with an arena. */
enum { THREADS_OF_ARENA = 8 };

/* The cache of a processor (shared.h), in arenas that share. */
struct shared {
    uintptr_t holder;    /* the thread that has taken it; 0: none */
    struct cache *cache; /* NULL until it is needed */
    size_t held_bytes;   /* == cache->held_bytes */
    bool used;           /* since the last tick; written by holders */
};

struct arena {
    uint64_t clock; /* of the depots: an epoch more at each tick of the heap, and when so many, */
    size_t grown;   /* bytes of slabs, were made since the last */
    size_t waiting; /* == sum over the depots of objects * class_bytes */
    struct arena_class {
        struct bin bin;
        struct depot depot;
    } classes[CLASS_COUNT];
    struct cells cells;
    _Alignas(64) struct shared shared;
};

struct arenas {
    /* What every slow path reads, and hardly anybody writes. */
    struct page_heap *page_heap;
    unsigned count;
    uint32_t threads; /* with a cache of their own */
    size_t held_most; /* that the magazines of one thread may hold; SIZE_MAX: as the option says */
    bool shares;      /* threads without a cache have those of processors */
    uint8_t cold[CLASS_COUNT];       /* requests of a class so far, until it is warm */
    struct arena *list[ARENAS_MOST]; /* NULL until first used */
    /* In a child of fork: takes back what waits in caches of threads that were not forked with it;
     * NULL: there is nothing. No lock may be held. */
    void (*end_orphans)(struct arenas *arenas);

    _Alignas(64) struct lock lock; /* making a class ready for use */
    size_t magazine_bytes;         /* that all magazines of threads may hold */
    struct cache *caches;          /* all that were ever made; only ever grows, and at its head */
    struct cache *idle_caches;     /* of these, those without a thread */
};

void arenas_init(struct arenas *arenas, struct page_heap *page_heap, struct arena *first,
                 unsigned count);

static inline struct arena *arena_at(const struct arenas *arenas, unsigned index)
{
    /* acquire: pairs with arena_new */
    return __atomic_load_n(&arenas->list[index], __ATOMIC_ACQUIRE);
}

/* Makes the arena of that index. */
struct arena *arena_new(struct arenas *arenas, unsigned index);

/* The arena of the processor that the calling thread runs on. */
static inline struct arena *arena_here(struct arenas *arenas)
{
    /* relaxed: a hint, off by a thread for a moment at most */
    if (arenas->count == 1 || __atomic_load_n(&arenas->threads, __ATOMIC_RELAXED) <= 1)
        return arena_at(arenas, 0);
    unsigned index = os_cpu() % arenas->count;
    struct arena *arena = arena_at(arenas, index);
    return LIKELY(arena != NULL) ? arena : arena_new(arenas, index);
}

/* The class in arena `index` if it is in use there. */
static inline struct arena_class *arena_class_if_used(const struct arenas *arenas, unsigned index,
                                                      size_t class)
{
    struct arena *arena = arena_at(arenas, index);
    if (arena == NULL)
        return NULL;
    struct arena_class *at = &arena->classes[class];
    return __atomic_load_n(&at->bin.page_heap, __ATOMIC_ACQUIRE) == NULL ? NULL : at;
}

/* The cells of arena `index` if they are in use. */
static inline struct cells *arena_cells_if_used(const struct arenas *arenas, unsigned index)
{
    struct arena *arena = arena_at(arenas, index);
    if (arena == NULL || arenas->page_heap->compact)
        return NULL;
    /* acquire: pairs with cells_init */
    return __atomic_load_n(&arena->cells.page_heap, __ATOMIC_ACQUIRE) == NULL ? NULL
                                                                              : &arena->cells;
}

/* The class in the first arena from `*index` on in which it is in use, and `*index` is the next
 * arena; NULL: there is no more. */
static inline struct arena_class *arena_class_next(const struct arenas *arenas, unsigned *index,
                                                   size_t class)
{
    struct arena_class *at = NULL;
    while (at == NULL && *index < arenas->count)
        at = arena_class_if_used(arenas, (*index)++, class);
    return at;
}

/* The same of cells. */
static inline struct cells *arena_cells_next(const struct arenas *arenas, unsigned *index)
{
    struct cells *cells = NULL;
    while (cells == NULL && *index < arenas->count)
        cells = arena_cells_if_used(arenas, (*index)++);
    return cells;
}

/* Takes up to `count` objects of a class: from the arena of the processor, from others that can
 * spare some, or from fresh memory, in this order. 0: there is no memory. */
size_t arenas_refill(struct arenas *arenas, size_t class, uintptr_t *objects, size_t count);

/* An object of the class or of a larger one, of those that are free; for a compact heap that has no
 * room for another slab. 0: there is none. */
uintptr_t arenas_alloc_larger(struct arenas *arenas, size_t class);

/* A full magazine of the class, or NULL. `empty` is as in depot_get. */
struct magazine *arenas_get_full(struct arenas *arenas, size_t class, struct magazine **empty);

/* Puts a full magazine into a depot. `empty` is as in depot_put. False: the depot is full, and the
 * magazine is still the caller's. */
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

/* The bytes of all cells that are no larger than small objects, read without locks: a hint. */
size_t arenas_short_cells(const struct arenas *arenas);

/* Whether a class is still so little asked for that a cell, packed among others, serves it better
 * than the first page of a slab of its own. Counts the request. */
static inline bool arenas_class_is_cold(struct arenas *arenas, size_t class)
{
    if (class_bytes(class) <= BYTES_SHORT || arenas->page_heap->compact)
        return false;
    uint8_t *count = &arenas->cold[class];
    /* relaxed: a little more or less than COLD_REQUESTS is as good */
    uint8_t seen = __atomic_load_n(count, __ATOMIC_RELAXED);
    if (seen >= COLD_REQUESTS)
        return false;
    bool fits = arenas_short_cells(arenas) < COLD_BYTES;
    __atomic_store_n(count, (uint8_t)(fits ? seen + 1 : COLD_REQUESTS), __ATOMIC_RELAXED);
    return fits;
}

/* A medium block, as cells_alloc: from the arena of the processor, from others that have a lot
 * free, or from a new span, in this order. */
void *arenas_alloc_cell(struct arenas *arenas, size_t bytes, size_t alignment,
                        struct misuse *misuse, size_t *dirty);

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
