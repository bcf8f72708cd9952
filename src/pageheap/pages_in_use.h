/*
 * Pages that all heaps together have in use, large blocks that wait to be taken again (recent.h)
 * among them, for one purpose: to look at what is live while there is most of it (report/peak.h).
 * Who takes pages compares their number with one that the looker left, and asks for a look at the
 * next slow path; nobody looks while a lock is held.
 *
 * Cost: a store and a comparison where pages are taken or freed, for other heaps than malloc's an
 * atomic addition.
 */
#ifndef SNUG_PAGEHEAP_PAGES_IN_USE_H
#define SNUG_PAGEHEAP_PAGES_IN_USE_H

#include "base/peek.h"
#include "stats/event.h"

struct pages_in_use {
    size_t malloc; /* of malloc's heap; written under its lock */
    size_t others; /* of all others */
    size_t wanted; /* from so many on, a look is asked for */
};

extern INTERNAL struct pages_in_use pages_in_use;

static inline size_t pages_in_use_now(void)
{
    /* relaxed: both are only compared */
    return __atomic_load_n(&pages_in_use.malloc, __ATOMIC_RELAXED) +
           __atomic_load_n(&pages_in_use.others, __ATOMIC_RELAXED);
}

static inline void pages_in_use_compare(void)
{
    if (UNLIKELY(pages_in_use_now() >= __atomic_load_n(&pages_in_use.wanted, __ATOMIC_RELAXED)))
        __atomic_store_n(&events.wanted.peak, 1, __ATOMIC_RELAXED);
}

#endif
