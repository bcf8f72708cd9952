/*
 * Which allocations are looked at: each byte that is asked for is marked with the same small
 * chance, and an allocation with a marked byte in it is a sample.
 *
 * The idea: the gaps between marks are exponential, so a thread draws one and counts it down by
 * what it asks for. That is one subtraction and its flags for each allocation; nobody else has to
 * know. Gaps have no memory: what is left of one is as good after a pause or in another session.
 * Gaps are whole bytes, and nothing is lost by that: all that matters of a mark is in which byte it
 * lies.
 *
 * An allocation of `size` bytes is a sample with the chance p = 1 - exp(-size / mean), so each
 * stands for 1 / p of its kind. That is unbiased, whatever the sizes are; the variance of the
 * estimate of all bytes is the sum of size^2 (1 - p) / p^2 over the samples. Source: the sampling
 * of tcmalloc and jemalloc; D. Horvitz, D. Thompson, "A Generalization of Sampling Without
 * Replacement From a Finite Universe" (1952).
 *
 * Nothing here draws at random by itself: bits are handed in.
 */
#ifndef SNUG_PROFILE_SAMPLER_H
#define SNUG_PROFILE_SAMPLER_H

#include "base/common.h"

/* Layout: bytes; no mean is longer, as a gap of 64 ln 2 of them has to be a number. With it nothing
 * is ever marked: a program would have to ask for an exabyte. */
#define SAMPLER_MEAN_MOST ((uint64_t)1 << 57)

/* A thread's gap. */
struct sampler {
    int64_t left; /* bytes up to and with the mark; 0: no gap drawn yet; below 0: it has ended */
};

/* Of all threads: bytes from mark to mark, 1 up to SAMPLER_MEAN_MOST; 1: each allocation is a
 * sample. */
struct sampler_rate {
    uint64_t mean;
};

/* `mean` of 0 stands for 1. */
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

/* A gap in bytes, from 64 random bits: at least 1; its last byte is the marked one. */
uint64_t sampler_gap(const struct sampler_rate *rate, uint64_t random);

/* What a sample of `size` bytes stands for: 1 / p. */
double sampler_weight(const struct sampler_rate *rate, size_t size);

/* Counts an allocation of `size` bytes, not 0. True: the gap ends in it, and was left as it is;
 * sampler_take then draws another, and says whether the allocation is a sample. */
static ALWAYS_INLINE bool sampler_count(struct sampler *sampler, size_t size)
{
    if (UNLIKELY(sampler->left <= 0 || (uint64_t)sampler->left <= size))
        return true;
    sampler->left -= (int64_t)size;
    return false;
}

/* After sampler_count returned true: draws another gap, calling `random` for bits. Returns whether
 * the allocation is a sample; it may be none if no gap had been drawn before. */
bool sampler_take(struct sampler *sampler, const struct sampler_rate *rate, size_t size,
                  uint64_t (*random)(void));

#endif
