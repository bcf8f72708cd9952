/*
 * What the cache of a thread or a processor may hold. See cache_magazines.h.
 */
#include "magazine/cache_magazines.h"

size_t cache_limit(const struct cache *cache)
{
    const struct arenas *arenas = cache->arenas;
    if (LIKELY(!cache->shared))
        return size_min(options.thread_cache, arenas->held_most);
    /* relaxed, here and below: how much, not what is in it */
    size_t held = __atomic_load_n(&arenas->magazine_bytes, __ATOMIC_RELAXED);
    return size_max(options.processor_cache, held / PROCESSORS_SHARE / arenas->count);
}

size_t cache_part(const struct cache *cache)
{
    size_t limit = cache_limit(cache), full = FULL_CACHES * cache->arenas->count;
    if (UNLIKELY(cache->shared))
        return limit;
    size_t threads = __atomic_load_n(&cache->arenas->threads, __ATOMIC_RELAXED);
    size_t held = __atomic_load_n(&cache->arenas->magazine_bytes, __ATOMIC_RELAXED);
    size_t left = full * limit - size_min(full * limit, held);
    size_t own = cache_counted(cache) / MOVED_PART;
    if (own != 0)
        threads = size_min(threads, __atomic_load_n(&cache->arenas->moved, __ATOMIC_RELAXED) / own);
    size_t part = full * limit / 2 / size_max(threads, 1);
    return size_min(limit, left != 0 ? size_max(part, cache->held_bytes + left) : part);
}

NOINLINE void cache_count_moved(struct cache *cache)
{
    /* relaxed: see cache_part */
    __atomic_fetch_add(&cache->arenas->moved, MOVED_COUNTED, __ATOMIC_RELAXED);
}
