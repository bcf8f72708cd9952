/*
 * Processors' caches. See shared.h.
 */
#include "magazine/shared.h"

#include "platform/lock.h"

/* ---- Who has it ---- */

/* A word that no other thread has. In a child of fork it is that of the thread that forked. */
static uintptr_t self(void)
{
    return (uintptr_t)&thread_self;
}

static bool shared_try(struct shared *shared)
{
    uintptr_t nobody = 0;
    /* acquire: what the last holder wrote is seen */
    return __atomic_compare_exchange_n(&shared->holder, &nobody, self(), false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static void shared_return(struct shared *shared)
{
    /* release: the next holder sees what this one did */
    __atomic_store_n(&shared->holder, 0, __ATOMIC_RELEASE);
}

/* Makes the one that the calling thread holds. */
static COLD struct cache *shared_make(struct arenas *arenas, struct shared *shared)
{
    struct cache *cache = cache_new(arenas, true);
    if (cache != NULL)
        cache->all_hold = &shared->held_bytes;
    /* relaxed: who looks whether there is one takes it before anything else */
    __atomic_store_n(&shared->cache, cache, __ATOMIC_RELAXED);
    /* A child that a signal handler made until now, and goes on here, has it as well. */
    if (cache != NULL)
        cache->generation = cache_generation;
    return cache;
}

/* Takes that of the processor; NULL: nothing was taken, the slabs serve. The only thread of a
 * process soon has a cache of its own. */
static struct cache *shared_here(struct arenas *arenas, struct shared **here)
{
    if (!arenas->shares || lock_is_alone())
        return NULL;
    struct shared *shared = &arena_here(arenas)->shared;
    if (!shared_try(shared))
        return NULL;
    struct cache *cache = shared->cache;
    if (UNLIKELY(cache == NULL))
        cache = shared_make(arenas, shared);
    if (UNLIKELY(cache == NULL)) {
        shared_return(shared);
        return NULL;
    }
    shared->used = true;
    *here = shared;
    return cache;
}

/* ---- Taking and putting ---- */

void *shared_alloc(struct arenas *arenas, size_t class)
{
    struct shared *shared;
    struct misuse_waits waits;
    struct cache *cache = shared_here(arenas, &shared);
    void *object = NULL;
    if (cache != NULL) {
        /* A handler that jumps out would keep the cache taken; here and below. */
        misuse_hold(&waits);
        object = cache_refill(cache, class);
        shared_return(shared);
        misuse_let_go(&waits);
    }
    return object != NULL ? object : object_alloc(arenas, class);
}

void *shared_pop(struct arenas *arenas, size_t class)
{
    struct shared *shared;
    struct cache *cache = shared_here(arenas, &shared);
    if (cache == NULL)
        return NULL;
    void *object = cache_pop(cache, class);
    shared_return(shared);
    return object;
}

enum shared_put shared_put(struct arenas *arenas, uintptr_t address, size_t class, bool free)
{
    struct shared *shared;
    struct misuse_waits waits;
    struct cache *cache = shared_here(arenas, &shared);
    if (cache == NULL)
        return SHARED_NO_ROOM;
    misuse_hold(&waits);
    /* Its key is looked at as well, as this is no fast path: a second free is seen at once. */
    enum shared_put put = SHARED_REFUSED;
    if (free || object_is_live(address, class)) {
        bool room = !cache_is_full(cache, class) || cache_make_room(cache, class);
        put = room && cache_push_of(cache, address, class) ? SHARED_PUT : SHARED_NO_ROOM;
    }
    shared_return(shared);
    misuse_let_go(&waits);
    return put;
}

/* ---- All of them ---- */

/* Does what is to be done with one that the calling thread has taken. */
static COLD const char *shared_do(struct shared *shared, enum shared_call call)
{
    struct cache *cache = shared->cache;
    if (call == SHARED_CHECK)
        return cache_check(cache);
    if (call == SHARED_INSPECT)
        cache_inspect(cache);
    if (call != SHARED_TICK || !shared->used)
        cache_flush(cache);
    shared->used = false;
    return NULL;
}

COLD const char *shared_do_all(struct arenas *arenas, enum shared_call call)
{
    const char *wrong = NULL;
    struct misuse_waits waits;
    misuse_hold(&waits);
    /* Where none are shared, the arena of a small buffer has no room for one. */
    for (unsigned i = 0; wrong == NULL && arenas->shares && i < arenas->count; i++) {
        struct arena *arena = arena_at(arenas, i);
        if (arena == NULL || __atomic_load_n(&arena->shared.cache, __ATOMIC_RELAXED) == NULL ||
            !shared_try(&arena->shared))
            continue;
        wrong = shared_do(&arena->shared, call);
        shared_return(&arena->shared);
    }
    misuse_let_go(&waits);
    return wrong;
}

COLD void shared_orphan(struct arenas *arenas, void (*end)(struct arenas *arenas))
{
    for (unsigned i = 0; arenas->shares && i < arenas->count; i++) {
        struct arena *arena = arena_at(arenas, i);
        if (arena == NULL)
            continue;
        struct shared *shared = &arena->shared;
        struct cache *cache = shared->cache;
        if (shared->holder != self())
            *shared = (struct shared){0};
        if (shared->cache != NULL)
            cache_keep(cache);
        else if (cache != NULL)
            arenas->end_orphans = end;
    }
}
