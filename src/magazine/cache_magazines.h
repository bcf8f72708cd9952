/*
 * What the parts of a cache share: cache.c, for small objects, and cache_cells.c. Not for other
 * layers.
 */
#ifndef SNUG_MAGAZINE_CACHE_MAGAZINES_H
#define SNUG_MAGAZINE_CACHE_MAGAZINES_H

#include "magazine/cache.h"

/* A magazine without slots: empty and full. */
extern const uintptr_t cache_no_slots[2];
#define NO_MAGAZINE ((uintptr_t *)&cache_no_slots[1])

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

/* Makes `loaded` (NULL: none, and `top` is NO_MAGAZINE) the magazine of a class, and tells other
 * threads its shape, and whether there is a full spare. To be called whenever one of these has
 * changed. */
static inline void cache_load(struct cache *cache, size_t class, const struct magazine *loaded,
                              uintptr_t *top)
{
    const struct magazine *spare = loaded == NULL ? NULL : loaded->link;
    unsigned low = loaded == NULL ? 0 : loaded->log + 1;
    unsigned high = spare == NULL || spare->count == 0 ? 0 : spare->log + 1;
    cache_set_top(cache, class, top);
    GAUGE_SET(cache->shape[class], (uint8_t)(high << 4 | low));
}

/* Bytes that a magazine of this size may hold. */
size_t cache_magazine_bytes(size_t class, unsigned log);

/* Counts what a thread, and all threads, may hold; and how much more the thread may. */
void cache_hold(struct cache *cache, size_t bytes);
void cache_unhold(struct cache *cache, size_t bytes);
size_t cache_may_hold(const struct cache *cache);

#endif
