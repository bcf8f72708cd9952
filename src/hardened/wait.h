/*
 * A quarantine: objects that were freed wait in it, so that a pointer that is left to one does not
 * lead to another soon, and that what is written through it is found.
 *
 * The idea: a ring, out of which the oldest goes when there are too many, or too many bytes. What
 * comes in changes places with a random one of the younger half. So nobody can tell when an
 * address comes back, and never before half of what waits has gone.
 *
 * Cost: a few instructions. Not thread-safe.
 */
#ifndef SNUG_HARDENED_WAIT_H
#define SNUG_HARDENED_WAIT_H

#include "base/peek.h"
#include "hardened/bin.h"
#include "hardened/dice.h"

struct hard_wait {
    struct hard_entry *ring; /* of mask + 1 entries */
    uint32_t mask;
    uint32_t first, count;
    uint32_t count_most;
    size_t bytes; /* == sum over the entries of their classes' bytes */
    size_t bytes_most;
    uint64_t random;
};

/* Makes an empty one for so many bytes and objects. False: no memory. (hard_make.c) */
bool hard_wait_init(struct hard_wait *wait, size_t bytes, size_t count);

static ALWAYS_INLINE struct hard_entry *wait_at(const struct hard_wait *wait, uint32_t index)
{
    return &wait->ring[(wait->first + index) & wait->mask];
}

/* Whether the oldest has to go. One stays whatever its size. */
static ALWAYS_INLINE bool wait_is_over(const struct hard_wait *wait)
{
    return wait->count > wait->count_most || (wait->bytes > wait->bytes_most && wait->count > 1);
}

/* An object of so many bytes. There must be room: count <= mask. */
static ALWAYS_INLINE void wait_put(struct hard_wait *wait, struct hard_entry entry, size_t bytes)
{
    uint32_t last = wait->count, younger = (last + 1) / 2;
    struct hard_entry *place = wait_at(wait, last - dice_below(&wait->random, younger + 1));
    *wait_at(wait, last) = *place;
    *place = entry;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    GAUGE_SET(wait->count, last + 1);
    GAUGE_ADD(wait->bytes, bytes);
}

/* The oldest; there must be one. */
static ALWAYS_INLINE struct hard_entry wait_get(struct hard_wait *wait)
{
    struct hard_entry oldest = *wait_at(wait, 0);
    GAUGE_ADD(wait->count, -1); /* before `first`: see hardened.c on what a child of fork finds */
    __atomic_signal_fence(__ATOMIC_RELEASE);
    wait->first++;
    GAUGE_ADD(wait->bytes, -(size_t)hard_classes[entry_hard_class(&oldest)].bytes);
    return oldest;
}

#endif
