/*
 * Random numbers, sizes and byte patterns. See expect.h.
 */
#include "expect.h"

#include <string.h>

#include "base/common.h"

uint64_t random_next(struct random *random)
{
    /* splitmix64: any seed will do, and neighbouring ones have nothing in common.
     * Source: G. Steele et al., "Fast Splittable Pseudorandom Number Generators" (2014). */
    uint64_t value = random->state += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

size_t random_below(struct random *random, size_t limit)
{
    /* A little uneven for limits near 2^64, which nobody has. */
    return random_next(random) % limit;
}

size_t random_log(struct random *random, size_t least, size_t most)
{
    size_t doublings = 0;
    while (least << doublings < most)
        doublings++;
    size_t base = least << random_below(random, doublings);
    return size_min(most, base + random_below(random, base));
}

/* Sizes at which something else may begin: another layer, another way of getting pages. They are
 * written down here, not taken from the library: its borders move, and a few too many do no harm.
 */
static size_t border_size(struct random *random)
{
    static const size_t borders[] = {
        0,         1024,      4096,     8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB,      128 * KIB,
        256 * KIB, 512 * KIB, MIB - 16, MIB,     2 * MIB,  4 * MIB,  MIB - 4 * KIB,
    };
    size_t border = borders[random_below(random, sizeof(borders) / sizeof(borders[0]))];
    size_t size = border + random_below(random, 19);
    return size < 17 ? 0 : size - 17;
}

static size_t class_border_size(struct random *random)
{
    size_t step = random_one_in(random, 2) ? 16 : 128;
    return step * (1 + random_below(random, 128)) - 1 + random_below(random, 3);
}

static size_t power_size(struct random *random)
{
    return ((size_t)1 << random_below(random, 21)) - 1 + random_below(random, 3);
}

size_t random_size(struct random *random)
{
    size_t kind = random_below(random, 1000);
    if (kind < 350)
        return random_below(random, 65);
    if (kind < 680)
        return random_below(random, KIB + 1);
    if (kind < 800)
        return random_log(random, KIB, 16 * KIB);
    if (kind < 860)
        return class_border_size(random);
    if (kind < 900)
        return border_size(random);
    if (kind < 940)
        return power_size(random);
    if (kind < 995)
        return random_log(random, 16 * KIB, MIB);
    return random_log(random, MIB, 6 * MIB);
}

size_t random_alignment(struct random *random, size_t most)
{
    size_t steps = 1;
    while ((MIN_ALIGN << steps) <= most)
        steps++;
    return MIN_ALIGN << random_below(random, steps);
}

/* ---- Patterns ---- */

/* The word at byte offset `offset` of a block with `id`. No two ids and places that meet in a test
 * have a word in common. */
static inline uint64_t pattern_word(size_t offset, uint64_t id)
{
    return (id + 1) * 0xd1b54a32d192ed03u + offset * 0x9e3779b97f4a7c15u;
}

void pattern_fill(void *block, size_t size, uint64_t id)
{
    unsigned char *bytes = block;
    size_t offset = 0;
    for (; offset + sizeof(uint64_t) <= size; offset += sizeof(uint64_t)) {
        uint64_t word = pattern_word(offset, id);
        memcpy(bytes + offset, &word, sizeof(word));
    }
    uint64_t word = pattern_word(offset, id);
    memcpy(bytes + offset, &word, size - offset);
}

size_t pattern_check(const void *block, size_t size, uint64_t id)
{
    const unsigned char *bytes = block;
    size_t offset = 0;
    for (; offset + sizeof(uint64_t) <= size; offset += sizeof(uint64_t)) {
        uint64_t word = pattern_word(offset, id);
        if (memcmp(bytes + offset, &word, sizeof(word)) != 0)
            break;
    }
    for (; offset < size; offset++) {
        uint64_t word = pattern_word(align_down(offset, sizeof(word)), id);
        if (bytes[offset] != (unsigned char)(word >> (offset % sizeof(word) * 8)))
            break;
    }
    return offset;
}
