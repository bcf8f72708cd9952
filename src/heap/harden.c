/*
 * Hardened heaps. See harden.h.
 */
#include "heap/harden.h"

#include "heap/user_heaps.h"
#include "options/options.h"
#include "platform/tags.h"

__thread struct hard_cache *hard_cache_self __attribute__((tls_model("initial-exec"))) =
    &hard_cache_none;

size_t hard_short_sizes, hard_fast_sizes;

BULKY static struct hardened of_malloc;

static struct hardened *spares; /* of heaps that are gone, with their caches */

/* ---- Heaps ---- */

/* Memory for another; heaps_lock. */
static struct hardened *state_take(void)
{
    lock_acquire(&heaps_lock);
    struct hardened *hardened = spares;
    if (hardened != NULL)
        spares = hardened->next;
    lock_release(&heaps_lock);
    return hardened != NULL ? hardened : meta_map(sizeof(*hardened));
}

static bool state_init(struct heap *heap, struct hardened *hardened)
{
    bool purges = options.purge_delay != DELAY_NEVER;
    struct hard_settings settings = {.provider = heap->page_heap.provider,
                                     .owner = &heap->page_heap,
                                     .wait_bytes = options.quarantine,
                                     .wait_count = options.quarantine_count,
                                     .dirty = purges ? options.dirty : SIZE_MAX,
                                     .held_most =
                                         size_min(options.thread_cache, heap->arenas.held_most),
                                     .guards = (uint32_t)options.guards};
    return hardened_init(hardened, &settings);
}

bool heap_harden(struct heap *heap)
{
    /* What has tags has to be known to all threads, so it begins before there are others. */
    if (heap == &heap_default && options.tags != 0 && lock_is_alone())
        tags_begin();
    struct hardened *hardened = heap == &heap_default ? &of_malloc : state_take();
    if (hardened == NULL || !state_init(heap, hardened))
        return false;
    if (hard_cache_self == NULL)
        hard_cache_self = &hard_cache_none; /* as thread_self_begin does for the rest */
    heap->hardened = hardened;
    return true;
}

void heap_harden_clear(struct heap *heap)
{
    if (heap->hardened == NULL)
        return;
    hardened_end(heap->hardened, true);
    hard_caches_clear(heap->hardened, false);
    state_init(heap, heap->hardened); /* which has the memory it needs */
}

void heap_harden_end(struct heap *heap)
{
    struct hardened *hardened = heap->hardened;
    if (hardened == NULL)
        return;
    hardened_end(hardened, false);
    heap->hardened = NULL;
    lock_acquire(&heaps_lock);
    hardened->next = spares;
    spares = hardened;
    lock_release(&heaps_lock);
}

/* ---- Who made a block ---- */

bool heap_makers_count;

AT_START bool heap_makers_are_wanted(void)
{
    return heap_default.hardened != NULL && options.check_delete != CHECK_DELETE_NONE;
}

void heap_makers_begin(void)
{
    heap_makers_count = true;
    hard_makers_all = options.check_delete == CHECK_DELETE_ALL;
}

void heap_set_maker(void *block, enum maker maker)
{
    uintptr_t address = tags_strip((uintptr_t)block);
    if (page_map_class_call(address) == PAGE_MAP_HARDENED) /* otherwise it is empty */
        hard_set_maker(heap_default.hardened, address, maker);
}

/* ---- Threads ---- */

void heap_harden_thread_end(void)
{
    struct hard_cache *cache = hard_cache_self;
    hard_cache_self = &hard_cache_none;
    if (cache != &hard_cache_none)
        hard_cache_free(cache);
}

/* The calling thread's cache of a heap, or NULL. */
static struct hard_cache *cache_of_thread(const struct heap *heap)
{
    if (heap != &heap_default)
        return heap_hard_cache_if_any(heap);
    return hard_cache_self != &hard_cache_none ? hard_cache_self : NULL;
}

/* ---- All of it ---- */

size_t heap_harden_trim(struct heap *heap)
{
    if (heap->hardened == NULL)
        return 0;
    struct hard_cache *cache = cache_of_thread(heap);
    if (cache != NULL)
        hard_cache_flush(cache);
    return hard_trim(heap->hardened);
}

AT_START void heap_harden_exit(void)
{
    struct misuse misuse;
    if (heap_default.hardened == NULL)
        return;
    if (hard_check(heap_default.hardened, &misuse) == NULL)
        hard_check_waiting(heap_default.hardened, cache_of_thread(&heap_default), &misuse);
    misuse_report("exit", &misuse);
}

void heap_harden_forked(struct heap *heap)
{
    if (heap->hardened != NULL)
        hard_forked(heap->hardened, cache_of_thread(heap));
}

void heap_harden_each_lock(struct heap *heap, enum lock_rank rank, void (*act)(struct lock *lock))
{
    if (heap->hardened != NULL)
        hard_each_lock_of(heap->hardened, rank, act);
}
