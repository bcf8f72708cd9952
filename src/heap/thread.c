/*
 * Threads' caches. See thread.h.
 */
#include "heap/thread.h"

#include <errno.h>

#include "heap/harden.h"
#include "heap/user_heaps.h"
#include "meta/meta.h"
#include "options/options.h"
#include "platform/thread.h"
#include "stats/stats.h"

struct user_cache {
    struct cache cache;
    struct heap *heap; /* NULL: the cache is not in use */
    struct list link;  /* in its heap's list, or in that of unused ones */
};

_Static_assert(sizeof(struct user_cache) <= 1024, "a cache occupies 1 KiB");

struct lock heaps_lock = LOCK_INIT(RANK_HEAPS);

void heaps_hold(struct misuse_waits *waits)
{
    lock_acquire(&heaps_lock);
    misuse_hold(waits);
}

void heaps_let_go(struct misuse_waits *waits)
{
    bool found = misuse_hold_ends(waits);
    lock_release(&heaps_lock);
    if (found)
        misuse_report_waits(waits);
}

/* Caches not in use. They are never anything else than caches again, so that a thread's table may
 * lead to one long after its heap is gone. */
static struct list unused = {&unused, &unused};

bool heap_thread_may_cache(void)
{
    return !thread_self.ended && !thread_self.arming && options.thread_cache != 0 &&
           options.check != CHECK_FULL;
}

bool heap_thread_arm(void *word)
{
    int error = errno;
    thread_self.arming = true;
    bool armed = os_thread_exit_arm(word);
    thread_self.arming = false;
    errno = error;
    if (!armed)
        return false;
    tally_begin();
    arena_home_choose(heap_default.arenas.count);
    return true;
}

bool heap_pin(void)
{
    bool was = thread_self.pinned;
    thread_self.pinned = true;
    return was;
}

void heap_unpin(bool was)
{
    thread_self.pinned = was;
}

/* ---- Of malloc's heap ---- */

static COLD struct cache *default_cache_new(void)
{
    struct cache *cache = cache_new(&heap_default.arenas, false);
    if (cache != NULL && !heap_thread_arm(cache)) {
        cache_free(cache);
        cache = NULL;
    }
    thread_self.slow_calls = 0;
    if (cache != NULL)
        thread_self.cache = cache;
    return thread_self.cache;
}

/* ---- Of other heaps ---- */

static struct user_cache *heap_cache_of(struct cache *cache)
{
    return CONTAINER_OF(cache, struct user_cache, cache);
}

/* The lock must be held; here and below. */
static struct user_cache *cache_take(struct heap *heap)
{
    struct user_cache *cache;
    if (list_empty(&unused)) {
        cache = meta_alloc(sizeof(*cache));
        if (cache == NULL)
            return NULL;
        cache->cache.quick = (struct quick *)&quick_none;
    } else {
        cache = CONTAINER_OF(unused.next, struct user_cache, link);
        list_remove(&cache->link);
    }
    cache_init(&cache->cache, &heap->arenas);
    cache->heap = heap;
    list_push(&heap->record->caches, &cache->link);
    return cache;
}

/* Puts an empty cache with those that are not in use. */
static void cache_drop(struct user_cache *cache)
{
    cache->heap = NULL;
    list_remove(&cache->link);
    list_push(&unused, &cache->link);
}

/* The same where its thread was counted. */
static void cache_drop_counted(struct user_cache *cache)
{
    __atomic_fetch_sub(&cache->heap->arenas.threads, 1, __ATOMIC_RELAXED);
    cache_drop(cache);
}

/* The cache in a slot of this thread; NULL if there is none, or its heap is gone. */
static struct user_cache *slot_cache(const struct heap_slot *slot)
{
    if (slot->id == 0 || !cache_exists(slot->cache))
        return NULL;
    struct user_cache *cache = heap_cache_of(slot->cache);
    return cache->heap != NULL && cache->heap->id == slot->id ? cache : NULL;
}

/* Gives what a slot of this thread's table still has back to its heap. */
static void slot_empty(struct heap_slot *slots, struct heap_slot *slot)
{
    struct hard_cache **place = heap_hard_place(slots, (size_t)(slot - slots));
    if (*place != NULL && (*place)->user == slot->id)
        hard_cache_free(*place);
    *place = NULL;
    struct user_cache *cache = slot_cache(slot);
    if (cache != NULL) {
        cache_flush(&cache->cache);
        cache_drop_counted(cache);
    }
    slot->cache = (struct cache *)&cache_none;
    slot->calls = 0;
    slot->id = 0;
}

/* Bytes: of a thread's table, and of what is behind it (heap_hard_place). */
#define SLOTS_BYTES (HEAP_SLOTS * (sizeof(struct heap_slot) + sizeof(struct hard_cache *)))

/* The calling thread's slot for a heap; NULL if it has no table and gets none, or if it is another
 * heap's whose cache is in use (heap_pin). */
static COLD struct heap_slot *slot_of(const struct heap *heap)
{
    if (thread_self.slots == heap_slots_none) {
        struct heap_slot *slots = meta_alloc(SLOTS_BYTES);
        if (slots == NULL)
            return NULL;
        for (size_t i = 0; i < HEAP_SLOTS; i++) {
            slots[i] = (struct heap_slot){.cache = (struct cache *)&cache_none};
            *heap_hard_place(slots, i) = NULL;
        }
        thread_self.slots = slots;
    }
    struct heap_slot *slot = &thread_self.slots[heap->id % HEAP_SLOTS];
    struct misuse_waits waits;
    if (slot->id == heap->id)
        return slot;
    heaps_hold(&waits);
    if (!thread_self.pinned || slot_cache(slot) == NULL) {
        slot_empty(thread_self.slots, slot);
        slot->id = heap->id;
    }
    heaps_let_go(&waits);
    return slot->id == heap->id ? slot : NULL; /* a handler may have taken it for another */
}

