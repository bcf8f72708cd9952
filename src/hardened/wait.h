/*
 * A quarantine: objects that were freed wait in it, so that an old pointer to one does not lead to
 * another soon, and that what is written through it is found.
 *
 * The idea: it has two halves. A freed object is put behind the others of the younger half, a ring.
 * Once the quarantine is full, by number or nearly so by bytes, the oldest of the ring goes to a
 * random place of the older half each time, and the object that was there leaves. So nothing leaves
 * before about half of what may wait has come in behind it, and nobody can tell when it does. If
 * the objects that come are larger than those that leave, there is a turn now and then, in which
 * some more of the older half leave.
 *
 *     ring     the younger half: `young` of it from `first` on, the oldest first
 *     places   the older half: the first `old` of it, in no order
 *
 * Cost: a few instructions. Not thread-safe.
 */
#ifndef SNUG_HARDENED_WAIT_H
#define SNUG_HARDENED_WAIT_H

#include "base/peek.h"
#include "hardened/bin.h"
#include "hardened/dice.h"

/* One part in: of the bytes that may wait goes in a turn, which is seldom enough then. Above that
 * one leaves for each that comes. */
enum { TURN_SHARE = 16 };

struct hard_wait {
    struct hard_entry *ring;   /* of mask + 1 entries */
    struct hard_entry *places; /* behind them, of as many */
    uint32_t mask;
    uint32_t first;
    uint32_t young, old;        /* old <= young <= old + 1 */
    uint32_t count, count_most; /* count == young + old */
    uint32_t least;             /* so many stay, however large: 1, or 0 if none may wait */
    size_t bytes;               /* == sum over the entries of their classes' bytes */
    size_t bytes_enough, bytes_most;
    uint64_t random;
};

/* Makes an empty quarantine for so many bytes and objects. False: no memory. (hard_make.c) */
bool hard_wait_init(struct hard_wait *wait, size_t bytes, size_t count);

/* Sets how many bytes may wait from now on. */
static inline void wait_limit(struct hard_wait *wait, size_t bytes)
{
    wait->bytes_most = wait->least != 0 ? bytes : 0;
    wait->bytes_enough = wait->bytes_most - wait->bytes_most / TURN_SHARE;
}

/* Forgets all that is in a quarantine. */
static inline void wait_forget(struct hard_wait *wait)
{
    wait->first = wait->young = wait->old = 0;
    GAUGE_SET(wait->count, 0);
    GAUGE_SET(wait->bytes, 0);
}

/* Each entry by its number; those of the older half first. */
static inline struct hard_entry *wait_at(const struct hard_wait *wait, uint32_t number)
{
    if (number < wait->old)
        return &wait->places[number];
    return &wait->ring[(wait->first + number - wait->old) & wait->mask];
}

/* A random entry of the older half, which has some. */
static ALWAYS_INLINE struct hard_entry *wait_draw(struct hard_wait *wait)
{
    return &wait->places[(uint64_t)dice_quick(&wait->random) * wait->old >> 32];
}

/* Copies an entry at once. Compilers copy the structure word by word. */
static ALWAYS_INLINE void entry_move(struct hard_entry *to, const struct hard_entry *from)
{
    typedef uint64_t entry_pair __attribute__((may_alias, vector_size(16), aligned(8)));
    *(entry_pair *)to = *(const entry_pair *)from;
}

/* Whether an object has to leave for each that comes, and can. */
static ALWAYS_INLINE bool wait_is_full(const struct hard_wait *wait)
{
    return LIKELY(wait->count == wait->count_most) ||
           (wait->bytes > wait->bytes_enough && wait->old != 0);
}

/* Whether there is a turn: then wait_take is called as long as wait_is_over. */
static ALWAYS_INLINE bool wait_has_turn(const struct hard_wait *wait)
{
    return wait->bytes > wait->bytes_most;
}

/* Puts an object of so many bytes into a quarantine that is full. Returns the one that leaves. */
static ALWAYS_INLINE struct hard_entry wait_change(struct hard_wait *wait, struct hard_entry entry,
                                                   size_t bytes)
{
    uint32_t first = wait->first, mask = wait->mask;
    struct hard_entry *ring = wait->ring, *place = wait_draw(wait), leaves = *place;
    entry_move(place, &ring[first & mask]);
    ring[(first + wait->young) & mask] = entry;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    wait->first = first + 1;
    GAUGE_ADD(wait->bytes, bytes - hard_bytes_of(entry_hard_class(&leaves)));
    return leaves;
}

/* Puts an object of so many bytes into a quarantine that is not full. (wait.c) */
void wait_add(struct hard_wait *wait, struct hard_entry entry, size_t bytes);

/* Whether one more has to leave in a turn. */
static inline bool wait_is_over(const struct hard_wait *wait)
{
    return wait->bytes > wait->bytes_enough && wait->count > wait->least;
}

/* Takes out an object of the older half; something must wait. (wait.c) */
struct hard_entry wait_take(struct hard_wait *wait);

#endif
