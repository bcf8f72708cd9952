/*
 * The number of pages that all heaps together have in use, large blocks that wait (recent.h) among
 * them. It has one purpose: the report of the peak looks at live blocks while there are most of
 * them (report/peak.h). A function that takes pages compares their number with one that the last
 * look left, and asks for another look at the next slow path (peak_compare in nearby.h). Nobody
 * looks while a lock is held.
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

/* Whether there are enough for another look without so many that wait. */
static inline bool pages_in_use_are_enough(size_t waiting)
{
    /* relaxed: a hint */
    return pages_in_use_now() >= __atomic_load_n(&pages_in_use.wanted, __ATOMIC_RELAXED) + waiting;
}

#endif
