/*
 * Making, clearing and destroying heaps; the threads' caches of them. See heaps.h.
 */
#include "heap/heaps.h"

#include <string.h>

#include "meta/meta.h"
#include "options/options.h"
#include "platform/check.h"
#include "platform/thread.h"

/* A thread gets a cache of a heap at this many slow calls. */
enum { CALLS_BEFORE_CACHE = 24 };

struct heap_cache {
    struct cache cache;
    struct heap *heap; /* NULL: the cache is not in use */
    struct list link;  /* in its heap's list, or in that of unused ones */
};

_Static_assert(sizeof(struct heap_cache) <= 1024, "a cache occupies 1 KiB");

static struct {
    struct lock lock;
    bool ready;
    uint64_t ids;       /* handed out so far */
    struct list heaps;  /* by record->link */
    struct list spares; /* records of heaps that were destroyed, whose memory is used again */
    struct list caches; /* not in use. They are never anything else than caches again, so that a
                           thread's table may lead to one long after its heap is gone. */
} heaps = {.lock = LOCK_INIT(RANK_HEAPS)};

static void list_lock(void)
{
    lock_take(&heaps.lock);
    if (!heaps.ready) {
        list_init(&heaps.heaps);
        list_init(&heaps.spares);
        list_init(&heaps.caches);
        heaps.ready = true;
    }
}

static struct heap_record *record_of(struct list *link)
{
    return CONTAINER_OF(link, struct heap_record, link);
}

/* ---- Threads' caches ---- */

static struct heap_cache *heap_cache_of(struct cache *cache)
{
    return CONTAINER_OF(cache, struct heap_cache, cache);
}

/* The lock must be held; here and below. */
static struct heap_cache *cache_take(struct heap *heap)
{
    struct heap_cache *cache;
    if (list_empty(&heaps.caches)) {
        cache = meta_take(sizeof(*cache));
        if (cache == NULL)
            return NULL;
    } else {
        cache = CONTAINER_OF(heaps.caches.next, struct heap_cache, link);
        list_remove(&cache->link);
    }
    cache_init(&cache->cache, &heap->arenas);
    cache->heap = heap;
    list_push(&heap->record->caches, &cache->link);
    return cache;
}

/* Of a cache that is empty. */
static void cache_drop(struct heap_cache *cache)
{
    __atomic_fetch_sub(&cache->heap->arenas.threads, 1, __ATOMIC_RELAXED);
    cache->heap = NULL;
    list_remove(&cache->link);
    list_push(&heaps.caches, &cache->link);
}

/* Gives what a slot of this thread still has back to its heap, unless that heap is gone. */
static void slot_empty(struct heap_slot *slot)
{
    struct heap_cache *cache = heap_cache_of(slot->cache);
    if (cache_exists(slot->cache) && cache->heap != NULL && cache->heap->id == slot->id) {
        cache_flush(&cache->cache);
        cache_drop(cache);
    }
    slot->cache = (struct cache *)&cache_none;
    slot->calls = 0;
    slot->id = 0;
}

/* The calling thread's slot for a heap; NULL if it has no table and gets none. */
static struct heap_slot *slot_of(const struct heap *heap)
{
    if (thread_self.slots == heap_slots_none) {
        struct heap_slot *slots = meta_take(HEAP_SLOTS * sizeof(*slots));
        if (slots == NULL)
            return NULL;
        for (size_t i = 0; i < HEAP_SLOTS; i++)
            slots[i] = (struct heap_slot){.cache = (struct cache *)&cache_none};
        thread_self.slots = slots;
    }
    struct heap_slot *slot = &thread_self.slots[heap->id % HEAP_SLOTS];
    if (slot->id != heap->id) {
        list_lock();
        slot_empty(slot);
        lock_release(&heaps.lock);
        slot->id = heap->id;
    }
    return slot;
}

struct cache *heap_cache(struct heap *heap)
{
    struct cache *none = (struct cache *)&cache_none;
    if (heap->record == NULL)
        return heap_thread_cache();
    struct cache *cache = heap_cache_fast(heap);
    if (LIKELY(cache_exists(cache)))
        return cache;
    if (!heap->record->caching || !heap_thread_may_cache())
        return none;
    struct heap_slot *slot = slot_of(heap);
    if (slot == NULL || ++slot->calls < CALLS_BEFORE_CACHE)
        return none;
    slot->calls = 0;
    thread_self.ended = true; /* as in lifecycle.c */
    bool armed = os_thread_exit_arm(thread_self.slots);
    thread_self.ended = false;
    if (!armed)
        return none;
    list_lock();
    struct heap_cache *made = cache_take(heap);
    lock_release(&heaps.lock);
    if (made != NULL)
        slot->cache = &made->cache;
    return slot->cache;
}

