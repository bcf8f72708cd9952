/*
 * Which allocations are looked at: each byte that is asked for is marked with the same small
 * chance, and an allocation with a marked byte in it is a sample.
 *
 * The idea: the gaps between marks are exponential, so a thread draws one and counts it down by
 * what it asks for. That is one multiplication and one comparison for each allocation; nobody else
 * has to know. Gaps have no memory: what is left of one is as good after a pause, in another
 * session, or at another rate, so they are counted in means, not in bytes.
 *
 * An allocation of `size` bytes is a sample with the chance p = 1 - exp(-size / mean), so each
 * stands for 1 / p of its kind. That is unbiased, whatever the sizes are; the variance of the
 * estimate of all bytes is the sum of size^2 (1 - p) / p^2 over the samples.
 * Source: the sampling of tcmalloc and jemalloc; D. Horvitz, D. Thompson, "A Generalization of
 * Sampling Without Replacement From a Finite Universe" (1952).
 *
 * Nothing here draws at random by itself: bits are handed in.
 */
#ifndef SNUG_PROFILE_SAMPLER_H
#define SNUG_PROFILE_SAMPLER_H

#include "base/common.h"

/* Layout: gaps are counted in so many parts of the mean. */
#define SAMPLER_UNIT ((uint64_t)1 << 40)

/* Of a thread. */
struct sampler {
    uint64_t left; /* of the gap, in parts of the mean; 0: none was drawn yet */
};

/* Of all threads. */
struct sampler_rate {
    uint64_t parts; /* of the mean that a byte is; so many that no gap is as long: every byte is */
    double mean;    /* bytes; 0: every allocation is a sample */
};

/* `mean` of 0 or 1: every allocation is a sample. */
struct sampler_rate sampler_rate_of(size_t mean);

/* 64 bits that look random, from a counter of any start. Source: G. Steele, D. Lea, C. Flood, "Fast
 * Splittable Pseudorandom Number Generators" (2014). */
static inline uint64_t sampler_mix(uint64_t *counter)
{
    /* relaxed: who is first is all the same */
    uint64_t z = __atomic_add_fetch(counter, 0x9e3779b97f4a7c15u, __ATOMIC_RELAXED);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* A gap, never 0, from 64 random bits. */
uint64_t sampler_gap(uint64_t random);

/* What a sample of `size` bytes stands for: 1 / p. */
double sampler_weight(const struct sampler_rate *rate, size_t size);

/* Counts an allocation. True: its gap has ended. A new one must be drawn then; and it is a sample
 * unless there was no gap yet, see sampler_take. */
static inline bool sampler_count(struct sampler *sampler, uint64_t parts, size_t size)
{
    uint64_t step;
    bool over = __builtin_mul_overflow(parts, size + (size == 0), &step);
    if (UNLIKELY(over || step >= sampler->left))
        return true;
    sampler->left -= step;
    return false;
}

/* After sampler_count said so: whether the allocation is a sample. Calls `random` for bits. */
bool sampler_take(struct sampler *sampler, uint64_t parts, size_t size, uint64_t (*random)(void));

#endif
