/*
 * Large blocks by processor. See nearby.h.
 */
#include "pageheap/nearby.h"

#include "pageheap/large_margin.h"
#include "pageheap/recent.h"
#include "platform/thread.h"

/* Of malloc's heap. */
BULKY static struct nearby all[NEARBY_MOST];

COLD void nearby_begin(struct page_heap *page_heap, unsigned processors)
{
    page_heap->nearby_log = 0;
    while (1u << page_heap->nearby_log < size_min(processors, NEARBY_MOST))
        page_heap->nearby_log++;
    page_heap->nearby_may = true;
}

/* The processor's. There must be some. */
static inline struct nearby *nearby_here(const struct page_heap *page_heap)
{
    return &page_heap->nearby[os_cpu() & ((1u << page_heap->nearby_log) - 1)];
}

/* Made when the first is needed, as most programs have one thread. */
static COLD void nearby_make(struct page_heap *page_heap)
{
    for (size_t i = 0; i < (size_t)1 << page_heap->nearby_log; i++)
        lock_init(&all[i].lock, RANK_NEARBY);
    /* release: who sees them sees their locks */
    __atomic_store_n(&page_heap->nearby, all, __ATOMIC_RELEASE);
}

static struct span **known_slot(struct nearby *nearby, uintptr_t address)
{
    return &nearby->known[bits_spread(address >> PAGE_SHIFT, NEARBY_KNOWN_LOG)];
}

/* relaxed: nearby_put looks without the lock, and asks again with it */
static void known_set(struct span **known, struct span *span)
{
    __atomic_store_n(known, span, __ATOMIC_RELAXED);
}

struct span *nearby_take(const struct page_heap *page_heap, size_t pages, size_t alignment)
{
    struct nearby *nearby = nearby_here(page_heap);
    /* relaxed: a hint */
    if (__atomic_load_n(&nearby->recent.count, __ATOMIC_RELAXED) == 0)
        return NULL;
    lock_acquire_call(&nearby->lock);
    struct span *span = recent_take(&nearby->recent, pages, alignment);
    if (span != NULL)
        known_set(known_slot(nearby, (uintptr_t)span->start), span);
    lock_release_call(&nearby->lock);
    peak_compare(page_heap);
    return span;
}

bool nearby_put(struct page_heap *page_heap, uintptr_t address)
{
    struct nearby *nearby = nearby_here(page_heap);
    struct span **known = known_slot(nearby, address);
    if (__atomic_load_n(known, __ATOMIC_RELAXED) == NULL)
        return false;
    lock_acquire_call(&nearby->lock);
    struct span *span = *known;
    struct recent *recent = &nearby->recent;
    /* A fresh margin is looked at under the page heap's lock. */
    bool done = span != NULL && (uintptr_t)span->start == address && recent->count < RECENT_MOST &&
                recent->pages + span->pages <= nearby->room && span->margin <= 0 &&
                margin_is_sound_call(page_heap, span);
    if (done) {
        known_set(known, NULL);
        waiting_seal(span);
        recent_add(recent, span);
    }
    lock_release_call(&nearby->lock);
    return done;
}

COLD void peak_ask(const struct page_heap *page_heap)
{
    /* relaxed, both: hints */
    size_t waiting = __atomic_load_n(&page_heap->recent.pages, __ATOMIC_RELAXED);
    if (nearby_there(page_heap))
        waiting += __atomic_load_n(&nearby_here(page_heap)->recent.pages, __ATOMIC_RELAXED);
    if (pages_in_use_are_enough(waiting))
        __atomic_store_n(&events.wanted.peak, 1, __ATOMIC_RELAXED);
}

/* Pages that may wait near a processor: none where the system refused memory. */
static size_t room_of_one(const struct page_heap *page_heap)
{
    if (page_heap->refused)
        return 0;
    size_t base = size_max(options.dirty >> PAGE_SHIFT, page_heap->used_pages / SLACK_SHARE);
    return base / 2 >> page_heap->nearby_log;
}

COLD void nearby_note(struct page_heap *page_heap, struct span *span)
{
    page_heap->waits_seen = __atomic_load_n(&lock_waits[RANK_PAGE_HEAP], __ATOMIC_RELAXED);
    if (!page_heap->nearby_may)
        return;
    if (page_heap->nearby == NULL)
        nearby_make(page_heap);
    struct nearby *nearby = nearby_here(page_heap);
    lock_acquire_call(&nearby->lock);
    nearby->room = room_of_one(page_heap);
    span->owner = nearby;
    known_set(known_slot(nearby, (uintptr_t)span->start), span);
    lock_release_call(&nearby->lock);
}

bool nearby_has(const struct nearby *nearby, const struct span *span)
{
    for (unsigned i = 0; i < nearby->recent.count; i++)
        if (nearby->recent.spans[i] == span)
            return true;
    return false;
}

COLD bool nearby_waits(struct span *span, bool leaves)
{
    struct nearby *nearby = nearby_of(span);
    lock_acquire_call(&nearby->lock);
    bool waits = nearby_has(nearby, span);
    if (!waits && leaves) {
        struct span **known = known_slot(nearby, (uintptr_t)span->start);
        if (*known == span)
            known_set(known, NULL);
        span->owner = NULL;
    }
    lock_release_call(&nearby->lock);
    return waits;
}

static COLD bool join(struct page_heap *page_heap, struct nearby *nearby)
{
    bool retired = false;
    lock_acquire_call(&nearby->lock);
    while (nearby->recent.count != 0)
        retired |= recent_join_span(page_heap, recent_take_out(&nearby->recent, 0)) == NULL;
    nearby->room = room_of_one(page_heap);
    lock_release_call(&nearby->lock);
    return retired;
}

COLD bool nearby_join_here(struct page_heap *page_heap)
{
    if (!nearby_there(page_heap))
        return false;
    struct nearby *nearby = nearby_here(page_heap);
    /* relaxed: a hint; a block that begins to wait now is as one that is freed later */
    return __atomic_load_n(&nearby->recent.count, __ATOMIC_RELAXED) != 0 && join(page_heap, nearby);
}

COLD bool nearby_join(struct page_heap *page_heap)
{
    bool retired = false;
    for (size_t i = 0; i < nearby_count(page_heap); i++)
        retired |= join(page_heap, &page_heap->nearby[i]);
    return retired;
}

COLD void nearby_each_lock(const struct page_heap *page_heap, void (*act)(struct lock *lock))
{
    for (size_t i = 0; i < nearby_count(page_heap); i++)
        act(&page_heap->nearby[i].lock);
}
