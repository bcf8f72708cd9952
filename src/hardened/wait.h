/*
 * A quarantine: objects that were freed wait in it, so that a pointer that is left to one does not
 * lead to another soon, and that what is written through it is found.
 *
 * The idea: a ring. What comes in is put behind the others, and nothing else is done until there
 * are too many, or too many bytes; then it is the turn of the oldest, a part of all, to go, and
 * what came in since the last turn changes places with random ones of the younger half. So nobody
 * can tell when an address comes back, and about half of what waits goes before.
 *
 * Cost: a few instructions, and a few more for each in a turn; one word of random bits serves four.
 * Not thread-safe.
 */
#ifndef SNUG_HARDENED_WAIT_H
#define SNUG_HARDENED_WAIT_H

#include "base/peek.h"
#include "hardened/bin.h"
#include "hardened/dice.h"

/* One part in: of what may wait goes in a turn, which is seldom enough then, and no more than half
 * a magazine of what a thread has (hard_class.c). */
enum { TURN_SHARE = 16 };

struct hard_wait {
    struct hard_entry *ring; /* of mask + 1 entries */
    uint32_t mask;
    uint32_t first, count;
    uint32_t settled; /* the index behind the last that has changed places, counted as `first` is */
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

/* Puts an object of so many bytes behind the others. Whether it is the turn of the oldest: if so,
 * wait_settle must be called before the next is put. */
static ALWAYS_INLINE bool wait_put(struct hard_wait *wait, struct hard_entry entry, size_t bytes)
{
    uint32_t count = wait->count;
    *wait_at(wait, count) = entry;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    GAUGE_SET(wait->count, count + 1);
    GAUGE_ADD(wait->bytes, bytes);
    return wait->count > wait->count_most || wait->bytes > wait->bytes_most;
}

/* Of so many, or so many bytes, which is the most: what a turn leaves. */
static ALWAYS_INLINE size_t wait_stays(size_t most)
{
    return most - most / TURN_SHARE;
}

/* Whether the oldest has to go, in a turn. One stays whatever its size. */
static inline bool wait_is_over(const struct hard_wait *wait)
{
    return wait->count > wait_stays(wait->count_most) ||
           (wait->bytes > wait_stays(wait->bytes_most) && wait->count > 1);
}

/* The oldest of `count`, which is not 0. The bytes are left to the caller. */
static ALWAYS_INLINE struct hard_entry wait_get(struct hard_wait *wait, uint32_t count)
{
    uint32_t first = wait->first;
    struct hard_entry oldest = wait->ring[first & wait->mask];
    GAUGE_SET(wait->count,
              count - 1); /* before `first`: see hardened.c on what a child of fork finds */
    __atomic_signal_fence(__ATOMIC_RELEASE);
    wait->first = first + 1;
    return oldest;
}

/* The oldest; there must be one. */
static inline struct hard_entry wait_take(struct hard_wait *wait)
{
    struct hard_entry oldest = wait_get(wait, wait->count);
    GAUGE_ADD(wait->bytes, -(size_t)hard_classes[entry_hard_class(&oldest)].bytes);
    return oldest;
}

/* Layout: bits of a random number that one draw takes; no ring has more entries than that counts.
 */
enum { DRAW_BITS = 16 };

/* Ends a turn: those that have come in since the last change places. */
static inline void wait_settle(struct hard_wait *wait)
{
    struct hard_entry *ring = wait->ring;
    uint32_t first = wait->first, mask = wait->mask, count = wait->count;
    uint32_t last = wait->settled - first;
    uint64_t bits = 0;
    for (last = last <= count ? last : 0; last < count; last++) {
        bits >>= DRAW_BITS;
        if (bits == 0)
            bits = dice_word(&wait->random);
        uint32_t back = (uint16_t)bits * ((last + 1) / 2) >> DRAW_BITS;
        struct hard_entry *newer = &ring[(first + last) & mask], entry = *newer;
        struct hard_entry *place = &ring[(first + last - back) & mask];
        *newer = *place;
        *place = entry;
    }
    wait->settled = first + count;
}

#endif
