/*
 * Thread caches, and the fast path: what nearly every malloc and free does, and no more.
 *
 *   malloc: class from size; top of the class's magazine; an object? take it and move the top.
 *   free:   class from the page map; room? a valid, not yet free object? put it and move the top.
 *
 * The idea: neither touches a slab's metadata, a lock, an atomic or a counter. There is no test for
 * a thread that has no cache, or whose cache is gone: it points to `cache_none`, all of whose
 * magazines are both empty and full, so the two tests that must be there anyway send it to the
 * slow path. Class 0, "not small", is such a class in every cache for ever: large, foreign and NULL
 * pointers fall out by themselves.
 *
 * Cost: see docs/decisions/0001-fast-path.md.
 *
 * A cache belongs to its thread. Others see no more of it than where its tops are, and how large
 * its magazines: enough to know how many objects wait in them, to the object when the thread rests.
 * For that the fast path does nothing but store each top whole, as it would anyway, and caches are
 * never used for anything else: they wait for the next thread (see cache_new). What a child of fork
 * does with the caches of threads that it does not have stands in orphans.c.
 */
#ifndef SNUG_MAGAZINE_CACHE_H
#define SNUG_MAGAZINE_CACHE_H

#include "magazine/arena.h"
#include "magazine/quick.h"
#include "meta/meta.h"

enum { CACHE_CLASSES = PAGE_MAP_OTHER_CELL + 1 };

struct cache {
    /* [0] and [PAGE_MAP_CELL] up to [PAGE_MAP_OTHER_CELL], the bytes in the page map of what is not
     * small or not malloc's, stay those of an empty, full magazine of no slots. */
    uintptr_t *top[CACHE_CLASSES];
    struct quick
        *quick; /* cells; `quick_none` until the first is freed, then as long as it lives */
    struct arenas *arenas;
    union {
        size_t held_bytes;   /* == sum of capacity * size of the magazines + quick->limit */
        struct cache *waits; /* in arenas->idle_caches, while no thread has it */
    };
    struct cache *next;  /* in arenas->caches, as long as the process lives; NULL for other heaps */
    uint32_t generation; /* cache_generation when its thread got it; 0: it has none */
    /* What others see of each class's magazines: in the low four bits the log of the loaded one
     * plus 1, in the high four that of the spare if it is full; 0 if there is none. */
    uint8_t shape[CACHE_CLASSES];
};

_Static_assert(sizeof(struct cache) <= 1024, "a cache is a kilobyte of metadata");

/* Where a thread has its cache of one heap other than malloc's. */
struct heap_slot {
    uint64_t id;         /* of the heap; 0: of none. No two heaps of a process have the same. */
    struct cache *cache; /* `cache_none` until it is worth having one */
    uint32_t calls;      /* made without one */
};

enum { HEAP_SLOTS = 64 };

extern const struct heap_slot heap_slots_none[HEAP_SLOTS];

/* What a thread knows of itself. 32 bytes: a library that is loaded at run time has to find room
 * for it in what little static thread storage the loader keeps in reserve. */
struct thread {
    struct cache *cache;
    uint32_t slow_calls;     /* made without a cache */
    bool ended;              /* its cache is gone and stays gone */
    struct heap_slot *slots; /* HEAP_SLOTS of them: its caches of heaps other than malloc's */
    struct heap_slot *last;  /* one of them: of the heap that was freed to last */
};

extern __thread struct thread thread_self __attribute__((tls_model("initial-exec")));

extern const struct cache cache_none;

static inline bool cache_exists(const struct cache *cache)
{
    return cache != &cache_none;
}

/* Every change of a top. relaxed: other threads compute a number from it, and follow it nowhere.
 * The fence is for the compiler: what a child of fork finds above the top was put there. */
static ALWAYS_INLINE void cache_set_top(struct cache *cache, size_t class, uintptr_t *top)
{
    __atomic_signal_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&cache->top[class], top, __ATOMIC_RELAXED);
}

/* An object of `class`, or NULL if the magazine is empty. */
static ALWAYS_INLINE void *cache_pop(struct cache *cache, size_t class)
{
    uintptr_t *top = cache->top[class];
    uintptr_t object = *top;
    if (UNLIKELY(object < MARK_LIMIT))
        return NULL;
    *object_key_word(object) = 0;
    cache_set_top(cache, class, top + 1);
    return (void *)object;
}

/* Puts the object at `address`, whose page has this class, into its magazine. False: nothing was
 * done, because it is no small object, is not the beginning of one, is free already, or there is no
 * room. */
static ALWAYS_INLINE bool cache_push_of(struct cache *cache, uintptr_t address, size_t class)
{
    uintptr_t *top = cache->top[class];
    if (UNLIKELY(top[-1] < MARK_LIMIT))
        return false;
    if (UNLIKELY(!on_grid(address, class)))
        return false;
    uint64_t key = object_key(address);
    uint64_t *key_word = object_key_word(address);
    if (UNLIKELY(*key_word == key))
        return false;
    *key_word = key;
    top[-1] = address;
    cache_set_top(cache, class, top - 1);
    return true;
}

