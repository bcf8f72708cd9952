/*
 * The fast path: all that nearly every call does. This file and api/malloc.c are the whole of it;
 * what happens when it does not serve stands in cache.h and heap/heap.h.
 *
 * A thread has, for each size class, a magazine: an array of pointers to free objects. Of it the
 * thread knows no more than the top.
 *
 *     [ header | n |      |      |      | object | object | object | end ]
 *                ^ full mark              ^ top                      ^ end mark
 *
 *   malloc: what the top points to has the key of a free object? hand it out, and move the top up
 *           by one.
 *   free:   what is below the top is no mark? put the object there, and move the top down by one.
 *           It is the object that was freed before: that of this call waits for the next.
 *
 * Why free is one object late: where a store goes must be known before a load behind it can be
 * made for certain. The class of a freed object comes from a chain of loads, so a malloc right
 * behind would wait for that, or load the top too early and do it all again. The object before has
 * been known for long. Replacing objects of random sizes takes a quarter to a third less so.
 *
 * The full mark is the capacity n, a number below every address. The end mark looks like one more
 * object, which never has its key. So one comparison tells whether the magazine is empty, or full,
 * and there are no bounds and no counts to load.
 *
 * All other calls are made of the same two steps, once it is known which class serves:
 *
 *   calloc         what malloc hands out, cleared up to the end of the object
 *   aligned_alloc  the class of the size rounded up to the alignment: its whole grid is aligned
 *   realloc        the object itself where it may stay; otherwise malloc, a copy, free
 *   usable size    that of the class of the object's page
 *
 * What lower layers say about an address or a size is one line each:
 *
 *   class_of_size   (size + 15) / 16, for sizes up to SMALL_MOST, 1 KiB      (slab/size_class.h)
 *   page class      home_classes[(address - home) >> 12], a byte for each 4 KiB page
 * (meta/page_map.h) on_grid         address % 64 KiB is a multiple of the class's size: one
 * multiplication by reciprocal[class], rounded up, and a comparison          (slab/size_class.h)
 *   object_key      a secret plus the address: the first word of a free object. malloc looks
 *                   for it, so an object that was freed twice is handed out once, and one that
 *                   was written to after its free not at all                 (slab/size_class.h)
 *
 * The idea: no slab's metadata is touched, no lock, no atomic, no counter. There is no test for a
 * thread that has no cache, or whose cache is gone: it points to `cache_none`, all of whose
 * magazines are both empty and full, so the two tests that must be there anyway send it to the slow
 * path. What is not small has a class byte that is no positive number of eight bits: large, foreign
 * and NULL pointers and cells fall out by one test of its sign.
 *
 * Cost: 18 instructions for malloc, 34 for free; see docs/decisions/0001-fast-path.md.
 */
#ifndef SNUG_MAGAZINE_FAST_H
#define SNUG_MAGAZINE_FAST_H

#include "base/bytes.h"
#include "base/peek.h"
#include "slab/size_class.h"

/* Layout: words below this are full marks, not objects. */
#define MARK_LIMIT ((uintptr_t)4096)

/* Layout: one for each size of magazines, and one for the magazine of no slots. */
enum { END_MARKS = 6 };

/* What end marks point to: objects for malloc to look at, never free. */
struct end_mark {
    uint64_t never; /* 0; no address has that key (heap/init.c) */
    size_t header;  /* bytes from a magazine of this size to its end mark */
};

extern INTERNAL const struct end_mark end_marks[END_MARKS];

static ALWAYS_INLINE bool is_end_mark(uintptr_t word)
{
    return word - (uintptr_t)end_marks < sizeof(end_marks);
}

