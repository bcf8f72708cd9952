/*
 * Buckets. See index.h.
 */
#include "profile/index.h"

uint32_t *index_bucket(const struct index *index, uint64_t key, uint32_t salt)
{
    if (index->buckets == NULL)
        return NULL;
    /* Fibonacci hashing: the golden ratio times 2^64, and the high bits of the product. Source: D.
     * Knuth, The Art of Computer Programming, 6.4. */
    uint64_t mixed = (key ^ key >> 32 ^ (uint64_t)salt << 20) * 0x9e3779b97f4a7c15u;
    return &index->buckets[mixed >> (64 - index->bits)];
}

static void put(struct index *index, uint32_t number)
{
    struct indexed *entry = index_at(index, number);
    uint32_t *bucket = index_bucket(index, entry->key, entry->salt);
    entry->next = *bucket;
    *bucket = number;
}

/* Makes buckets, or twice as many. False: there are none. */
static bool grow(struct index *index)
{
    struct index old = *index;
    unsigned bits = old.buckets == NULL ? INDEX_FIRST_BITS : old.bits + 1;
    uint32_t *buckets = meta_map(sizeof(*buckets) << bits);
    if (buckets == NULL)
        return old.buckets != NULL;
    index->buckets = buckets;
    index->bits = bits;
    for (size_t i = 0; old.buckets != NULL && i < (size_t)1 << old.bits; i++)
        for (uint32_t number = old.buckets[i], next; number != 0; number = next) {
            next = ((struct indexed *)index_at(index, number))->next;
            put(index, number);
        }
    return true;
}

bool index_put(struct index *index, uint32_t number)
{
    if ((index->buckets == NULL || index->count >> index->bits >= 2) && !grow(index))
        return false;
    put(index, number);
    index->count++;
    return true;
}
