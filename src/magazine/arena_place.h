/*
 * What arenas are made of, and which of them a thread takes from: see arena.h.
 *
 * Homes: objects that share cache lines go by thread instead. If they went by processor, threads
 * that are moved about would mix theirs, and from then on two processors would take the lines from
 * each other at each use: threads that do nothing but fill and clear lists of their own took up to
 * five times the time of one that does the same work. So a thread has a home among the arenas, one
 * of its own as long as there are some, and its small objects come from the slabs and the depot
 * there. Others take from that depot only what flows one way, from threads that take to others that
 * free, and from those slabs only where much lies idle. Else slabs change hands when they are
 * empty.
 *
 * Cost: one arena for each thread that has small objects, a page at first, and pages of slabs for
 * each of their sizes. So only malloc's heap has homes: a program may have many others, each with
 * little.
 */
#ifndef SNUG_MAGAZINE_ARENA_PLACE_H
#define SNUG_MAGAZINE_ARENA_PLACE_H

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
    unsigned count;   /* of those that go by processor, the first of the list */
    unsigned end;     /* from here on none was ever used */
    uint32_t threads; /* with a cache of their own */
    size_t held_most; /* that the magazines of one thread may hold; SIZE_MAX: as the option says */
    bool shares;      /* threads without a cache have those of processors */
    bool homes;       /* small objects go by thread */
    uint8_t cold[CLASS_COUNT];       /* requests of a class so far, until it is warm */
    struct arena *list[ARENAS_MOST]; /* NULL until first used */
    /* In a child of fork: takes back what waits in caches of threads that were not forked with it;
     * NULL: there is nothing. No lock may be held. */
    void (*end_orphans)(struct arenas *arenas);
    struct cache *caches; /* all that were ever made; only ever grows, and at its head */

    _Alignas(64) struct lock lock; /* making a class ready for use */
    unsigned turn;                 /* whose depots are looked at next beside those of who grows */
    size_t magazine_bytes;         /* that all magazines of threads may hold */
    size_t moved;                  /* by all caches, in steps of MOVED_COUNTED */
    struct cache *idle_caches;     /* of all, those without a thread */
    uint32_t lending[CLASS_COUNT]; /* what a class borrows (arena_idle.c) */
    uint32_t loans;                /* how many were ever begun */
    size_t most;                   /* bytes that were in use of late (cells_may_grow), */
    uint64_t most_at;              /* and when; both atomic, hints */
};

static inline struct arena *arena_at(const struct arenas *arenas, unsigned index)
{
    /* acquire: pairs with arena_new */
    return __atomic_load_n(&arenas->list[index], __ATOMIC_ACQUIRE);
}

/* Makes the arena of that index. */
struct arena *arena_new(struct arenas *arenas, unsigned index);

/* The arena of that index, made if this is its first use. */
static inline struct arena *arena_made(struct arenas *arenas, unsigned index)
{
    struct arena *arena = arena_at(arenas, index);
    return LIKELY(arena != NULL) ? arena : arena_new(arenas, index);
}

/* Whether there is but one thread with a cache; then the first arena serves it alone. */
static ALWAYS_INLINE bool arenas_are_alone(const struct arenas *arenas)
{
    /* relaxed: a hint, off by a thread for a moment at most */
    return arenas->count == 1 || __atomic_load_n(&arenas->threads, __ATOMIC_RELAXED) <= 1;
}

/* The arena of the processor that the calling thread runs on. */
static ALWAYS_INLINE unsigned arena_index_here(const struct arenas *arenas)
{
    return arenas_are_alone(arenas) ? 0 : os_cpu() % arenas->count;
}

static inline struct arena *arena_here(struct arenas *arenas)
{
    return arena_made(arenas, arena_index_here(arenas));
}

/* The calling thread's home, its index plus 1; 0: it has none, and goes by processor. */
extern INTERNAL __thread uint32_t arena_home __attribute__((tls_model("initial-exec")));

/* Gives the calling thread a home, where the fewest have theirs, if it has none yet. Of each of so
 * many processors there are THREADS_OF_ARENA. */
void arena_home_choose(unsigned processors);

/* The thread ends. */
void arena_home_leave(void);

/* In a child of fork: the homes of threads that it does not have are free. */
void arena_home_keep_own(void);

/* Bytes (machine): most objects that are smaller lie in a cache line with another. */
enum { LINE_SHARED_BELOW = 128 };

static ALWAYS_INLINE bool class_shares_lines(size_t class)
{
    return class_size(class) < LINE_SHARED_BELOW;
}

/* The arena that objects of a class are taken from, and wait in: not for a lone thread. */
struct arena *arena_for_many(struct arenas *arenas, size_t class);

static ALWAYS_INLINE struct arena *arena_for(struct arenas *arenas, size_t class)
{
    return arenas_are_alone(arenas) ? arena_at(arenas, 0) : arena_for_many(arenas, class);
}

/* Makes a class of an arena ready. */
void arena_class_make(struct arenas *arenas, struct arena *arena, size_t class);

/* The bin and depot of a class, made ready if this is their first use. */
static inline struct arena_class *arena_class(struct arenas *arenas, struct arena *arena,
                                              size_t class)
{
    struct arena_class *at = &arena->classes[class];
    /* acquire: pairs with bin_init */
    if (UNLIKELY(__atomic_load_n(&at->bin.page_heap, __ATOMIC_ACQUIRE) == NULL))
        arena_class_make(arenas, arena, class);
    return at;
}

/* How many of the list are in use at most. */
static inline unsigned arenas_end(const struct arenas *arenas)
{
    return __atomic_load_n(&arenas->end, __ATOMIC_RELAXED); /* an arena is only looked for there */
}

/* The same of those that go by processor. */
static inline unsigned arenas_end_of_processors(const struct arenas *arenas)
{
    unsigned end = arenas_end(arenas);
    return end < arenas->count ? end : arenas->count;
}

/* The same of those that have objects of a class. */
static inline unsigned arenas_end_of_class(const struct arenas *arenas, size_t class)
{
    return class_shares_lines(class) ? arenas_end(arenas) : arenas_end_of_processors(arenas);
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

/* The cells of an arena if they are in use; a compact heap's arena ends before them. */
static inline struct cells *arena_cells_of(const struct arenas *arenas, struct arena *arena)
{
    if (arena == NULL || arenas->page_heap->compact)
        return NULL;
    /* acquire: pairs with cells_init */
    return __atomic_load_n(&arena->cells.page_heap, __ATOMIC_ACQUIRE) == NULL ? NULL
                                                                              : &arena->cells;
}

/* The same of arena `index`. */
static inline struct cells *arena_cells_if_used(const struct arenas *arenas, unsigned index)
{
    return arena_cells_of(arenas, arena_at(arenas, index));
}

/* The class in the first arena from `*index` on in which it is in use, and `*index` is the next
 * arena; NULL: there is no more. */
static inline struct arena_class *arena_class_next(const struct arenas *arenas, unsigned *index,
                                                   size_t class)
{
    struct arena_class *at = NULL;
    while (at == NULL && *index < arenas_end_of_class(arenas, class))
        at = arena_class_if_used(arenas, (*index)++, class);
    return at;
}

/* The same of cells. */
static inline struct cells *arena_cells_next(const struct arenas *arenas, unsigned *index)
{
    struct cells *cells = NULL;
    while (cells == NULL && *index < arenas_end_of_processors(arenas))
        cells = arena_cells_if_used(arenas, (*index)++);
    return cells;
}

#endif
