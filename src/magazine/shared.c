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
    /* relaxed: who looks whether there is one takes it before anything else */
    __atomic_store_n(&shared->cache, cache, __ATOMIC_RELAXED);
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
    if (UNLIKELY(cache == NULL))
        shared_return(shared);
    shared->used = true;
    *here = shared;
    return cache;
}

/* ---- Taking and putting ---- */

void *shared_alloc(struct arenas *arenas, size_t class)
{
    struct shared *shared;
    struct cache *cache = shared_here(arenas, &shared);
    void *object = NULL;
    if (cache != NULL) {
        object = cache_pop(cache, class);
        if (object == NULL)
            object = cache_refill(cache, class);
        shared_return(shared);
    }
    return object != NULL ? object : object_alloc(arenas, class);
}

enum shared_put shared_put(struct arenas *arenas, uintptr_t address, size_t class)
{
    struct shared *shared;
    struct cache *cache = shared_here(arenas, &shared);
    if (cache == NULL)
        return SHARED_NO_ROOM;
    enum shared_put put = SHARED_NO_ROOM;
    if (!cache_is_full(cache, class) || cache_make_room(cache, class))
        put = cache_push_of(cache, address, class) ? SHARED_PUT : SHARED_REFUSED;
    shared_return(shared);
    return put;
}

/* ---- All of them ---- */

/* Takes the one of arena `index`, if it was made and nobody has it. */
static struct shared *shared_take(struct arenas *arenas, unsigned index)
{
    if (!arenas->shares)
        return NULL; /* the arena of a small buffer has no room for it */
    struct arena *arena = arena_at(arenas, index);
    if (arena == NULL || __atomic_load_n(&arena->shared.cache, __ATOMIC_RELAXED) == NULL)
        return NULL;
    return shared_try(&arena->shared) ? &arena->shared : NULL;
}

void shared_flush(struct arenas *arenas)
{
    for (unsigned i = 0; i < arenas->count; i++) {
        struct shared *shared = shared_take(arenas, i);
        if (shared == NULL)
            continue;
        cache_flush(shared->cache);
        shared_return(shared);
    }
}

void shared_tick(struct arenas *arenas)
{
    for (unsigned i = 0; i < arenas->count; i++) {
        struct shared *shared = shared_take(arenas, i);
        if (shared == NULL)
            continue;
        if (!shared->used)
            cache_flush(shared->cache);
        shared->used = false;
        shared_return(shared);
    }
}

AT_START void shared_inspect(struct arenas *arenas)
{
    for (unsigned i = 0; i < arenas->count; i++) {
        struct shared *shared = shared_take(arenas, i);
        if (shared == NULL)
            continue;
        cache_inspect(shared->cache);
        cache_flush(shared->cache);
        shared_return(shared);
    }
}

COLD const char *shared_check(struct arenas *arenas)
{
    const char *wrong = NULL;
    for (unsigned i = 0; wrong == NULL && i < arenas->count; i++) {
        struct shared *shared = shared_take(arenas, i);
        if (shared == NULL)
            continue;
        wrong = cache_check(shared->cache);
        shared_return(shared);
    }
    return wrong;
}

COLD void shared_orphan(struct arenas *arenas)
{
    for (unsigned i = 0; arenas->shares && i < arenas->count; i++) {
        struct arena *arena = arena_at(arenas, i);
        if (arena == NULL)
            continue;
        struct shared *shared = &arena->shared;
        if (shared->holder == self() && shared->cache != NULL)
            cache_keep(shared->cache);
        else
            *shared = (struct shared){0};
    }
}
