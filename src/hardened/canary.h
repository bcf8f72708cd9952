/*
 * Canaries: what stands behind a hardened block while it is in use, and the zeros that it consists
 * of while it is not.
 *
 * From the requested size on, up to CANARY_BYTES of the object have a pattern that depends on a
 * secret and on the object's address, and has no zero byte: the most frequent overflow of all
 * writes one zero. What follows the pattern, up to the end of the object, is zero, as it came from
 * the system or from the last free; so pages that the program does not touch stay untouched.
 *
 * Which byte of the pattern stands at an address depends on the address modulo 8, so that the
 * pattern is written and compared in aligned words, the first of which is masked. Most blocks leave
 * no more than 16 bytes of their object: then the pattern is all in the last two words, which are
 * written and compared as one (canary_put_short).
 *
 * Reads and writes are of the caller's own block, of one that nobody else has meanwhile, or of the
 * canary alone of a block that nobody can free or resize meanwhile (canary_is_sound_beside).
 */
#ifndef SNUG_HARDENED_CANARY_H
#define SNUG_HARDENED_CANARY_H

#include "base/common.h"
#include "platform/zeros.h"

/* Bytes: an overflow that leaves out so many and writes zeros further behind is not seen. */
enum { CANARY_BYTES = 32 };

/* Of the process; see canary_of. */
extern INTERNAL struct canary_secret {
    uint64_t mask;
    uint64_t factor; /* odd */
} canary_secret;

/* Words of the program's memory, read as they are. */
typedef uint64_t canary_word __attribute__((may_alias));
typedef uint64_t canary_pair __attribute__((may_alias, vector_size(16), aligned(8)));

/* The upper bytes of a product depend on most of its factors' bits, so they stand in front. */
static ALWAYS_INLINE uint64_t canary_of(uintptr_t object)
{
    uint64_t mixed = (object ^ canary_secret.mask) * canary_secret.factor;
    return __builtin_bswap64(mixed) | 0x0101010101010101u;
}

/* A mask for the bytes from `at` on of the word around it. */
static ALWAYS_INLINE uint64_t canary_mask(uintptr_t at)
{
    return ~(uint64_t)0 << 8 * (at % 8);
}

/* Where the pattern from `at` on ends, in an object that ends at `end`. */
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

/* ---- Canaries of 16 bytes at most, in objects that begin and end at multiples of MIN_ALIGN ----
 */

/* Bytes: of such a canary. */
enum { CANARY_SHORT = 16 };

/* CANARY_SHORT zero bytes, and as many of 255: from byte n on it is a mask for the last n bytes of
 * such a canary. */
extern INTERNAL const unsigned char canary_window[2 * CANARY_SHORT];

typedef uint64_t canary_mask_pair __attribute__((may_alias, vector_size(16), aligned(1)));
typedef uint64_t object_pair __attribute__((may_alias, vector_size(16)));

/* A mask for the last `bytes` bytes of a canary's two words. */
static ALWAYS_INLINE object_pair canary_last(size_t bytes)
{
    return *(const canary_mask_pair *)(canary_window + bytes);
}

static ALWAYS_INLINE bool pair_is_zero(object_pair pair)
{
#if defined(__SSE2__) /* without a way through the other registers */
    typedef char bytes_of_pair __attribute__((vector_size(16)));
    return __builtin_ia32_pmovmskb128((bytes_of_pair)pair == (bytes_of_pair){0}) == 0xffff;
#else
    return (pair[0] | pair[1]) == 0;
#endif
}

static ALWAYS_INLINE object_pair *pair_at(uintptr_t address)
{
    return (object_pair *)address;
}

/* The pattern twice. */
static ALWAYS_INLINE object_pair canary_pair_of(uintptr_t object)
{
    uint64_t pattern = canary_of(object);
    return (object_pair){pattern, pattern};
}

/* As canary_put for an object of which the program did not ask for the last `bytes` bytes. */
static ALWAYS_INLINE void canary_put_short(uintptr_t object, uintptr_t end, size_t bytes)
{
    *pair_at(end - CANARY_SHORT) = canary_pair_of(object) & canary_last(bytes);
}

/* The same for a block that is resized, of whose object the program did not ask for the last `old`
 * bytes before. What is new of the block becomes zero, and the rest of it stays. */
