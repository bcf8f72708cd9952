/*
 * Making, clearing and destroying heaps. See user_heaps.h.
 */
#include "heap/user_heaps.h"

#include <string.h>

#include "heap/harden.h"
#include "heap/placed.h"
#include "magazine/shared.h"
#include "meta/meta.h"
#include "options/options.h"
#include "pageheap/large.h"
#include "platform/check.h"
#include "platform/memory.h"
#include "platform/thread.h"
#include "profile/guard.h"

/* Layout: descriptors take this of a buffer for each page at worst, a slab's and a run's. A small
 * descriptor never becomes a large one again. */
enum { DESCRIPTORS_PER_PAGE = 192 };

static struct {
    uint64_t ids;       /* handed out so far */
    struct list spares; /* records of heaps that were destroyed, whose memory is used again */
} heaps = {0, {&heaps.spares, &heaps.spares}};

struct list heaps_all = {&heaps_all, &heaps_all};

static struct heap *found_last; /* by heaps_find_by; heaps_lock */

static struct heap_record *record_of(struct list *link)
{
    return CONTAINER_OF(link, struct heap_record, link);
}

/* ---- Heaps ---- */

/* Layout: in a smaller heap one span of cells would be too much of it, and a slab of several pages
 * as well. */
#define COMPACT_BELOW (ONE_OF_MANY * CELL_SPAN_BYTES)

/* A record for a new heap, with its first arena. */
static struct heap_record *record_take(void)
{
    lock_acquire(&heaps_lock);
    struct heap_record *record = NULL;
    if (!list_empty(&heaps.spares)) {
        record = record_of(heaps.spares.next);
        list_remove(&record->link);
    }
    lock_release(&heaps_lock);
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
    lock_acquire(&heaps_lock);
    list_push(&heaps.spares, &record->link);
    lock_release(&heaps_lock);
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
    heap->page_heap.meta = &record->meta;
    if (!page_map_add_range(start, pages, entries))
        return false;
    record->range = start;
    return page_heap_adopt(&heap->page_heap, start, pages << PAGE_SHIFT);
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
    page_heap_init(&heap->page_heap, &record->quota.provider);
    heap->page_heap.other = true;
    heap->page_heap.untouched = settings->outside;
    heap->page_heap.compact =
        settings->outside || settings->buffer != NULL || quota < COMPACT_BELOW;
    arenas_init(&heap->arenas, &heap->page_heap, record->arena,
                record->placed ? 1 : heap_default.arenas.count);
    /* The objects that one thread holds count towards the quota. */
    heap->arenas.held_most = quota / ONE_OF_MANY;
    memset(heap->arenas.cold, 0, sizeof(heap->arenas.cold));
    record->caching = options.thread_cache != 0 && !settings->outside && settings->buffer == NULL;
    record->soft_limit = settings->soft_limit == 0 ? SIZE_MAX : settings->soft_limit;
    record->call_back = settings->call_back;
    record->context = settings->context;
    record->caller = NULL;
    record->visitor = NULL;
    record->told = 0;
    record->range = NULL;
    record->entries = NULL;
    memset(record->name, 0, sizeof(record->name));
    if (settings->name != NULL)
        memcpy(record->name, settings->name,
               size_min(strlen(settings->name), sizeof(record->name) - 1));
    heap->record = record;
    list_init(&record->caches);
}

/* The same where nothing may stand in the buffer. */
static bool buffer_map(struct heap_record *record, char *start, char *end)
{
    start = (char *)align_up((uintptr_t)start, PAGE_BYTES);
    end = (char *)align_down((uintptr_t)end, PAGE_BYTES);
    /* The first page is left out if malloc's heap has a block at that address: free finds it by
     * that. */
    if (entry_is_span(page_map_entry((uintptr_t)start)) ||
        large_has(&heap_default.page_heap, (uintptr_t)start))
        start += PAGE_BYTES;
    if (start >= end)
        return false;
    size_t pages = (size_t)(end - start) >> PAGE_SHIFT;
    record->range_bytes = align_up(pages * sizeof(uintptr_t), os_page_size());
    record->entries = os_map(record->range_bytes, OS_PAGES_UNRESERVED);
    if (record->entries == NULL || !page_map_add_range(start, pages, record->entries))
        return false;
    record->range = start;
    return page_heap_adopt(&record->heap.page_heap, start, pages << PAGE_SHIFT);
}

