/*
 * Finding entries of a table by a key: chains from buckets, which double when there are twice as
 * many entries.
 *
 * Not thread-safe: the owner's lock is held. Cost: O(1), four bytes a bucket. Buckets that have
 * become too few are not given back: all together they are nearly as many as those in use.
 */
#ifndef SNUG_PROFILE_INDEX_H
#define SNUG_PROFILE_INDEX_H

#include "profile/table.h"

/* Layout: log2 of the buckets at first, one page of them. */
enum { INDEX_FIRST_BITS = 10 };

/* What entries begin with. */
struct indexed {
    uint64_t key;
    uint32_t salt; /* part of the key */
    uint32_t next; /* number of the next in the bucket; 0: this is the last */
};

struct index {
    struct table table;
    size_t entry_bytes;
    uint32_t *buckets; /* 1 << bits */
    unsigned bits;
    uint32_t count; /* of entries in buckets */
};

/* Where the chain for a key begins. NULL: there are no buckets yet. */
uint32_t *index_bucket(const struct index *index, uint64_t key, uint32_t salt);

/* Puts an entry of the table, whose key is filled in, into its bucket. False: no memory for
 * buckets. */
bool index_put(struct index *index, uint32_t number);

static inline void *index_at(const struct index *index, uint32_t number)
{
    return table_at(&index->table, number, index->entry_bytes);
}

#endif
