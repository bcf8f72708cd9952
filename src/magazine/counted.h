/*
 * The fast path while requests are looked at (profile/watch.h): what magazines and quick lists have
 * for a request that ends no gap, for ten instructions more.
 *
 * A signal handler that allocates in between may end a gap that is set back here: then that mark is
 * met again. It takes both to happen within these instructions.
 */
#ifndef SNUG_MAGAZINE_COUNTED_H
#define SNUG_MAGAZINE_COUNTED_H

#include "magazine/cache.h"
#include "profile/watch.h"

/* Whether a request of `bytes` may be served here; which of the two below does is its size's to
 * say. */
static ALWAYS_INLINE bool cache_may_count(size_t bytes)
{
    return size_is_below(bytes, &page_map.counted_sizes); /* CELL_MOST + 1, or 0 */
}

/* The gaps of the calling thread behind a request; false: it ends one, or none was drawn yet. */
static ALWAYS_INLINE bool gaps_after(struct watch_gaps *gaps, size_t bytes)
{
    gaps->bytes.left = watch_self.bytes.left - bytes;
    gaps->requests.left = watch_self.requests.left - 1;
    /* As numbers with a sign, which gaps are small enough for: so it is seen by the subtraction. */
    return LIKELY((int64_t)gaps->bytes.left > 0) && LIKELY((int64_t)gaps->requests.left > 0);
}

/* Word by word: compilers make of both at once a detour through other registers. */
static ALWAYS_INLINE void gaps_set(const struct watch_gaps *gaps)
{
    __atomic_store_n(&watch_self.bytes.left, gaps->bytes.left, __ATOMIC_RELAXED);
    __atomic_store_n(&watch_self.requests.left, gaps->requests.left, __ATOMIC_RELAXED);
}

/* An object of `class` for a request of `bytes`, which is counted. NULL: it is not, and nothing was
 * done. A request for none has class 0, of which there are no objects. */
static ALWAYS_INLINE void *cache_pop_counted(struct cache *cache, size_t class, size_t bytes)
{
    struct watch_gaps gaps;
    void *object = LIKELY(gaps_after(&gaps, bytes)) ? cache_pop(cache, class) : NULL;
    if (LIKELY(object != NULL))
        gaps_set(&gaps);
    return object;
}

/* As cache_pop_copy, counted. */
static ALWAYS_INLINE void *cache_pop_copy_counted(struct cache *cache, uintptr_t address,
                                                  size_t old_bytes, size_t bytes)
{
    size_t class = class_of_size(bytes);
    bool small = bytes <= BYTES_SHORT && cache_may_count(bytes);
    void *object = LIKELY(small) ? cache_pop_counted(cache, class, bytes) : NULL;
    if (LIKELY(object != NULL))
        bytes_copy(object, (const void *)address, size_min(old_bytes, class_size(class)));
    return object;
}

/* As cache_pop_cell, counted. */
static ALWAYS_INLINE void *cache_pop_cell_counted(struct cache *cache, size_t bytes)
{
    struct watch_gaps gaps;
    void *cell = LIKELY(gaps_after(&gaps, bytes)) ? cache_pop_cell(cache, bytes) : NULL;
    if (LIKELY(cell != NULL))
        gaps_set(&gaps);
    return cell;
}

#endif
