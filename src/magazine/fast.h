/*
 * The fast path: all that nearly every malloc and free does. This file and api/malloc.c are the
 * whole of it; what happens when it does not serve stands in cache.h and heap/heap.h.
 *
 * A thread has, for each size class, a magazine: an array of pointers to free objects. Of it the
 * thread knows no more than the top.
 *
 *     [ header | n |      |      |      | object | object | object | n ]
 *                ^ full mark              ^ top                      ^ end mark
 *
 *   malloc: what the top points to is an object? hand it out, and move the top up by one.
 *   free:   what is below the top is no mark? put the object there, and move the top down by one.
 *
 * A mark is the capacity n, a number below every address. So one comparison tells whether the
 * magazine is empty, or full, and there are no bounds and no counts to load.
 *
 * What lower layers say about an address or a size is one line each:
 *
 *   class_of_size   (size + 15) / 16, for sizes up to SMALL_MOST, 1 KiB      (slab/size_class.h)
 *   page class      home_classes[address >> 12], a byte for each 4 KiB page  (meta/page_map.h)
 *   on_grid         address % 64 KiB is a multiple of the class's size: one multiplication by
 *                   reciprocal[class], rounded up, and a comparison          (slab/size_class.h)
 *   object_key      a secret plus the address: the second word of a free object, by which its
 *                   second free is seen                                      (slab/size_class.h)
 *
 * The idea: no slab's metadata is touched, no lock, no atomic, no counter. There is no test for a
 * thread that has no cache, or whose cache is gone: it points to `cache_none`, all of whose
 * magazines are both empty and full, so the two tests that must be there anyway send it to the slow
 * path. Page class 0, "not small", is such a class in every cache for ever, and so is that of
 * cells: large, foreign and NULL pointers fall out by themselves.
 *
 * Cost: 15 instructions for malloc, 27 for free; see docs/decisions/0001-fast-path.md.
 */
#ifndef SNUG_MAGAZINE_FAST_H
#define SNUG_MAGAZINE_FAST_H

#include "slab/size_class.h"

enum { CACHE_CLASSES = PAGE_MAP_OTHER_CELL + 1 };

/* Words below this are marks, not objects. */
#define MARK_LIMIT ((uintptr_t)4096)

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

/* What a thread knows of itself. 32 bytes: a library that is loaded at run time has to find room
 * for it in what little static thread storage the loader keeps in reserve. */
struct thread {
    struct cache *cache;
    uint32_t slow_calls;     /* made without a cache */
    bool ended;              /* its cache is gone and stays gone */
    bool arming;             /* libc is being told to tell of its end, and may allocate */
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

#endif