/* The same for any address. */
static ALWAYS_INLINE bool cache_push(struct cache *cache, uintptr_t address)
{
    return cache_push_of(cache, address, page_map_class(address));
}

/* A cache for the calling thread, one that another has left if there is one; or NULL. Takes
 * RANK_ARENAS. */
struct cache *cache_new(struct arenas *arenas);

/* The same in memory that the caller brings, in which `quick` is valid. */
void cache_init(struct cache *cache, struct arenas *arenas);

/* Forgets everything in it; for a heap that is cleared. */
void cache_clear(struct cache *cache);

/* Gives everything in it back, then the cache itself. */
void cache_free(struct cache *cache);

/* Gives all objects back to the slabs; the cache stays. */
void cache_flush(struct cache *cache);

/* An object of a class whose magazine is empty, refilling it. NULL: no memory. */
void *cache_refill(struct cache *cache, size_t class);

/* The same, but only by letting a full spare change places with the empty magazine; NULL if that
 * cannot be. A program that goes up and down around the border between both does it often. */
void *cache_refill_from_spare(struct cache *cache, size_t class);

/* Makes room in a full magazine. False: the class has no magazine, and gets none. */
bool cache_make_room(struct cache *cache, size_t class);

/* One object without a magazine, and back. The address must be that of a small class's page; what
 * is wrong with it is reported as misuse of free. */
void *object_take(struct arenas *arenas, size_t class);
void *object_take_larger(struct arenas *arenas, size_t class); /* see arenas_take_larger */
void object_give(uintptr_t address);

/* ---- Cells (cache_cells.c) ---- */

/* A live cell of at least `bytes` (more than SMALL_MOST, at most CELL_MOST) from the quick lists;
 * NULL if they have none, or if the one that would serve was damaged. */
static ALWAYS_INLINE void *cache_pop_cell(struct cache *cache, size_t bytes)
{
    struct quick *quick = cache->quick;
    size_t units = cell_units(bytes);
    size_t list = quick_list_of(units);
    uint64_t found = quick_find(quick, list, units);
    if (UNLIKELY(found == 0))
        return NULL;
    return (void *)quick_take(quick, list + bit_lowest(found), CELL_LIVE);
}

/* The same, at a multiple of `alignment`: only where the newest cell of a list happens to be at
 * one, as those of a program that asks for the same again and again are. */
void *cache_pop_cell_aligned(struct cache *cache, size_t bytes, size_t alignment);

/* Puts a live cell into its list. The page of the address must be one of cells. False: nothing was
 * done, because it is not a live cell, or there is no room. */
static ALWAYS_INLINE bool cache_push_cell(struct cache *cache, uintptr_t address)
{
    /* At the beginning of a page the header may lie outside of the span: that is looked at with
     * more care, and is rare. */
    if (UNLIKELY(address % CELL_UNIT != 0 || address % PAGE_BYTES == 0))
        return false;
    return quick_put(cache->quick, address);
}

/* Call when cache_pop_cell gave nothing: takes note of it for how much may wait, and reports the
 * cell that should have served, if there is one, as damaged. */
void cache_miss_cell(struct cache *cache, size_t bytes);

/* Takes a live cell back, into a list or to where it came from. The cache may be `cache_none`. */
void cache_give_cell(struct cache *cache, uintptr_t block);

/* Gives all cells back. */
void cache_flush_cells(struct cache *cache);

/* Forgets all cells, of a heap that is cleared. */
void cache_clear_cells(struct cache *cache);

/* NULL if all that waits in the calling thread's cache is as it should be, otherwise what is not.
 */
const char *cache_check(const struct cache *cache);

/* ---- In a child of fork (orphans.c) ---- */

/* Grows by 1 in each child; from 1 on. */
extern uint32_t cache_generation;

/* Whether a cache is of a thread that was not forked with the process. */
static inline bool cache_is_orphan(const struct cache *cache)
{
    return cache->generation != 0 && cache->generation != cache_generation;
}

/* Makes orphans of all caches. Then each heap is told so, and how it is to empty them, and after
 * that each cache that the calling thread still has. */
void caches_orphan(void);
void arenas_orphan(struct arenas *arenas, void (*end)(struct arenas *arenas));
void cache_keep(struct cache *cache);

/* Empties an orphan. `give`: what waits in it goes back to where it came from, as far as it is sure
 * to be free; otherwise it is forgotten, as that of a heap that is cleared. What its heap counts of
 * its threads is not changed: it was when the others became orphans. */
void cache_end_orphan(struct cache *cache, bool give);

/* Empties all orphans of malloc's heap, for new threads. Takes RANK_ARENAS. */
void arenas_end_orphans(struct arenas *arenas);

/* ---- Statistics (cache_totals.c) ---- */

/* Objects in the magazines of a class, of any thread's cache. */
size_t cache_count(struct peek *peek, const struct cache *cache, size_t class);

/* The number of cells in its quick lists, and their bytes. */
struct cached_cells {
    size_t count;
    size_t bytes;
};

struct cached_cells cache_cells(struct peek *peek, const struct cache *cache);

#endif