static COLD struct cache *other_cache_new(struct heap *heap, struct heap_slot *slot)
{
    slot->calls = 0;
    if (!heap_thread_arm(thread_self.slots))
        return slot->cache;
    lock_acquire(&heaps_lock);
    struct user_cache *made = cache_take(heap);
    lock_release(&heaps_lock);
    if (made != NULL)
        slot->cache = &made->cache;
    return slot->cache;
}

struct hard_cache *heap_hard_cache(struct heap *heap)
{
    struct hard_cache *cache = heap_hard_cache_if_any(heap);
    if (LIKELY(cache != NULL) || !heap_thread_may_cache() || !heap->record->caching)
        return cache;
    struct heap_slot *slot = slot_of(heap);
    if (slot == NULL || ++slot->calls < CALLS_BEFORE_CACHE)
        return NULL;
    slot->calls = 0;
    if (!heap_thread_arm(thread_self.slots))
        return NULL;
    lock_acquire(&heaps_lock);
    cache = hard_cache_new(heap->hardened);
    if (cache != NULL)
        cache->user = heap->id;
    lock_release(&heaps_lock);
    *heap_hard_place(thread_self.slots, heap->id % HEAP_SLOTS) = cache;
    return cache;
}

/* ---- Of any ---- */

/* How many calls of a thread are slow before it is worth a cache of its own. */
static uint32_t calls_before_cache(const struct arenas *arenas)
{
    /* relaxed: a hint */
    uint32_t threads = __atomic_load_n(&arenas->threads, __ATOMIC_RELAXED);
    bool many = threads >= THREADS_OF_ARENA * arenas->count;
    return many && arenas->shares ? CALLS_OF_MANY : CALLS_BEFORE_CACHE;
}

struct cache *heap_cache_new(struct heap *heap)
{
    struct cache *none = (struct cache *)&cache_none;
    bool other = heap->record != NULL;
    heap_init();
    if (!heap_thread_may_cache() || heap->hardened != NULL || (other && !heap->record->caching))
        return none;
    struct heap_slot *slot = other ? slot_of(heap) : NULL;
    if (other && slot == NULL)
        return none;
    uint16_t *calls = other ? &slot->calls : &thread_self.slow_calls;
    if (*calls == 0)
        tally_spread(); /* until it has a tally of its own */
    if (++*calls < calls_before_cache(&heap->arenas))
        return none;
    return other ? other_cache_new(heap, slot) : default_cache_new();
}

static void end_other_caches(void)
{
    struct heap_slot *slots = thread_self.slots;
    struct misuse_waits waits;
    if (slots == heap_slots_none)
        return;
    thread_self.slots = heap_slots_none;
    thread_self.last = heap_slots_none;
    heaps_hold(&waits);
    for (size_t i = 0; i < HEAP_SLOTS; i++)
        if (slots[i].id != 0)
            slot_empty(slots, &slots[i]);
    heaps_let_go(&waits);
    meta_free(slots, SLOTS_BYTES);
}

void heap_thread_end(void *argument)
{
    (void)argument; /* some word that is not NULL, or this would not be called */
    struct cache *cache = thread_self.cache;
    thread_self.cache = (struct cache *)&cache_none;
    thread_self.ended = true;
    end_other_caches();
    heap_harden_thread_end();
    if (cache_exists(cache))
        cache_free(cache);
    arena_home_leave();
    tally_end();
}

/* ---- All threads' ---- */

void heap_forget_caches(struct heap_record *record, bool end)
{
    for (struct list *node = record->caches.next; node != &record->caches;) {
        struct user_cache *cache = CONTAINER_OF(node, struct user_cache, link);
        node = node->next;
        bool orphan = cache_is_orphan(&cache->cache);
        if (orphan)
            cache_end_orphan(&cache->cache, false);
        else
            cache_clear(&cache->cache);
        if (orphan)
            cache_drop(cache);
        else if (end)
            cache_drop_counted(cache);
    }
}

void heap_end_orphans_locked(struct heap_record *record)
{
    for (struct list *node = record->caches.next; node != &record->caches;) {
        struct user_cache *cache = CONTAINER_OF(node, struct user_cache, link);
        node = node->next;
        if (!cache_is_orphan(&cache->cache))
            continue;
        cache_end_orphan(&cache->cache, true);
        cache_drop(cache);
    }
    __atomic_store_n(&record->heap.arenas.end_orphans, NULL, __ATOMIC_RELAXED);
}

void heap_end_orphans(struct arenas *arenas)
{
    struct misuse_waits waits;
    heaps_hold(&waits);
    heap_end_orphans_locked(CONTAINER_OF(arenas, struct heap, arenas)->record);
    heaps_let_go(&waits);
}

void heap_keep_caches(void)
{
    if (cache_exists(thread_self.cache))
        cache_keep(thread_self.cache);
    for (size_t i = 0; i < HEAP_SLOTS; i++) {
        struct user_cache *cache = slot_cache(&thread_self.slots[i]);
        if (cache != NULL)
            cache_keep(&cache->cache);
    }
}