/* Takes the buffer's pages out of the page map, if they are in it. */
static ALWAYS_INLINE void range_forget(struct heap_record *record)
{
    if (record->range != NULL)
        page_map_remove_range(record->range);
    if (record->entries != NULL)
        os_unmap(record->entries, record->range_bytes);
}

/* Gives a heap its buffer: from `at` on, or the whole if that is NULL. */
static bool buffer_adopt(struct heap_record *record, const struct heap_settings *settings, char *at)
{
    char *end = settings->buffer + settings->buffer_bytes;
    struct page_heap *page_heap = &record->heap.page_heap;
    bool done;
    if (at != NULL) {
        done = buffer_lay_out(record, at, end);
    } else {
        done = buffer_map(record, settings->buffer, end);
    }
    record->fixed_bytes = settings->buffer_bytes - (page_heap->segment_pages << PAGE_SHIFT);
    return done;
}

struct heap *heap_create(const struct heap_settings *settings)
{
    heap_init(); /* malloc's heap, and with it what all heaps need */
    char *at = NULL;
    bool placed = settings->buffer != NULL && !settings->outside;
    struct heap_record *record = placed ? record_place(settings, &at) : record_take();
    if (record == NULL)
        return NULL;
    settings_apply(record, settings);
    if (settings->hardened && !heap_harden(&record->heap)) {
        record_free(record);
        return NULL;
    }
    if (settings->buffer != NULL && !buffer_adopt(record, settings, at)) {
        range_forget(record);
        record_free(record);
        return NULL;
    }
    lock_acquire(&heaps_lock);
    __atomic_store_n(&heaps.ids, heaps.ids + 1, __ATOMIC_RELAXED);
    record->heap.id = heaps.ids;
    if (placed)
        placed_add(&heaps_all, record);
    else
        list_push(&heaps_all, &record->link);
    lock_release(&heaps_lock);
    return &record->heap;
}

void heap_clear(struct heap *heap)
{
    heap_forget_samples(heap);
    lock_acquire(&heaps_lock); /* to the end: who walks all heaps must not meet a half of one, nor
                               may a fork */
    heap_forget_caches(heap->record, false);
    heap_harden_clear(heap);
    arenas_clear(&heap->arenas);
    page_heap_clear(&heap->page_heap, true);
    lock_release(&heaps_lock);
}

/* Takes a heap out of the list. False: it is the parent's, which shares it. */
static bool record_leave(struct heap_record *record)
{
    if (record->placed)
        return placed_remove(record);
    list_remove(&record->link);
    return true;
}

void heap_destroy(struct heap *heap)
{
    struct heap_record *record = heap->record;
    heap_forget_samples(heap);
    lock_acquire(&heaps_lock);
    if (found_last == heap)
        found_last = NULL;
    if (!record_leave(record)) {
        lock_release(&heaps_lock);
        return;
    }
    heap_forget_caches(record, true);
    heap_harden_leave(heap);
    lock_release(&heaps_lock);
    heap_harden_end(heap);
    arenas_clear(&heap->arenas);
    page_heap_clear(&heap->page_heap, false);
    heap->id = 0;
    range_forget(record);
    record_free(record);
}

/* ---- All heaps ---- */

bool heaps_exist(void)
{
    /* relaxed: who has a block of a heap knows that it was made */
    return __atomic_load_n(&heaps.ids, __ATOMIC_RELAXED) != 0;
}

static struct heap *find(bool (*act)(struct heap *heap, void *context), void *context)
{
    LIST_EACH(node, &heaps_all)
        if (act(&record_of(node)->heap, context))
            return &record_of(node)->heap;
    return NULL;
}

struct heap *heaps_find(bool (*act)(struct heap *heap, void *context), void *context)
{
    struct misuse_waits waits;
    heaps_hold(&waits);
    struct heap *found = find(act, context);
    heaps_let_go(&waits);
    return found;
}

