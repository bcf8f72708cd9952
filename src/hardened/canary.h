/*
 * Canaries: what stands behind a hardened block while it is in use, and the zeros that it consists
 * of while it is not.
 *
 * From the requested size on, up to CANARY_BYTES of the object have a pattern that depends on a
 * secret and on the object's address, and has no zero byte: the most frequent overflow of all
 * writes one zero. What follows it, up to the end of the object, is zero, as it came from the
 * system or from the last free; so pages that the program does not touch stay untouched.
 *
 * The pattern stands at its place by the address modulo 8, so that it is written and compared in
 * aligned words, the first of which is masked. Cost: two words for most small objects.
 *
 * Reads and writes are of the caller's own block, of one that nobody else has meanwhile, or of the
 * canary alone of a block that nobody can free or resize meanwhile (canary_is_sound_beside).
 */
#ifndef SNUG_HARDENED_CANARY_H
#define SNUG_HARDENED_CANARY_H

#include "base/common.h"

/* Bytes: an overflow that leaves out so many and writes zeros further behind is not seen. */
enum { CANARY_BYTES = 32 };

extern INTERNAL uint64_t canary_secret;

/* Words of the program's memory, read as they are. */
typedef uint64_t canary_word __attribute__((may_alias));
typedef uint64_t canary_pair __attribute__((may_alias, vector_size(16), aligned(8)));

static ALWAYS_INLINE uint64_t canary_of(uintptr_t object)
{
    uint64_t mixed = (object ^ canary_secret) * 0x9e3779b97f4a7c15u;
    return (mixed ^ mixed >> 32) | 0x0101010101010101u;
}

/* The bytes of the word around `at` from there on. */
static ALWAYS_INLINE uint64_t canary_mask(uintptr_t at)
{
    return ~(uint64_t)0 << 8 * (at % 8);
}

/* Where the pattern ends. */
static ALWAYS_INLINE uintptr_t canary_end(uintptr_t at, uintptr_t end)
{
    uintptr_t last = align_down(at, 8) + CANARY_BYTES;
    return last < end ? last : end;
}

/* Writes the canary of an object that ends at `end` and is zero, from `at` on. */
static ALWAYS_INLINE void canary_put(uintptr_t object, uintptr_t at, uintptr_t end)
{
    uint64_t pattern = canary_of(object);
    uintptr_t last = canary_end(at, end), word = align_down(at, 8);
    *(canary_word *)word = pattern & canary_mask(at);
    for (word += 8; word < last; word += 8)
        *(canary_word *)word = pattern;
}

/* The same where what is before `at` in its word stays. */
static inline void canary_put_behind(uintptr_t object, uintptr_t at, uintptr_t end)
{
    uint64_t before = *(canary_word *)align_down(at, 8) & ~canary_mask(at);
    canary_put(object, at, end);
    *(canary_word *)align_down(at, 8) |= before;
}

static ALWAYS_INLINE bool word_is_zero(uintptr_t at)
{
    return *(const canary_word *)at == 0;
}

/* Whether all words from `at` to `end`, both multiples of 8, are zero. Four pairs at a time, which
 * processors read by one instruction each. */
static ALWAYS_INLINE bool words_are_zero(uintptr_t at, uintptr_t end)
{
    canary_pair found = {0, 0};
    for (; at + 4 * sizeof(found) <= end; at += 4 * sizeof(found)) {
        const canary_pair *pair = (const canary_pair *)at;
        found = pair[0] | pair[1] | pair[2] | pair[3];
        if (UNLIKELY((found[0] | found[1]) != 0))
            return false;
    }
    uint64_t rest = 0;
    for (; at < end; at += 8)
        rest |= *(const canary_word *)at;
    return rest == 0;
}

/* Whether all words of a canary behind its first are as they were written, and zeros follow. */
static ALWAYS_INLINE bool canary_rest_is_sound(uint64_t pattern, uintptr_t at, uintptr_t end)
{
    uintptr_t last = canary_end(at, end);
    uint64_t wrong = 0;
    for (uintptr_t word = align_down(at, 8) + 8; word < last; word += 8)
        wrong |= *(const canary_word *)word ^ pattern;
    return wrong == 0 && (last == end || words_are_zero(last, end));
}

/* Whether it is as it was written, and all behind it zero. */
static ALWAYS_INLINE bool canary_is_sound(uintptr_t object, uintptr_t at, uintptr_t end)
{
    uint64_t pattern = canary_of(object);
    uint64_t wrong = (*(const canary_word *)align_down(at, 8) ^ pattern) & canary_mask(at);
    return wrong == 0 && canary_rest_is_sound(pattern, at, end);
}

/* The same while the program may write to the block: of the first word, only the canary's bytes are
 * read. */
static inline bool canary_is_sound_beside(uintptr_t object, uintptr_t at, uintptr_t end)
{
    uint64_t pattern = canary_of(object);
    for (uintptr_t byte = at; byte < align_down(at, 8) + 8; byte++)
        if (*(const unsigned char *)byte != (unsigned char)(pattern >> 8 * (byte % 8)))
            return false;
    return canary_rest_is_sound(pattern, at, end);
}

#endif
