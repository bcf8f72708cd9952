/*
 * Random numbers for places and orders: fast, and not to be guessed from outside as long as none of
 * them is seen. Each user has a state of its own, seeded by the system (os_random).
 *
 * Source: S. Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled"
 * (2016), xorshift64*.
 */
#ifndef SNUG_HARDENED_DICE_H
#define SNUG_HARDENED_DICE_H

#include "platform/thread.h"

/* In a child of fork: goes on otherwise than the parent. */
static inline void dice_fork(uint64_t *state)
{
    *state = (*state ^ os_random()) | 1;
}

static ALWAYS_INLINE uint64_t dice_word(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545f4914f6cdd1du;
}

static ALWAYS_INLINE uint32_t dice_next(uint64_t *state)
{
    return (uint32_t)(dice_word(state) >> 32);
}

/* The same by fewer instructions: a linear congruential generator with a multiplier of D. Knuth's
 * (The Art of Computer Programming, 3.3.4), whose upper bits are as good as random. */
static ALWAYS_INLINE uint32_t dice_quick(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1;
    return (uint32_t)(*state >> 32);
}

/* A number below `count`, which is not 0. */
static ALWAYS_INLINE uint32_t dice_below(uint64_t *state, uint32_t count)
{
    return (uint32_t)(((uint64_t)dice_next(state) * count) >> 32);
}

#endif