void heaps_thread_end(void)
{
    struct heap_slot *slots = thread_self.slots;
    if (slots == heap_slots_none)
        return;
    thread_self.slots = (struct heap_slot *)heap_slots_none;
    list_lock();
    for (size_t i = 0; i < HEAP_SLOTS; i++)
        if (slots[i].id != 0)
            slot_empty(&slots[i]);
    lock_release(&heaps.lock);
    meta_give(slots, HEAP_SLOTS * sizeof(*slots));
}

/* Forgets what threads have cached of a heap; `end` frees the caches too. */
static void caches_clear(struct heap_record *record, bool end)
{
    for (struct list *node = record->caches.next; node != &record->caches;) {
        struct heap_cache *cache = CONTAINER_OF(node, struct heap_cache, link);
        node = node->next;
        cache_clear(&cache->cache);
        if (end)
            cache_drop(cache);
    }
}

/* ---- Heaps ---- */

/* A record for a new heap, with its first arena zero. */
static struct heap_record *record_take(void)
{
    if (!list_empty(&heaps.spares)) {
        struct heap_record *record = record_of(heaps.spares.next);
        list_remove(&record->link);
        return record;
    }
    struct heap_record *record = meta_map(sizeof(*record) + sizeof(struct arena));
    if (record != NULL)
        record->arena = (struct arena *)(record + 1);
    return record;
}

struct heap *heap_create(const struct provider *provider)
{
    heap_thread_cache(); /* makes malloc's heap, and with it what all heaps need */
    list_lock();
    struct heap_record *record = record_take();
    if (record != NULL) {
        struct heap *heap = &record->heap;
        spans_init(&heap->spans, provider);
        heap->spans.other = true;
        unsigned arenas = heap_default.arenas.count;
        arenas_init(&heap->arenas, &heap->spans, record->arena, arenas);
        heap->id = ++heaps.ids;
        heap->record = record;
        record->caching = options.thread_cache != 0;
        list_init(&record->caches);
        list_push(&heaps.heaps, &record->link);
    }
    lock_release(&heaps.lock);
    return record == NULL ? NULL : &record->heap;
}

/* How much of a heap that is cleared stays with it. */
static size_t pages_kept(void)
{
    return options.dirty >> PAGE_SHIFT;
}

void heap_clear(struct heap *heap)
{
    list_lock();
    caches_clear(heap->record, false);
    lock_release(&heaps.lock);
    arenas_clear(&heap->arenas);
    spans_clear(&heap->spans, pages_kept());
}

void heap_destroy(struct heap *heap)
{
    struct heap_record *record = heap->record;
    list_lock();
    list_remove(&record->link);
    caches_clear(record, true);
    lock_release(&heaps.lock);
    arenas_clear(&heap->arenas);
    spans_clear(&heap->spans, 0);
    heap->id = 0;
    list_lock();
    list_push(&heaps.spares, &record->link);
    lock_release(&heaps.lock);
}

struct heap *heaps_find(bool (*act)(struct heap *heap, void *context), void *context)
{
    struct heap *found = NULL;
    list_lock();
    LIST_EACH(node, &heaps.heaps)
    if (found == NULL && act(&record_of(node)->heap, context))
        found = &record_of(node)->heap;
    lock_release(&heaps.lock);
    return found;
}

/* ---- Fork ---- */

void heaps_each_lock_of(enum lock_rank rank, void (*act)(struct lock *lock))
{
    if (rank == RANK_HEAPS) {
        act(&heaps.lock);
        return;
    }
    if (!heaps.ready)
        return;
    LIST_EACH(node, &heaps.heaps)
    {
        struct heap *heap = &record_of(node)->heap;
        if (rank == RANK_ARENAS)
            act(&heap->arenas.lock);
        else if (rank == RANK_SPANS)
            act(&heap->spans.lock);
        else
            arenas_each_lock_of(&heap->arenas, rank, act);
    }
}
