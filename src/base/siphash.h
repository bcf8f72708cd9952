/*
 * SipHash-2-4 of one word: numbers made of a secret of 128 bits, of which none tells anything about
 * the secret or about the others.
 *
 * Cost: about 100 instructions.
 * Source: J.-P. Aumasson and D. Bernstein, "SipHash: a fast short-input PRF" (2012).
 */
#ifndef SNUG_BASE_SIPHASH_H
#define SNUG_BASE_SIPHASH_H

#include "base/common.h"

static inline uint64_t rotate_left(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static inline void siphash_rounds(uint64_t v[4], unsigned rounds)
{
    for (; rounds > 0; rounds--) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate_left(v[1], 13) ^ v[0];
        v[3] = rotate_left(v[3], 16) ^ v[2];
        v[0] = rotate_left(v[0], 32) + v[3];
        v[2] += v[1];
        v[3] = rotate_left(v[3], 21) ^ v[0];
        v[1] = rotate_left(v[1], 17) ^ v[2];
        v[2] = rotate_left(v[2], 32);
    }
}

static inline void siphash_take(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    siphash_rounds(v, 2);
    v[0] ^= word;
}

/* The hash of the eight bytes of `word`. */
static inline uint64_t siphash(const uint64_t secret[2], uint64_t word)
{
    uint64_t v[4] = {secret[0] ^ 0x736f6d6570736575u, secret[1] ^ 0x646f72616e646f6du,
                     secret[0] ^ 0x6c7967656e657261u, secret[1] ^ 0x7465646279746573u};
    siphash_take(v, word);
    siphash_take(v, (uint64_t)sizeof(word) << 56); /* how long the message is, and no rest of it */
    v[2] ^= 0xff;
    siphash_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