struct cache {
    uintptr_t *top[CLASS_COUNT]; /* [0] stays that of an empty, full magazine of no slots */
    /* The small object that was freed last, in no magazine yet, and its class; 0 and 0: there is
     * none. Only a thread's own cache of malloc's heap has one. */
    _Alignas(16) uintptr_t newest;
    size_t newest_class; /* behind it, and set with it */
    struct quick
        *quick; /* cells; `quick_none` until the first is freed, then as long as it lives */
    struct arenas *arenas;
    size_t *all_hold; /* arenas->magazine_bytes; of a processor's cache a sum of its own */
    union {
        size_t held_bytes;   /* == sum of capacity * size of the magazines + quick_held() */
        struct cache *waits; /* in arenas->idle_caches, while no thread has it */
    };
    struct cache *next;  /* in arenas->caches, as long as the process lives; NULL for other heaps */
    uint32_t generation; /* cache_generation when its thread got it; 0: it has none */
    bool shared;         /* it is a processor's (shared.h) */
    size_t moved;        /* objects, to and from depots and slabs, roughly (cache_part) */
    /* What others see of each class's magazines: in the low four bits the log of the loaded one
     * plus 1, in the high four that of the spare if it is full; 0 if there is none. */
    uint8_t shape[CLASS_COUNT];
};

_Static_assert(sizeof(struct cache) <= 1024, "a cache is a kilobyte of metadata");
_Static_assert(offsetof(struct cache, newest_class) ==
                   offsetof(struct cache, newest) + sizeof(uintptr_t),
               "both are set at once");

/* What a thread knows of itself. 32 bytes: a library that is loaded at run time has to find room
 * for it in what little static thread storage the loader keeps in reserve. */
struct thread {
    struct cache *cache;
    uint16_t slow_calls;     /* made without a cache */
    uint16_t empty_turn;     /* blocks of no bytes that it asked for; goes over (heap/empty.c) */
    bool ended;              /* its cache is gone and stays gone */
    bool arming;             /* libc is being told to tell of its end, and may allocate */
    uint8_t polls;           /* while some heap wanted a tick; see heap/tick.h */
    bool pinned;             /* its caches stay; see heap_pin */
    struct heap_slot *slots; /* HEAP_SLOTS of them: its caches of heaps other than malloc's */
    struct heap_slot *last;  /* one of them: of the heap that was freed to last */
};

extern INTERNAL __thread struct thread thread_self __attribute__((tls_model("initial-exec")));

extern INTERNAL const struct cache cache_none;

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

/* Whether a thread's own top is at the end of its magazine. */
static ALWAYS_INLINE bool cache_is_empty(const struct cache *cache, size_t class)
{
    return is_end_mark(*cache->top[class]);
}

/* Whether there is a full spare. */
static ALWAYS_INLINE bool cache_has_spare(const struct cache *cache, size_t class)
{
    return cache->shape[class] >> 4 != 0;
}

static ALWAYS_INLINE bool cache_is_full(const struct cache *cache, size_t class)
{
    return cache->top[class][-1] < MARK_LIMIT;
}

/* An object of `class`. NULL: the magazine is empty, or what is on top of it is not free as it
 * should be. */
static ALWAYS_INLINE void *cache_pop(struct cache *cache, size_t class)
{
    uintptr_t *top = cache->top[class];
    uintptr_t object = *top;
    /* The newest stands in no magazine, unless it was freed twice. */
    if (UNLIKELY(*object_key_word(object) != object_key(object)) ||
        UNLIKELY(object == cache->newest))
        return NULL;
    *object_key_word(object) = 0;
    cache_set_top(cache, class, top + 1);
    if (object == 0) /* callers then ask once only */
        __builtin_unreachable();
    return (void *)object;
}

/* The same for a request of `bytes`; NULL also if that is not below *sizes, one of the words in the
 * page map that are SMALL_MOST + 1 or 0. */
static ALWAYS_INLINE void *cache_pop_below(struct cache *cache, size_t bytes, const size_t *sizes)
{
    return LIKELY(size_is_below(bytes, sizes)) ? cache_pop(cache, class_of_size(bytes)) : NULL;
}

static ALWAYS_INLINE void *cache_pop_bytes(struct cache *cache, size_t bytes)
{
    return cache_pop_below(cache, bytes, &page_map.small_sizes);
}

/* The same, all zero up to its end. */
static ALWAYS_INLINE void *cache_pop_zero(struct cache *cache, size_t bytes)
{
    void *object = cache_pop_bytes(cache, bytes);
    return LIKELY(object != NULL) ? bytes_clear(object, align_up(bytes, MIN_ALIGN)) : NULL;
}

