/*
 * Giving back. See reclaim.h.
 */
#include "heap/reclaim.h"

#include "heap/harden.h"
#include "heap/thread.h"
#include "heap/user_heaps.h"
#include "magazine/shared.h"
#include "pageheap/meta_pages.h"
#include "provider/limit.h"

/* ---- One heap ---- */

size_t heap_trim_of(struct heap *heap, size_t keep)
{
    size_t hardened = heap_harden_trim(heap);
    struct cache *cache = heap_cache(heap);
    if (cache_exists(cache))
        cache_flush(cache);
    shared_do_all(&heap->arenas, SHARED_FLUSH);
    arenas_end_orphans_once(&heap->arenas);
    size_t purged = arenas_trim(&heap->arenas);
    return hardened + purged + page_heap_purge(&heap->page_heap, keep >> PAGE_SHIFT);
}

size_t heap_trim(size_t keep)
{
    return heap_trim_of(&heap_default, keep);
}

/* ---- Limits ---- */

/* Calls the program's function for a heap that lacks so many bytes. False: there is none. */
static bool heap_call_back(struct heap *heap, size_t missing)
{
    struct heap_record *record = heap->record;
    /* The function may allocate and free: it is not called from within itself. relaxed: the flag
     * guards nothing else */
    const void *nobody = NULL;
    if (record == NULL || record->call_back == NULL ||
        !__atomic_compare_exchange_n(&record->caller, &nobody, &thread_self, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return false;
    bool pinned = heap_pin();
    record->call_back(record->context, heap, missing);
    heap_unpin(pinned);
    __atomic_store_n(&record->caller, NULL, __ATOMIC_RELAXED);
    return true;
}

void *heap_look_at_limit(struct heap *heap, void *block)
{
    struct heap_record *record = heap->record;
    size_t used = quota_used(&record->quota);
    size_t told = __atomic_load_n(&record->told, __ATOMIC_RELAXED);
    if (used > record->soft_limit && used > told) {
        __atomic_store_n(&record->told, used, __ATOMIC_RELAXED);
        heap_call_back(heap, used - record->soft_limit);
    } else if (used <= record->soft_limit && told != 0) {
        __atomic_store_n(&record->told, 0, __ATOMIC_RELAXED);
    }
    return block;
}

/* ---- There is no memory ---- */

/* Whether `bytes` might be had if all heaps gave back all that they have except huge blocks. */
static bool trim_may_help(const struct heap *heap, size_t bytes)
{
    size_t mapped = limit_used();
    /* relaxed: both change while this is read, and what comes of it is a guess */
    size_t huge = __atomic_load_n(&heap->page_heap.huge_pages, __ATOMIC_RELAXED) << PAGE_SHIFT;
    return provider_might_take(heap->page_heap.provider, bytes, mapped - size_min(mapped, huge));
}

/* Whether other heaps' memory may help: not where a quota or the end of a buffer is in the way. */
static bool others_may_help(const struct heap_record *record, size_t bytes)
{
    return record == NULL ||
           (record->quota.under != &provider_none &&
            record->quota.limit - quota_used(&record->quota) >= size_max(bytes, SEGMENT_LEAST));
}

struct trim_of_others {
    const struct heap *but;
    size_t given;
};

/* The list of heaps is locked. */
static bool trim_other(struct heap *heap, void *context)
{
    struct trim_of_others *trim = context;
    if (heap != trim->but && heap->record->visitor == NULL) {
        heap_end_orphans_locked(heap->record);
        if (heap->hardened != NULL)
            trim->given += hard_trim(heap->hardened);
        trim->given += arenas_trim(&heap->arenas) + page_heap_purge(&heap->page_heap, 0);
    }
    return false;
}

/* Gives back free memory of all heaps but this one, if that may help it to get `bytes`. False:
 * there was none. */
static bool trim_others(struct heap *heap, size_t bytes)
{
    if (!others_may_help(heap->record, bytes))
        return false;
    struct trim_of_others trim = {heap, heap != &heap_default ? heap_trim(0) : 0};
    heaps_find(trim_other, &trim);
    return trim.given != 0;
}

bool heap_reclaim(struct heap *heap, size_t bytes, enum reclaim_step *step)
{
    if (bytes >= MAX_REQUEST / 2)
        return false;
    if (page_heap_feed_meta(&heap_default.page_heap)) /* the one that nobody ends */
        return true;
    if (*step == RECLAIM_OWN && !trim_may_help(heap, bytes))
        *step = RECLAIM_TELL;
    switch ((*step)++) {
    case RECLAIM_OWN:
        heap_trim_of(heap, 0);
        return true;
    case RECLAIM_OTHERS:
        if (trim_others(heap, bytes))
            return true;
        *step = RECLAIM_END;
        /* fall through */
    case RECLAIM_TELL:
        if (!heap_call_back(heap, bytes))
            return false;
        heap_trim_of(heap, 0);
        return true;
    default:
        return false;
    }
}
