/*
 * What a quarantine does seldom. See wait.h.
 */
#include "hardened/wait.h"

/* The oldest of the ring becomes one of the older half, which has room. */
static void wait_age(struct hard_wait *wait)
{
    wait->places[wait->old] = wait->ring[wait->first & wait->mask];
    __atomic_signal_fence(__ATOMIC_RELEASE);
    wait->old++;
    wait->first++;
    wait->young--;
}

void wait_add(struct hard_wait *wait, struct hard_entry entry, size_t bytes)
{
    if (wait->young > wait->old)
        wait_age(wait);
    wait->ring[(wait->first + wait->young) & wait->mask] = entry;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    wait->young++;
    GAUGE_SET(wait->count, wait->count + 1);
    GAUGE_ADD(wait->bytes, bytes);
}

struct hard_entry wait_take(struct hard_wait *wait)
{
    if (wait->young > wait->old)
        wait_age(wait);
    struct hard_entry *place = wait_draw(wait), leaves = *place;
    *place = wait->places[wait->old - 1];
    __atomic_signal_fence(__ATOMIC_RELEASE);
    wait->old--;
    GAUGE_SET(wait->count, wait->count - 1);
    GAUGE_ADD(wait->bytes, -(size_t)hard_classes[entry_hard_class(&leaves)].bytes);
    return leaves;
}
