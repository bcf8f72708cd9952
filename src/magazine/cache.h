/*
 * Thread caches: what the fast path (fast.h) leaves, for small objects and for cells.
 *
 * A cache belongs to its thread, or at one moment to one that shares it (shared.h). Others see no
 * more of it than where its tops are, and how large its magazines: enough to know how many objects
 * wait in them, to the object when the thread rests. For that the fast path does nothing but store
 * each top whole, as it would anyway, and caches are never used for anything else: they wait for
 * the next thread (see cache_new). What a child of fork does with the caches of threads that it
 * does not have stands in orphans.c.
 */
#ifndef SNUG_MAGAZINE_CACHE_H
#define SNUG_MAGAZINE_CACHE_H

#include "magazine/arena.h"
#include "magazine/fast.h"
#include "magazine/quick.h"
#include "meta/meta.h"

/* Where a thread has its cache of one heap other than malloc's. */
struct heap_slot {
    uint64_t id;         /* of the heap; 0: of none. No two heaps of a process have the same. */
    struct cache *cache; /* `cache_none` until it is worth having one */
    uint16_t calls;      /* made without one */
};

/* Layout: of a thread's table of caches of other heaps. */
enum { HEAP_SLOTS = 64 };

/* The table of a thread that has none. Nobody writes to it; as a constant it would be 1.5 KiB of
 * the library's file. */
extern INTERNAL struct heap_slot heap_slots_none[HEAP_SLOTS];

/* Makes `thread_self` what it is at first, if it is all zero: while the loader relocates the
 * program it calls resolvers of the program's (IFUNC), which may allocate, and only then does it
 * fill in the first thread's variables. */
static inline void thread_self_begin(void)
{
    if (thread_self.cache == NULL) {
        thread_self.cache = (struct cache *)&cache_none;
        thread_self.slots = thread_self.last = heap_slots_none;
    }
}

/* A cache for the calling thread, or if it is `shared` for a processor: one that a thread has left
 * if there is one; or NULL. Takes RANK_ARENAS. */
struct cache *cache_new(struct arenas *arenas, bool shared);

/* The same in memory that the caller brings, in which `quick` is valid. */
void cache_init(struct cache *cache, struct arenas *arenas);

/* Forgets everything in it; for a heap that is cleared. */
void cache_clear(struct cache *cache);

/* Gives everything in it back, then the cache itself. */
void cache_free(struct cache *cache);

/* Gives all objects back to the slabs; the cache stays. */
void cache_flush(struct cache *cache);

/* An object of a class, from its magazine, which is refilled if it is empty. NULL: the class has no
 * magazine, and gets none, or there is no memory. The cache must not be `cache_none`. */
void *cache_refill(struct cache *cache, size_t class);

/* As cache_put, where that gave up: makes the room that was missing. False: it is not the beginning
 * of an object that is in use. */
bool cache_put_slow(struct cache *cache, uintptr_t address, size_t class);

/* Makes room in a full magazine. False: the class has no magazine, and gets none. */
bool cache_make_room(struct cache *cache, size_t class);

/* One object without a magazine, and back (object.c). The address must be that of a small class's
 * page; what is wrong with it is reported as misuse of free. */
void *object_alloc(struct arenas *arenas, size_t class);
void *object_alloc_larger(struct arenas *arenas, size_t class);      /* see arenas_alloc_larger */
void *object_alloc_beside(struct arenas *arenas, uintptr_t address); /* see bin_alloc_beside */
void object_free(uintptr_t address);

/* ---- Cells (cache_cells.c) ---- */

/* Whether quick lists may serve a request of `bytes`. */
static ALWAYS_INLINE bool size_may_be_cell(size_t bytes)
{
    return size_is_below(bytes - (SMALL_MOST + 1), &page_map.cell_sizes);
}

/* A live cell of at least `bytes` (more than BYTES_SHORT, at most CELL_MOST) from the quick lists;
 * NULL if they have none, or if the one that would serve was damaged. */
static ALWAYS_INLINE void *cache_pop_cell(struct cache *cache, size_t bytes)
{
    struct quick *quick = cache->quick;
    size_t units = cell_units(bytes);
    size_t list = quick_list_of(units);
    if (!quick_serves(quick, list, units)) {
        uint64_t found = quick_find(quick, list, units);
        if (UNLIKELY(found == 0))
            return NULL;
        list += quick_first(found);
    }
    return (void *)quick_alloc(quick, list, true);
}

