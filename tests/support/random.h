/*
 * random.h - a sequence of numbers that is the same in every run.
 */
#ifndef SNUG_TESTS_RANDOM_H
#define SNUG_TESTS_RANDOM_H

#include <stdint.h>

/* xorshift64*: a state that is not zero gives the next number. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545f4914f6cdd1dULL;
}

#endif
