/*
 * The fast path while requests are looked at (profile/watch.h): what magazines and quick lists have
 * for a request that ends no gap, for ten instructions more.
 *
 * A signal handler that allocates in between may end a gap that is counted down here: then the new
 * one is shorter by this request, and has ended if that leaves less than nothing of it.
 */
#ifndef SNUG_MAGAZINE_COUNTED_H
#define SNUG_MAGAZINE_COUNTED_H

#include "magazine/cache.h"
#include "profile/watch.h"

/* Whether a request of `bytes` may be served here: by cache_pop_counted or, above SMALL_MOST, by
 * cache_pop_cell_counted. */
static ALWAYS_INLINE bool cache_may_count(size_t bytes)
{
    return size_is_below(bytes, &page_map.counted_sizes); /* CELL_MOST + 1, or 0 */
}

/* Whether no gap of the calling thread ends with a request. A gap that was not drawn yet ends with
 * the first. */
static ALWAYS_INLINE bool no_gap_ends(size_t bytes)
{
    return LIKELY(watch_self.bytes.left > (int64_t)bytes) && LIKELY(watch_self.requests.left > 1);
}

static ALWAYS_INLINE void gaps_count(size_t bytes)
{
    watch_self.bytes.left -= (int64_t)bytes;
    /* Without the fence compilers subtract both at once, by a detour through other registers. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    watch_self.requests.left--;
}

/* An object of `class` for a request of `bytes`, which is counted. NULL: it is not, and nothing was
 * done. A request for none has class 0, of which there are no objects. */
static ALWAYS_INLINE void *cache_pop_counted(struct cache *cache, size_t class, size_t bytes)
{
    void *object = no_gap_ends(bytes) ? cache_pop(cache, class) : NULL;
    if (LIKELY(object != NULL))
        gaps_count(bytes);
    return object;
}

/* As cache_pop_cell, counted. */
static ALWAYS_INLINE void *cache_pop_cell_counted(struct cache *cache, size_t bytes)
{
    void *cell = no_gap_ends(bytes) ? cache_pop_cell(cache, bytes) : NULL;
    if (LIKELY(cell != NULL))
        gaps_count(bytes);
    return cell;
}

#endif