/* The same for any request, at a multiple of `alignment` (a power of two below a page): only where
 * the newest cell of a list happens to be at one, as those of a program that asks for the same
 * again and again are. NULL also if no cell may serve it: a magazine may, or nothing here. */
static ALWAYS_INLINE void *cache_pop_cell_aligned(struct cache *cache, size_t alignment,
                                                  size_t bytes)
{
    /* The size or the alignment makes it more than a small request. */
    size_t last = (bytes - 1) | (alignment - 1);
    if (UNLIKELY(!size_may_be_cell(last + 1)))
        return NULL;
    struct quick *quick = cache->quick;
    size_t units = cell_units(size_max(bytes, SMALL_MOST + 1));
    size_t own = quick_list_of(units);
    for (uint64_t found = quick_find(quick, own, units); found != 0; found &= found - 1) {
        size_t list = own + quick_first(found);
        uintptr_t block = quick_block(quick->list[list]);
        if ((block & (alignment - 1)) == 0)
            return (void *)quick_alloc(quick, list, true);
    }
    return NULL;
}

/* Puts a live cell into its list. The page of the address must be one of cells. False: nothing was
 * done, because it is not a live cell, or there is no room. */
static ALWAYS_INLINE bool cache_push_cell(struct cache *cache, uintptr_t address)
{
    if (UNLIKELY(!cell_may_begin(address))) /* it is looked at with more care, and is rare */
        return false;
    return quick_put(cache->quick, address);
}

/* Whether nothing waits that would serve a request, be it damaged or not, and nothing would be
 * joined for it. */
static ALWAYS_INLINE bool cache_lacks_cell(const struct cache *cache, size_t bytes)
{
    const struct quick *quick = cache->quick;
    size_t units = cell_units(bytes);
    return quick_find(quick, quick_list_of(units), units) == 0 && !quick->lent;
}

/* Call when that was so, and a cell was had otherwise: lets more wait. */
static ALWAYS_INLINE void cache_note_miss(struct cache *cache, size_t bytes)
{
    if (LIKELY(cache->quick != &quick_none))
        quick_note_miss(cache->quick, cell_units(bytes));
}

/* Call when cache_pop_cell gave nothing: lets more wait, and reports the cell that should have
 * served, if there is one, as damaged. */
void cache_miss_cell(struct cache *cache, size_t bytes);

/* The same after cache_pop_cell_aligned, but a damaged cell stays for others to find. */
void cache_miss_cell_aligned(struct cache *cache, size_t bytes);

/* Whether more cells wait than may before memory is touched that no cell had. */
static inline bool cache_cells_wait(const struct cache *cache)
{
    return quick_bytes(cache->quick) > quick_spared(cache->quick);
}

/* Whether any does. */
static inline bool cache_has_cells(const struct cache *cache)
{
    return quick_bytes(cache->quick) != 0;
}

/* Joins all of them with their neighbours, for a request that nothing else serves. */
void cache_join_cells(struct cache *cache);

/* Takes a live cell back, into a list or to where it came from. The cache may be `cache_none`. */
void cache_free_cell(struct cache *cache, uintptr_t block);

/* Gives all cells back. */
void cache_flush_cells(struct cache *cache);

/* Forgets all cells, of a heap that is cleared. */
void cache_clear_cells(struct cache *cache);

/* Looks at the objects in its magazines for the last time, as the process ends, and reports one of
 * each class that was written to. (inspect.c) */
void cache_inspect(struct cache *cache);

/* NULL if all that waits in the calling thread's cache is as it should be, otherwise what is not.
 */
const char *cache_check(const struct cache *cache);

/* ---- In a child of fork (orphans.c) ---- */

/* Grows by 1 in each child; from 1 on. */
extern INTERNAL uint32_t cache_generation;

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

/* Empties an orphan. `give`: objects and cells that are sure to be free go back to where they came
 * from; otherwise they are forgotten, as those of a heap that is cleared. The heap's count of
 * threads stays: it was set when the caches became orphans. */
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