/* The same at a multiple of `alignment`, a power of two or 0. */
static ALWAYS_INLINE void *cache_pop_aligned_below(struct cache *cache, size_t alignment,
                                                   size_t bytes, const size_t *sizes)
{
    size_t class = class_of_aligned(alignment, bytes);
    bool small = class != 0 && size_is_below(bytes, sizes);
    return LIKELY(small) ? cache_pop(cache, class) : NULL;
}

static ALWAYS_INLINE void *cache_pop_aligned(struct cache *cache, size_t alignment, size_t bytes)
{
    return cache_pop_aligned_below(cache, alignment, bytes, &page_map.small_sizes);
}

/* Puts the object at `address`, whose page has this class, into its magazine. False: nothing was
 * done, because it is no small object, is not the beginning of one, was freed just now, or there is
 * no room. The object is written to and not read: it may be in memory, far from the processor, and
 * a branch on what stands there would hold up all that follows. */
static ALWAYS_INLINE bool cache_push_of(struct cache *cache, uintptr_t address, size_t class)
{
    uintptr_t *top = cache->top[class];
    if (UNLIKELY(top[-1] < MARK_LIMIT)) /* full */
        return false;
    if (UNLIKELY(!on_grid(address, class)))
        return false;
    if (UNLIKELY(*top == address))
        return false;
    *object_key_word(address) = object_key(address);
    top[-1] = address;
    cache_set_top(cache, class, top - 1);
    return true;
}

/* Makes an object the newest. It stands there before the one that stood there is elsewhere: what a
 * child of fork finds in both would be freed twice. */
static ALWAYS_INLINE void cache_set_newest(struct cache *cache, uintptr_t object, size_t class)
{
    gauge_set_pair(&cache->newest, object, class);
}

/* Frees the object at `address`, whose page has this class byte: makes it the newest, and puts the
 * one before into its magazine. False: nothing was done, for the reasons of cache_push_of, or as
 * there is no room for the one before. */
static ALWAYS_INLINE bool cache_put(struct cache *cache, uintptr_t address, size_t class)
{
    if (UNLIKELY(!class_byte_is_small(class)))
        return false;
    uintptr_t before = cache->newest;
    size_t class_before = cache->newest_class;
    if (UNLIKELY(!on_grid(address, class)))
        return false;
    if (UNLIKELY(before == address))
        return false;
    uintptr_t *top = cache->top[class_before];
    if (UNLIKELY(top[-1] < MARK_LIMIT)) /* full, or there is none before */
        return false;
    *object_key_word(address) = object_key(address);
    cache_set_newest(cache, address, class);
    top[-1] = before;
    cache_set_top(cache, class_before, top - 1);
    return true;
}

/* ---- Objects that are in use ---- */

/* Whether an object begins at `address`, whose page has this class, and is not free. */
static ALWAYS_INLINE bool object_is_live(uintptr_t address, size_t class)
{
    return LIKELY(class_byte_is_small(class)) && LIKELY(on_grid(address, class)) &&
           LIKELY(*object_key_word(address) != object_key(address));
}

/* Bytes: an object of so few stays however small it becomes, since moving it would free next to
 * nothing. */
enum { STAYS_MOST = 64 };

/* Whether an object of `old_bytes` that is resized stays where it is: moving one that keeps most of
 * itself would cost more than it frees. */
static ALWAYS_INLINE bool object_stays(size_t old_bytes, size_t bytes)
{
    return bytes <= old_bytes &&
           (bytes > old_bytes / MOST_SHARE || (old_bytes <= STAYS_MOST && bytes != 0));
}

/* The object to which a live one of `old_bytes` is moved, with what was in it; NULL, and nothing
 * was done, if the magazines have none. The old one is still to be freed. */
static ALWAYS_INLINE void *cache_pop_copy(struct cache *cache, uintptr_t address, size_t old_bytes,
                                          size_t bytes)
{
    size_t class = class_of_size(bytes);
    void *object = cache_pop_bytes(cache, bytes);
    if (LIKELY(object != NULL))
        bytes_copy(object, (const void *)address, size_min(old_bytes, class_size(class)));
    return object;
}

#endif
