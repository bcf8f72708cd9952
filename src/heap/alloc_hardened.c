/*
 * Taking and freeing in hardened heaps: what alloc.c is for others.
 */
#include <errno.h>

#include "heap/empty.h"
#include "heap/harden.h"
#include "heap/reclaim.h"
#include "heap/tick.h"
#include "heap/user_heaps.h"
#include "profile/profile.h"
#include "profile/watch.h"

/* ---- The thread's cache ---- */

/* A thread gets one as late as any other cache (thread.h). */
static COLD struct hard_cache *self_new(void)
{
    if (!heap_thread_may_cache() || ++thread_self.slow_calls < CALLS_BEFORE_CACHE)
        return NULL;
    thread_self.slow_calls = 0;
    struct hard_cache *cache = hard_cache_new(heap_default.hardened);
    if (cache != NULL && !heap_thread_arm(cache)) {
        hard_cache_free(cache);
        cache = NULL;
    }
    hard_cache_self = cache;
    return cache;
}

static ALWAYS_INLINE struct hard_cache *cache_of(const struct heap *heap)
{
    if (UNLIKELY(heap != &heap_default))
        return NULL;
    return LIKELY(hard_cache_self != NULL) ? hard_cache_self : self_new();
}

/* ---- Taking and freeing ---- */

static COLD void *alloc_again(struct heap *heap, size_t alignment, size_t bytes)
{
    void *block = NULL;
    enum reclaim_step step = RECLAIM_OWN;
    while (block == NULL && heap_reclaim(heap, size_max(bytes, alignment), &step))
        block = hard_alloc(heap->hardened, cache_of(heap), alignment, bytes);
    if (block != NULL)
        return block;
    errno = ENOMEM;
    return NULL;
}

void *heap_alloc_hardened(struct heap *heap, size_t alignment, size_t bytes)
{
    heap_poll(heap);
    if (UNLIKELY(bytes == 0 && heap == &heap_default && alignment <= MIN_ALIGN)) {
        void *empty = empty_alloc();
        if (empty != NULL)
            return empty;
    }
    void *block = hard_alloc(heap->hardened, cache_of(heap), alignment, bytes);
    if (UNLIKELY(block == NULL))
        block = alloc_again(heap, alignment, bytes);
    else if (UNLIKELY(heap->record != NULL))
        heap_look_at_limit(heap, block);
    if (UNLIKELY((watchers() & WATCH_PROFILE) != 0) && heap == &heap_default &&
        profile_counts(bytes) && block != NULL)
        profile_put(block, bytes);
    return block;
}

static COLD bool free_elsewhere(const void *block, struct misuse *misuse)
{
    *misuse = (struct misuse){.kind = MISUSE_OTHER_HEAP, .address = (uintptr_t)block};
    return false;
}

void heap_free_hardened(struct heap *only, void *block, size_t bytes)
{
    struct hard_zone *zone = (struct hard_zone *)page_map_entry_fast((uintptr_t)block);
    struct heap *heap = heap_of_page_heap((struct page_heap *)zone->span.owner);
    struct profile_block sample;
    struct misuse misuse;
    int error = errno; /* the program's; a system call of a provider's may write it */
    heap_poll(heap);
    bool freed;
    if (LIKELY(only == NULL || only == heap)) {
        if (profile_has_blocks())
            profile_take(block, &sample); /* before another thread has the address */
        freed = hard_free(heap->hardened, cache_of(heap), zone, (uintptr_t)block, bytes, &misuse);
    } else {
        freed = free_elsewhere(block, &misuse);
    }
    if (UNLIKELY(!freed))
        misuse_report("free", &misuse);
    errno = error;
}
