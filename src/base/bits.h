/*
 * Bit arithmetic on machine words, and maps of bits: one or two instructions, where it is not a
 * search.
 */
#ifndef SNUG_BASE_BITS_H
#define SNUG_BASE_BITS_H

#include "base/common.h"

/* The number of the lowest bit set. `word` must not be 0. */
static inline unsigned bit_lowest(uint64_t word)
{
    return (unsigned)__builtin_ctzll(word);
}

/* The number of the highest bit set, which is floor(log2). `word` must not be 0. */
static inline unsigned bit_highest(uint64_t word)
{
    return 63u ^ (unsigned)__builtin_clzll(word); /* not minus: x86 has an instruction for this */
}

/* Numbers the parts of doublings that a value (below 2^24) may lie in, `1 << log` to a doubling:
 * the number of the part that begins at 2^n is (n + 127) << log. A floating-point number is made of
 * just that, and the processor makes one in fewer steps than it finds and shifts by the highest
 * bit. */
static inline size_t bit_part(uint32_t value, unsigned log)
{
    union {
        float number;
        uint32_t bits;
    } as = {.number = (float)(int32_t)value};
    return as.bits >> (23 - log);
}

static inline unsigned bit_count(uint64_t word)
{
    return (unsigned)__builtin_popcountll(word);
}

static inline bool bitmap_get(const uint64_t *map, size_t index)
{
    return (map[index / 64] >> (index % 64)) & 1;
}

static inline void bitmap_set(uint64_t *map, size_t index)
{
    map[index / 64] |= (uint64_t)1 << (index % 64);
}

static inline void bitmap_clear(uint64_t *map, size_t index)
{
    map[index / 64] &= ~((uint64_t)1 << (index % 64));
}

/* value * part / whole, rounded down; where one of the two needs more than 32 bits and `part` is
 * the smaller, to some nine digits. `whole` must not be 0, and the result be less than 2^63. No
 * floating-point number, in which a program may have what is not exact end it. */
uint64_t scale(uint64_t value, uint64_t part, uint64_t whole);

/* The same, to the nearest. */
static inline uint64_t scale_nearest(uint64_t value, uint64_t part, uint64_t whole)
{
    return (scale(2 * value, part, whole) + 1) / 2;
}

/* The first bit set at or after `from` in a map of `words` words, or `words * 64` if there is
 * none. */
size_t bitmap_next(const uint64_t *map, size_t words, size_t from);

/* The same, in the code of who calls it. */
static ALWAYS_INLINE size_t bitmap_next_here(const uint64_t *map, size_t words, size_t from)
{
    size_t index = from / 64;
    if (index >= words)
        return words * 64;
    uint64_t word = map[index] & (~(uint64_t)0 << (from % 64));
    while (word == 0) {
        if (++index == words)
            return words * 64;
        word = map[index];
    }
    return index * 64 + bit_lowest(word);
}

/* A number of `log` bits (1 to 63), which spreads neighbouring values: the upper bits of the
 * product with 2^64 over the golden ratio. Source: D. Knuth, "The Art of Computer Programming",
 * volume 3 (1973), multiplicative hashing. */
static ALWAYS_INLINE size_t bits_spread(uint64_t value, unsigned log)
{
    return value * 0x9e3779b97f4a7c15u >> (64 - log);
}

/* The last bit set at or before `from`, or SIZE_MAX if there is none. */
size_t bitmap_previous(const uint64_t *map, size_t from);

#endif
