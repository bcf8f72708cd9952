/*
 * A whole cache: how a thread gets one, what all of it gives back, and its end. See cache.h.
 */
#include <string.h>

#include "magazine/cache_magazines.h"
#include "meta/meta.h"
#include "platform/lock.h"
#include "stats/stats.h"

struct magazine *loaded_anywhere(const struct cache *cache, size_t class, size_t *count)
{
    uintptr_t *top = cache->top[class];
    *count = 0;
    if (top == NO_MAGAZINE)
        return NULL;
    while (!is_end_mark(*top)) {
        top++;
        ++*count;
    }
    return magazine_of_end(top);
}

/* ---- The whole ---- */

static void drop_newest(struct cache *cache)
{
    uintptr_t newest = cache->newest;
    cache_set_newest(cache, 0, 0); /* first, as in class_flush */
    slabs_free(&newest, newest != 0, "free");
}

/* Makes it that of a thread, or of a processor. */
static void cache_begin(struct cache *cache, bool shared)
{
    cache->held_bytes = 0;
    cache->generation = cache_generation;
    cache->shared = shared;
    if (shared)
        return; /* shared.c says where its sum is */
    cache->all_hold = &cache->arenas->magazine_bytes;
    __atomic_fetch_add(&cache->arenas->threads, 1, __ATOMIC_RELAXED);
    COUNT(thread_caches, 1);
}

static void cache_lay_out(struct cache *cache, struct arenas *arenas)
{
    memcpy(cache->top, cache_none.top, sizeof(cache->top));
    cache->newest = cache->newest_class = 0;
    memset(cache->shape, 0, sizeof(cache->shape));
    cache->arenas = arenas;
    cache->next = NULL;
    cache->moved = 0; /* that of all threads that have it one after the other */
}

void cache_init(struct cache *cache, struct arenas *arenas)
{
    cache_lay_out(cache, arenas);
    cache_begin(cache, false);
}

static struct cache *cache_make(struct arenas *arenas)
{
    struct cache *cache = meta_alloc_optional(sizeof(*cache));
    if (cache == NULL)
        return NULL;
    cache->quick = cache_none.quick;
    cache_lay_out(cache, arenas);
    cache->next = arenas->caches;
    /* release: who finds the cache finds it whole */
    __atomic_store_n(&arenas->caches, cache, __ATOMIC_RELEASE);
    return cache;
}

/* The cache of a thread that has ended; all its magazines are gone. */
static struct cache *cache_reuse(struct arenas *arenas)
{
    struct cache *cache = arenas->idle_caches;
    arenas->idle_caches = cache->waits;
    return cache;
}

struct cache *cache_new(struct arenas *arenas, bool shared)
{
    lock_acquire(&arenas->lock);
    struct cache *cache = arenas->idle_caches != NULL ? cache_reuse(arenas) : cache_make(arenas);
    if (cache != NULL)
        cache_begin(cache, shared);
    lock_release(&arenas->lock);
    return cache;
}

void cache_clear(struct cache *cache)
{
    cache_set_newest(cache, 0, 0);
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        size_t count;
        struct magazine *loaded = loaded_anywhere(cache, class, &count);
        if (loaded == NULL)
            continue;
        cache_load(cache, class, NULL, NO_MAGAZINE);
        cache_magazine_free(cache, class, loaded->link);
        cache_magazine_free(cache, class, loaded);
    }
    cache_clear_cells(cache);
}

static void class_flush(struct cache *cache, size_t class)
{
    size_t count;
    struct magazine *loaded = loaded_anywhere(cache, class, &count);
    if (loaded == NULL)
        return;
    struct magazine *spare = loaded->link;
    uintptr_t *top = cache->top[class];
    /* The thread has the magazine no more before its objects go back: a report of a wrong pointer
     * may run a signal handler that allocates. */
    cache_load(cache, class, NULL, NO_MAGAZINE);
    slabs_free(top, count, "free");
    if (spare != NULL)
        slabs_free(magazine_begin(spare), spare->count, "free");
    cache_magazine_free(cache, class, loaded);
    cache_magazine_free(cache, class, spare);
}

void cache_flush(struct cache *cache)
{
    drop_newest(cache);
    for (size_t class = 1; class < CLASS_COUNT; class++)
        class_flush(cache, class);
    cache_flush_cells(cache);
}

static const char *class_check(const struct cache *cache, size_t class)
{
    size_t count;
    const struct page_heap *page_heap = cache->arenas->page_heap;
    struct magazine *loaded = loaded_anywhere(cache, class, &count);
    if (loaded == NULL)
        return NULL;
    const char *wrong = objects_check(page_heap, class, cache->top[class], count);
    struct magazine *spare = loaded->link;
    if (wrong == NULL && spare != NULL)
        wrong = objects_check(page_heap, class, magazine_begin(spare), spare->count);
    return wrong;
}

const char *cache_check(const struct cache *cache)
{
    if (!cache_exists(cache))
        return NULL;
    const char *wrong = objects_check(cache->arenas->page_heap, cache->newest_class, &cache->newest,
                                      cache->newest != 0);
    for (size_t class = 1; class < CLASS_COUNT && wrong == NULL; class++)
        wrong = class_check(cache, class);
    return wrong != NULL ? wrong : quick_check(cache->quick);
}

void cache_free(struct cache *cache)
{
    struct arenas *arenas = cache->arenas;
    cache_flush(cache);
    __atomic_fetch_sub(&arenas->threads, 1, __ATOMIC_RELAXED);
    lock_acquire(&arenas->lock);
    cache->generation = 0;
    cache->waits = arenas->idle_caches;
    arenas->idle_caches = cache;
    lock_release(&arenas->lock);
}
