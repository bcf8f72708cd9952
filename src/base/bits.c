/*
 * Searches in maps of bits, and what has no instruction. See bits.h.
 */
#include "base/bits.h"

size_t bitmap_next(const uint64_t *map, size_t words, size_t from)
{
    return bitmap_next_here(map, words, from);
}

size_t bitmap_previous(const uint64_t *map, size_t from)
{
    size_t index = from / 64;
    uint64_t word = map[index] & (~(uint64_t)0 >> (63 - from % 64));
    while (word == 0) {
        if (index-- == 0)
            return SIZE_MAX;
        word = map[index];
    }
    return index * 64 + bit_highest(word);
}

uint64_t scale(uint64_t value, uint64_t part, uint64_t whole)
{
    while ((part | whole) >> 32 != 0) {
        part >>= 1;
        whole >>= 1;
    }
    whole += whole == 0;
    return value / whole * part + value % whole * part / whole;
}