struct heap *heaps_find_by(bool (*is)(struct heap *heap, void *context), void *context)
{
    lock_acquire(&heaps_lock);
    struct heap *found = found_last;
    if (found == NULL || !is(found, context))
        found = find(is, context);
    if (found != NULL)
        found_last = found;
    lock_release(&heaps_lock);
    return found;
}

/* ---- Checking ---- */

static const char *check_shared(struct heap *heap)
{
    struct misuse misuse;
    const char *wrong = heap->hardened != NULL ? hard_check(heap->hardened, &misuse) : NULL;
    if (wrong == NULL)
        wrong = arenas_check(&heap->arenas);
    if (wrong == NULL)
        wrong = shared_do_all(&heap->arenas, SHARED_CHECK);
    return wrong != NULL ? wrong : page_heap_check(&heap->page_heap);
}

const char *heap_check_of(struct heap *heap)
{
    const struct cache *cache = heap_cache_if_any(heap);
    check_begin();
    const char *wrong = cache_check(cache);
    return wrong != NULL ? wrong : check_shared(heap);
}

struct checking {
    const char *(*check)(struct heap *heap);
    const char *wrong;
};

static bool check_next(struct heap *heap, void *context)
{
    struct checking *checking = context;
    checking->wrong = checking->check(heap);
    return checking->wrong != NULL;
}

static const char *check_all(const char *(*check)(struct heap *heap))
{
    struct checking checking = {check, NULL};
    check_begin();
    if (!check_next(&heap_default, &checking)) {
        checking.wrong = guard_check();
        if (checking.wrong == NULL)
            heaps_find(check_next, &checking);
    }
    return checking.wrong;
}

const char *heap_check(void)
{
    heap_init();
    return check_all(heap_check_of);
}

const char *heap_check_shared(void)
{
    return check_all(check_shared);
}

/* ---- Fork ---- */

void heaps_fork_in_child(void)
{
    placed_fork_in_child(&heaps_all);
    found_last = NULL;
}

/* While the process forks: a heap that is the child's as well as the parent's, as it is. */
static bool is_left_alone(const struct heap_record *record)
{
    return record->placed && placed_is_shared(record);
}

/* Threads that the child does not have do nothing in it. */
static void forget_thread(const void **thread)
{
    if (*thread != &thread_self)
        *thread = NULL;
}

void heaps_orphan(void)
{
    LIST_EACH(node, &heaps_all) {
        struct heap_record *record = record_of(node);
        if (is_left_alone(record))
            continue;
        forget_thread(&record->caller);
        forget_thread(&record->visitor);
        arenas_orphan(&record->heap.arenas, heap_end_orphans);
        heap_harden_forked(&record->heap);
    }
}

void heaps_fork_dice(void)
{
    os_random_fork();
    if (heap_default.hardened != NULL)
        hard_fork_dice(heap_default.hardened);
    LIST_EACH(node, &heaps_all)
        if (record_of(node)->heap.hardened != NULL)
            hard_fork_dice(record_of(node)->heap.hardened);
}

/* What lies in a buffer has its metadata there. */
static void record_meta_lock(struct heap_record *record, void (*act)(struct lock *lock))
{
    if (record->placed)
        act(&record->meta.lock);
}

void heaps_each_lock_of(enum lock_rank rank, void (*act)(struct lock *lock))
{
    if (rank == RANK_HEAPS) {
        act(&heaps_lock);
        return;
    }
    LIST_EACH(node, &heaps_all) {
        struct heap *heap = &record_of(node)->heap;
        if (is_left_alone(record_of(node)))
            continue;
        if (rank == RANK_ARENAS)
            act(&heap->arenas.lock);
        else if (rank == RANK_PURGE)
            act(&heap->page_heap.purge_lock);
        else if (rank == RANK_PAGE_HEAP)
            act(&heap->page_heap.lock);
        else if (rank == RANK_META)
            record_meta_lock(record_of(node), act);
        else if (rank >= RANK_HARD_WAIT && rank <= RANK_HARD_ZONE)
            heap_harden_each_lock(heap, rank, act);
        else
            arenas_each_lock_of(&heap->arenas, rank, act);
    }
}
