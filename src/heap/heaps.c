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

/* What descriptors take of a buffer: at worst each page was a slab once, with 128 bytes, and a free
 * run or a large block at another time, with 64; small ones never become large ones again. */
enum { DESCRIPTORS_PER_PAGE = 192 };

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
        cache->cache.quick = (struct quick *)&quick_none;
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
    cache->heap = NULL;
    list_remove(&cache->link);
    list_push(&heaps.caches, &cache->link);
}

/* The same, of a thread that is counted. */
static void cache_drop_counted(struct heap_cache *cache)
{
    __atomic_fetch_sub(&cache->heap->arenas.threads, 1, __ATOMIC_RELAXED);
    cache_drop(cache);
}

/* The cache in a slot of this thread; NULL if there is none, or its heap is gone. */
static struct heap_cache *slot_cache(const struct heap_slot *slot)
{
    if (slot->id == 0 || !cache_exists(slot->cache))
        return NULL;
    struct heap_cache *cache = heap_cache_of(slot->cache);
    return cache->heap != NULL && cache->heap->id == slot->id ? cache : NULL;
}

/* Gives what a slot of this thread still has back to its heap. */
static void slot_empty(struct heap_slot *slot)
{
    struct heap_cache *cache = slot_cache(slot);
    if (cache != NULL) {
        cache_flush(&cache->cache);
        cache_drop_counted(cache);
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
    thread_self.last = (struct heap_slot *)heap_slots_none;
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

/* As arenas_end_orphans, of another heap. */
static void orphans_end_locked(struct heap_record *record)
{
    for (struct list *node = record->caches.next; node != &record->caches;) {
        struct heap_cache *cache = CONTAINER_OF(node, struct heap_cache, link);
        node = node->next;
        if (!cache_is_orphan(&cache->cache))
            continue;
        cache_end_orphan(&cache->cache, true);
        cache_drop(cache);
    }
    __atomic_store_n(&record->heap.arenas.end_orphans, NULL, __ATOMIC_RELAXED);
}

static void orphans_end(struct arenas *arenas)
{
    list_lock();
    orphans_end_locked(CONTAINER_OF(arenas, struct heap, arenas)->record);
    lock_release(&heaps.lock);
}

/* ---- Heaps ---- */

/* Below this a heap is compact: a slab of several pages for each class, and a MiB for cells, would
 * be most of it. */
#define COMPACT_BELOW (16 * MIB)

/* What one thread's magazines of a heap may hold. */
#define HELD_BYTES_MOST (2 * MIB)
#define HELD_SHARE 32

/* A record for a new heap, with its first arena. */
static struct heap_record *record_take(void)
{
    list_lock();
    struct heap_record *record = NULL;
    if (!list_empty(&heaps.spares)) {
        record = record_of(heaps.spares.next);
        list_remove(&record->link);
    }
    lock_release(&heaps.lock);
    if (record != NULL)
        return record;
    record = meta_map(sizeof(*record) + sizeof(struct arena));
    if (record != NULL)
        record->arena = (struct arena *)(record + 1);
    return record;
}

static void record_free(struct heap_record *record)
{
    if (record->placed)
        return;
    list_lock();
    list_push(&heaps.spares, &record->link);
    lock_release(&heaps.lock);
}

/* The rest of a buffer becomes the heap's one segment: behind the record and the arena (`at`) lie
 * the page map of the range and a descriptor for each page, since there may be no other memory. */
static bool buffer_lay_out(struct heap_record *record, char *at, char *end)
{
    struct heap *heap = &record->heap;
    size_t per_page = PAGE_BYTES + sizeof(uintptr_t) + DESCRIPTORS_PER_PAGE;
    end = (char *)align_down((uintptr_t)end, PAGE_BYTES);
    if (end < at + META_LEAST)
        return false;
    size_t pages = (size_t)(end - at - META_LEAST) / per_page;
    char *start = end - (pages << PAGE_SHIFT);
    uintptr_t *entries = (uintptr_t *)at;
    char *descriptors = (char *)align_up((uintptr_t)(entries + pages), META_LEAST);
    if (descriptors >= start || pages < 4)
        return false;
    memset(entries, 0, pages * sizeof(*entries));
    meta_init(&record->meta, descriptors, align_down((size_t)(start - descriptors), META_LEAST));
    heap->spans.meta = &record->meta;
    if (!page_map_add_range(start, pages, entries))
        return false;
    record->range = start;
    return spans_adopt(&heap->spans, start, pages << PAGE_SHIFT);
}

/* Places a record at the beginning of a buffer; `*at` is what follows it. */
static struct heap_record *record_place(const struct heap_settings *settings, char **at)
{
    if (settings->buffer_bytes < HEAP_BUFFER_LEAST)
        return NULL;
    char *start = (char *)align_up((uintptr_t)settings->buffer, META_LEAST);
    struct heap_record *record = (struct heap_record *)start;
    size_t arena_bytes = offsetof(struct arena, cells); /* a compact heap has none */
    size_t record_bytes = align_up(sizeof(*record), META_LEAST);
    memset(record, 0, record_bytes + arena_bytes);
    record->arena = (struct arena *)(start + record_bytes);
    record->placed = true;
    *at = (char *)align_up((uintptr_t)record->arena + arena_bytes, META_LEAST);
    return record;
}

static void settings_apply(struct heap_record *record, const struct heap_settings *settings)
{
    struct heap *heap = &record->heap;
    size_t quota = settings->quota == 0 ? SIZE_MAX : settings->quota;
    const struct provider *provider = settings->provider;
    if (settings->buffer != NULL)
        provider = &provider_none;
    else if (provider == NULL)
        provider = &provider_os;
    quota_init(&record->quota, provider, quota);
    spans_init(&heap->spans, &record->quota.provider);
    heap->spans.other = true;
    heap->spans.untouched = settings->outside;
    heap->spans.compact = settings->outside || settings->buffer != NULL || quota < COMPACT_BELOW;
    arenas_init(&heap->arenas, &heap->spans, record->arena,
                record->placed ? 1 : heap_default.arenas.count);
    heap->arenas.held_most = size_min(HELD_BYTES_MOST, quota / HELD_SHARE);
    memset(heap->arenas.cold, 0, sizeof(heap->arenas.cold));
    record->caching = options.thread_cache != 0 && !settings->outside && settings->buffer == NULL;
    record->soft_limit = settings->soft_limit == 0 ? SIZE_MAX : settings->soft_limit;
    record->call_back = settings->call_back;
    record->context = settings->context;
    record->calling = false;
    record->visited = false;
    record->told = 0;
    record->range = NULL;
    memset(record->name, 0, sizeof(record->name));
    if (settings->name != NULL)
        memcpy(record->name, settings->name,
               size_min(strlen(settings->name), sizeof(record->name) - 1));
    heap->record = record;
    list_init(&record->caches);
}

/* Gives a heap on a buffer its memory: what begins at `at`, or all of it if that is NULL. */
static bool buffer_adopt(struct heap_record *record, const struct heap_settings *settings, char *at)
{
    char *end = settings->buffer + settings->buffer_bytes;
    struct spans *spans = &record->heap.spans;
    bool done;
    if (at != NULL) {
        done = buffer_lay_out(record, at, end);
    } else {
        char *start = (char *)align_up((uintptr_t)settings->buffer, PAGE_BYTES);
        end = (char *)align_down((uintptr_t)end, PAGE_BYTES);
        done = start < end && spans_adopt(spans, start, (size_t)(end - start));
    }
    record->fixed_bytes = settings->buffer_bytes - (spans->segment_pages << PAGE_SHIFT);
    return done;
}

struct heap *heap_create(const struct heap_settings *settings)
{
    heap_thread_cache(); /* makes malloc's heap, and with it what all heaps need */
    char *at = NULL;
    bool placed = settings->buffer != NULL && !settings->outside;
    struct heap_record *record = placed ? record_place(settings, &at) : record_take();
    if (record == NULL)
        return NULL;
    settings_apply(record, settings);
    if (settings->buffer != NULL && !buffer_adopt(record, settings, at)) {
        if (record->range != NULL)
            page_map_remove_range(record->range);
        record_free(record);
        return NULL;
    }
    list_lock();
    __atomic_store_n(&heaps.ids, heaps.ids + 1, __ATOMIC_RELAXED);
    record->heap.id = heaps.ids;
    list_push(&heaps.heaps, &record->link);
    lock_release(&heaps.lock);
    return &record->heap;
}

void heap_clear(struct heap *heap)
{
    list_lock(); /* to the end: who walks all heaps must not meet a half of one, nor may a fork */
    caches_clear(heap->record, false);
    arenas_clear(&heap->arenas);
    spans_clear(&heap->spans, true);
    lock_release(&heaps.lock);
}

void heap_destroy(struct heap *heap)
{
    struct heap_record *record = heap->record;
    list_lock();
    list_remove(&record->link);
    caches_clear(record, true);
    lock_release(&heaps.lock);
    arenas_clear(&heap->arenas);
    spans_clear(&heap->spans, false);
    heap->id = 0;
    if (record->range != NULL)
        page_map_remove_range(record->range);
    record_free(record);
}

/* ---- Limits ---- */

bool heap_call_back(struct heap *heap, size_t missing)
{
    struct heap_record *record = heap->record;
    /* Not from within: what it frees may take and give as well. relaxed: one thread or another */
    if (record == NULL || record->call_back == NULL ||
        __atomic_exchange_n(&record->calling, true, __ATOMIC_RELAXED))
        return false;
    record->call_back(record->context, heap, missing);
    __atomic_store_n(&record->calling, false, __ATOMIC_RELAXED);
    return true;
}

void heap_look_at_limit(struct heap *heap)
{
    struct heap_record *record = heap->record;
    size_t used = quota_used(&record->quota);
    size_t told = __atomic_load_n(&record->told, __ATOMIC_RELAXED);
    if (used <= record->soft_limit) {
        if (told != 0)
            __atomic_store_n(&record->told, 0, __ATOMIC_RELAXED);
        return;
    }
    if (used <= told)
        return;
    __atomic_store_n(&record->told, used, __ATOMIC_RELAXED);
    heap_call_back(heap, used - record->soft_limit);
}

/* ---- All heaps ---- */

/* The lock of the list must be held. */
static size_t heap_trim_spans(struct heap *heap)
{
    orphans_end_locked(heap->record);
    return arenas_trim(&heap->arenas) + spans_purge(&heap->spans, 0);
}

/* Less than this a heap does not ask its provider for. */
#define TAKEN_LEAST (64 * KIB)

/* Not if it is a quota or the end of a buffer that is in the way. */
static bool others_may_help(const struct heap_record *record, size_t bytes)
{
    return record == NULL ||
           (record->quota.under != &provider_none &&
            record->quota.limit - quota_used(&record->quota) >= size_max(bytes, TAKEN_LEAST));
}

bool heaps_trim_others(struct heap *heap, size_t bytes)
{
    if (!others_may_help(heap->record, bytes))
        return false;
    size_t given = heap != &heap_default ? heap_trim(0) : 0;
    list_lock();
    LIST_EACH(node, &heaps.heaps)
    {
        struct heap_record *record = record_of(node);
        if (&record->heap != heap && !record->visited)
            given += heap_trim_spans(&record->heap);
    }
    lock_release(&heaps.lock);
    return given != 0;
}

bool heaps_exist(void)
{
    /* relaxed: who has a block of a heap knows that it was made */
    return __atomic_load_n(&heaps.ids, __ATOMIC_RELAXED) != 0;
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

void heap_set_visited(struct heap *heap, bool visited)
{
    if (heap->record == NULL)
        return;
    list_lock();
    heap->record->visited = visited;
    lock_release(&heaps.lock);
}

/* ---- Fork ---- */

void heaps_fork_in_child(void)
{
    if (!heaps.ready)
        return;
    LIST_EACH(node, &heaps.heaps)
    arenas_orphan(&record_of(node)->heap.arenas, orphans_end);
    for (size_t i = 0; i < HEAP_SLOTS; i++) {
        struct heap_cache *cache = slot_cache(&thread_self.slots[i]);
        if (cache != NULL)
            cache_keep(&cache->cache);
    }
}

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
