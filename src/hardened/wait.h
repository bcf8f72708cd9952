/*
 * A quarantine: objects that were freed wait in it, so that a pointer that is left to one does not
 * lead to another soon, and that what is written through it is found.
 *
 * The idea: two halves. What comes in is put behind the others of the younger half, a ring. The
 * oldest of a full ring goes to a random place of the older half, and what was there leaves. So
 * nothing leaves before half of what may wait has come in behind it, and nobody can tell when it
 * does. That is all as long as the number bounds what waits. If its bytes do, there is a turn now
 * and then, in which some of the older half leave, at random; if that is empty, half of the ring
 * becomes it.
 *
 *     ring     the younger half: `young` of it from `first` on, the oldest first
 *     places   the older half: the first `old` of it, in no order
 *
 * Cost: a few instructions; one word of random bits serves four. Not thread-safe.
 */
#ifndef SNUG_HARDENED_WAIT_H
#define SNUG_HARDENED_WAIT_H

#include "base/peek.h"
#include "hardened/bin.h"
#include "hardened/dice.h"

/* One part in: of the bytes that may wait goes in a turn, which is seldom enough then. */
enum { TURN_SHARE = 16 };

struct hard_wait {
    struct hard_entry *ring;   /* of `half` entries, a power of two */
    struct hard_entry *places; /* of as many, behind them */
    uint32_t half;
    uint32_t mask; /* half - 1 */
    uint32_t first;
    uint32_t young, old;
    uint32_t count, count_most; /* count == young + old; count_most == 2 * half */
    uint32_t least;             /* so many stay however large: 1, or 0 if none may wait */
    size_t bytes;               /* == sum over the entries of their classes' bytes */
    size_t bytes_most;
    uint64_t bits; /* random ones for the next draws */
    uint64_t random;
};

/* Makes an empty one for so many bytes and objects. False: no memory. (hard_make.c) */
bool hard_wait_init(struct hard_wait *wait, size_t bytes, size_t count);

/* How many bytes may wait from now on. */
static inline void wait_limit(struct hard_wait *wait, size_t bytes)
{
    wait->bytes_most = wait->least != 0 ? bytes : 0;
}

/* Forgets all that is in it. */
static inline void wait_forget(struct hard_wait *wait)
{
    wait->first = wait->young = wait->old = 0;
    GAUGE_SET(wait->count, 0);
    GAUGE_SET(wait->bytes, 0);
}

/* Each that waits, by its number; those of the older half first. */
static inline struct hard_entry *wait_at(const struct hard_wait *wait, uint32_t number)
{
    if (number < wait->old)
        return &wait->places[number];
    return &wait->ring[(wait->first + number - wait->old) & wait->mask];
}

/* Layout: bits of a random number that one draw takes; no half has more entries than that counts.
 */
enum { DRAW_BITS = 16 };

static ALWAYS_INLINE uint32_t wait_draw(struct hard_wait *wait)
{
    uint64_t bits = wait->bits;
    if (UNLIKELY(bits == 0))
        bits = dice_word(&wait->random);
    wait->bits = bits >> DRAW_BITS;
    return (uint16_t)bits;
}

/* As a copy of the structure, which compilers make word by word. */
static ALWAYS_INLINE void entry_move(struct hard_entry *to, const struct hard_entry *from)
{
    typedef uint64_t entry_pair __attribute__((may_alias, vector_size(16), aligned(8)));
    *(entry_pair *)to = *(const entry_pair *)from;
}

/* Whether one has to leave for each that comes. */
static ALWAYS_INLINE bool wait_is_full(const struct hard_wait *wait)
{
    return wait->count == wait->count_most;
}

/* Whether there is a turn: then wait_take is called as long as wait_is_over. */
static ALWAYS_INLINE bool wait_has_turn(const struct hard_wait *wait)
{
    return wait->bytes > wait->bytes_most;
}

/* Puts an object of so many bytes into one that is full. Returns what leaves. */
static ALWAYS_INLINE struct hard_entry wait_change(struct hard_wait *wait, struct hard_entry entry,
                                                   size_t bytes)
{
    uint32_t first = wait->first, mask = wait->mask;
    struct hard_entry *oldest = &wait->ring[first & mask];
    struct hard_entry *place = &wait->ring[mask + 1 + (wait_draw(wait) & mask)], leaves = *place;
    entry_move(place, oldest);
    *oldest = entry; /* which is where the next one's place is */
    __atomic_signal_fence(__ATOMIC_RELEASE);
    wait->first = first + 1;
    GAUGE_ADD(wait->bytes, bytes - hard_classes[entry_hard_class(&leaves)].bytes);
    return leaves;
}

/* The oldest of the ring becomes one of the older half, which has room. */
static inline void wait_age(struct hard_wait *wait)
{
    wait->places[wait->old] = wait->ring[wait->first & wait->mask];
    __atomic_signal_fence(__ATOMIC_RELEASE);
    wait->old++;
    wait->first++;
    wait->young--;
}

/* Puts an object of so many bytes into one that is not full. */
static ALWAYS_INLINE void wait_add(struct hard_wait *wait, struct hard_entry entry, size_t bytes)
{
    if (UNLIKELY(wait->young == wait->half))
        wait_age(wait);
    wait->ring[(wait->first + wait->young) & wait->mask] = entry;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    wait->young++;
    GAUGE_SET(wait->count, wait->count + 1);
    GAUGE_ADD(wait->bytes, bytes);
}

/* Whether one has to go, in a turn. */
static inline bool wait_is_over(const struct hard_wait *wait)
{
    return wait->bytes > wait->bytes_most - wait->bytes_most / TURN_SHARE &&
           wait->count > wait->least;
}

/* One of the older half leaves; something must wait. */
static inline struct hard_entry wait_take(struct hard_wait *wait)
{
    if (wait->old == 0)
        for (uint32_t stay = wait->young / 2; wait->young > stay;)
            wait_age(wait);
    struct hard_entry *place = &wait->places[wait_draw(wait) * wait->old >> DRAW_BITS];
    struct hard_entry leaves = *place;
    *place = wait->places[wait->old - 1];
    __atomic_signal_fence(__ATOMIC_RELEASE);
    wait->old--;
    GAUGE_SET(wait->count, wait->count - 1);
    GAUGE_ADD(wait->bytes, -(size_t)hard_classes[entry_hard_class(&leaves)].bytes);
    return leaves;
}

#endif
