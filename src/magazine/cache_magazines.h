/*
 * What the parts of a cache share: cache.c, for small objects, cache_cells.c, and cache_whole.c.
 * Not for other layers.
 */
#ifndef SNUG_MAGAZINE_CACHE_MAGAZINES_H
#define SNUG_MAGAZINE_CACHE_MAGAZINES_H

#include "magazine/cache.h"
#include "options/options.h"

/* A magazine without slots: empty and full, and without a spare. */
extern INTERNAL const struct magazine_none {
    struct magazine *link; /* laid out as a magazine */
    uint32_t count, log;
    uintptr_t slots[2];
} magazine_none;
#define NO_MAGAZINE ((uintptr_t *)&magazine_none.slots[1])

/* The loaded magazine of a class, whose top is at its end or at its beginning; NULL if the class
 * has none. */
static inline struct magazine *loaded_at_end(const struct cache *cache, size_t class)
{
    uintptr_t *top = cache->top[class];
    return top == NO_MAGAZINE ? NULL : magazine_of_end(top);
}

static inline struct magazine *loaded_at_full(const struct cache *cache, size_t class)
{
    uintptr_t *top = cache->top[class];
    return top == NO_MAGAZINE ? NULL : magazine_of_full(top);
}

/* The loaded magazine, wherever its top is, and how many objects are in it. */
struct magazine *loaded_anywhere(const struct cache *cache, size_t class, size_t *count);

/* Sets the top of a class, and what others are told: the logs plus 1 of the loaded magazine and of
 * the full spare, 0 where there is none. */
static inline void cache_load_shape(struct cache *cache, size_t class, uintptr_t *top,
                                    unsigned loaded, unsigned spare)
{
    cache_set_top(cache, class, top);
    GAUGE_SET(cache->shape[class], (uint8_t)(spare << 4 | loaded));
}

/* Makes `loaded` (NULL: none, and `top` is NO_MAGAZINE) the magazine of a class, and tells other
 * threads its shape, and whether there is a full spare. To be called whenever one of these has
 * changed. */
static inline void cache_load(struct cache *cache, size_t class, const struct magazine *loaded,
                              uintptr_t *top)
{
    const struct magazine *spare = loaded == NULL ? NULL : loaded->link;
    unsigned low = loaded == NULL ? 0 : loaded->log + 1;
    unsigned high = spare == NULL || spare->count == 0 ? 0 : spare->log + 1;
    cache_load_shape(cache, class, top, low, high);
}

/* Bytes that a magazine of this size may hold. */
static inline size_t cache_magazine_bytes(size_t class, unsigned log)
{
    return magazine_capacity(log) * class_bytes(class);
}

/* Counts what a thread, and all threads, may hold. */
static inline void cache_hold(struct cache *cache, size_t bytes)
{
    cache->held_bytes += bytes;
    /* relaxed: a sum that is only compared with a bound */
    __atomic_fetch_add(cache->all_hold, bytes, __ATOMIC_RELAXED);
}

static inline void cache_unhold(struct cache *cache, size_t bytes)
{
    cache_hold(cache, -bytes); /* modulo 2^64 */
}

/* Frees a magazine that is out of the cache; NULL: none. */
static inline void cache_magazine_free(struct cache *cache, size_t class, struct magazine *magazine)
{
    if (magazine == NULL)
        return;
    cache_unhold(cache, cache_magazine_bytes(class, magazine->log));
    magazine_free(magazine);
}

/* One part in: of what threads hold, so much may wait for all processors together. Where it is
 * little, as after a peak, the few objects that wait would each keep a slab. */
enum { PROCESSORS_SHARE = 16 };

/* Threads: so many for each processor may hold SNUG_THREAD_CACHE each, as no more than processors
 * run at a time. When that much is held, be it by others that sleep, which nobody else can have, a
 * thread may still hold its part of half of it. */
enum { FULL_CACHES = THREADS_OF_ARENA };

/* One part in: of what a thread moves so much counts, as who came later moves more to do the same,
 * in smaller magazines. */
enum { MOVED_PART = 4 };

/* Objects: what moves between magazines and others is counted by so many, for all threads count it
 * in one place. A power of two. */
enum { MOVED_COUNTED = 4096 };

/* What others know of what this one moved. */
static inline size_t cache_counted(const struct cache *cache)
{
    return align_down(cache->moved, MOVED_COUNTED);
}

/* Tells others that this one has moved MOVED_COUNTED objects more. */
void cache_count_moved(struct cache *cache);

/* Notes that the loaded magazine of a class was filled, or is emptied, by others than the spare. */
static inline void cache_note_moved(struct cache *cache, size_t class)
{
    size_t before = cache->moved;
    cache->moved = before + magazine_capacity((cache->shape[class] & 15) - 1);
    if (UNLIKELY((before ^ cache->moved) >= MOVED_COUNTED))
        cache_count_moved(cache);
}

/* Bytes: a thread may always have a magazine of any class that holds no more, however many threads
 * there are. Of all classes together that is 180 KiB. */
enum { ALWAYS_HELD = PAGE_BYTES };

/* Bytes: that the cache of a thread or a processor may hold in any case. */
size_t cache_limit(const struct cache *cache);

/* Bytes: the same in larger magazines. A part is one of as many as there are threads; or that which
 * a quarter of what the thread moves is of what all have moved, if that is more: one that works
 * beside many that sleep has all it may. Of N threads that come one after the other and do as much
 * as each other, all together hold 1 + log(N / those that may hold all) / 2 times what those hold.
 */
size_t cache_part(const struct cache *cache);

/* Whether it holds more. */
static inline bool cache_holds_too_much(const struct cache *cache)
{
    return cache->held_bytes > cache_part(cache);
}

static inline size_t room_below(const struct cache *cache, size_t most)
{
    return most - size_min(cache->held_bytes, most);
}

/* How much more it may hold in larger magazines. */
static inline size_t cache_may_hold(const struct cache *cache)
{
    return room_below(cache, cache_part(cache));
}

#endif