static ALWAYS_INLINE void canary_move_short(uintptr_t object, uintptr_t end, size_t old,
                                            size_t bytes)
{
    object_pair stays = *pair_at(end - CANARY_SHORT) & ~canary_last(size_max(old, bytes));
    *pair_at(end - CANARY_SHORT) = stays | (canary_pair_of(object) & canary_last(bytes));
}

/* The bits of such a canary that are wrong. */
static ALWAYS_INLINE object_pair canary_short_damage(uintptr_t object, uintptr_t end, size_t bytes)
{
    return (*pair_at(end - CANARY_SHORT) ^ canary_pair_of(object)) & canary_last(bytes);
}

/* Bytes: small objects are looked at, and cleared, in steps of so many. */
enum { OBJECT_STEP = 64 };

/* Bytes: what is longer is looked at, and cleared, as wide as the processor can. */
enum { OBJECT_LONG = 256 };

static ALWAYS_INLINE object_pair step_of(uintptr_t at)
{
    return *pair_at(at) | *pair_at(at + 16) | *pair_at(at + 32) | *pair_at(at + 48);
}

/* In a program that has many sizes, a branch that depends on the size is predicted wrongly as often
 * as not, which takes as long as some hundred bytes. So there is one way for each doubling of the
 * sizes. Each looks at as many bytes from either end, and meets those in the middle twice. */

/* An object of one to four pairs is looked at as four of them. Returns how far the second begins
 * behind the first, which is as far as the third before the fourth. */
static ALWAYS_INLINE size_t pairs_apart(size_t bytes)
{
    return (bytes - 16) / 32 * 16;
}

/* Whether a whole object is zero, of OBJECT_LONG bytes at most if it `is_short`, or of more. */
static ALWAYS_INLINE bool object_is_zero(uintptr_t at, size_t bytes, bool is_short)
{
    uintptr_t end = at + bytes;
    object_pair found;
    if (!is_short)
        return zeros_short(at, bytes, false);
    if (bytes <= OBJECT_STEP) {
        size_t apart = pairs_apart(bytes);
        found =
            *pair_at(at) | *pair_at(at + apart) | *pair_at(end - 16 - apart) | *pair_at(end - 16);
    } else {
        found = step_of(at) | step_of(end - OBJECT_STEP);
        if (bytes > 2 * OBJECT_STEP)
            found |= step_of(at + OBJECT_STEP) | step_of(end - 2 * OBJECT_STEP);
    }
    return pair_is_zero(found);
}

static ALWAYS_INLINE void step_clear(uintptr_t at)
{
    object_pair zero = {0, 0};
    *pair_at(at) = *pair_at(at + 16) = *pair_at(at + 32) = *pair_at(at + 48) = zero;
}

/* Clears a whole object, with `is_short` as above. */
static ALWAYS_INLINE void object_clear(uintptr_t at, size_t bytes, bool is_short)
{
    object_pair zero = {0, 0};
    uintptr_t end = at + bytes;
    if (!is_short) {
        zeros_short(at, bytes, true);
    } else if (bytes <= OBJECT_STEP) {
        size_t apart = pairs_apart(bytes);
        *pair_at(at) = *pair_at(at + apart) = *pair_at(end - 16 - apart) = *pair_at(end - 16) =
            zero;
    } else {
        step_clear(at);
        step_clear(end - OBJECT_STEP);
        if (bytes > 2 * OBJECT_STEP) {
            step_clear(at + OBJECT_STEP);
            step_clear(end - 2 * OBJECT_STEP);
        }
    }
}

/* ---- Any ---- */

/* Whether all words from `at` to `end`, both multiples of 8, are zero. */
static ALWAYS_INLINE bool words_are_zero(uintptr_t at, uintptr_t end)
{
    if (end - at >= ZEROS_LEAST)
        return zeros_long(at, end, false);
    uint64_t rest = 0;
    for (; at < end; at += 8)
        rest |= *(const canary_word *)at;
    return rest == 0;
}

/* Clears all words from `at` to `end`. If they are more than a page, what is zero is not written:
 * pages that the program never touched then take no memory, and lines that it never wrote need not
 * go back to memory. */
static inline void words_clear(uintptr_t at, uintptr_t end)
{
    if (end - at > PAGE_BYTES)
        zeros_long(at, end, true);
    else
        __builtin_memset((void *)at, 0, end - at);
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

/* Whether a canary is as it was written, and all behind it zero. */
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
