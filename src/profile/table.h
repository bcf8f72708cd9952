/*
 * A table that grows and never moves: readers, in this process or another, need no lock.
 *
 * The idea: chunks that double in size, so that a dozen pointers lead to millions of entries, and
 * nothing that was written is copied. Entry 0 is never used: the number 0 stands for none.
 *
 * Cost: its memory is mapped by meta_map and counts as metadata; it stays. Entries are zero at
 * first.
 */
#ifndef SNUG_PROFILE_TABLE_H
#define SNUG_PROFILE_TABLE_H

#include "base/bits.h"
#include "base/peek.h"
#include "meta/meta.h"

/* Layout: the first chunk has 1 << 10 entries; twelve hold four million, which is what bounds a
 * profile's memory. */
enum { TABLE_FIRST_BITS = 10, TABLE_CHUNKS = 12 };

struct table {
    char *chunks[TABLE_CHUNKS];
    uint32_t used; /* entries, the unused one included */
};

static inline unsigned table_chunk_of(uint32_t number, uint32_t *place)
{
    uint32_t shifted = number + (1u << TABLE_FIRST_BITS);
    unsigned highest = (unsigned)bit_highest(shifted);
    *place = shifted - (1u << highest);
    return highest - TABLE_FIRST_BITS;
}

static inline void *table_at(const struct table *table, uint32_t number, size_t entry_bytes)
{
    uint32_t place;
    unsigned chunk = table_chunk_of(number, &place);
    return table->chunks[chunk] + place * entry_bytes;
}

/* Adds an entry and returns its number; 0: the table is full, or there is no memory. The owner's
 * lock is held. */
static inline uint32_t table_add(struct table *table, size_t entry_bytes)
{
    uint32_t number = table->used == 0 ? 1 : table->used, place;
    unsigned chunk = table_chunk_of(number, &place);
    if (chunk >= TABLE_CHUNKS)
        return 0;
    if (table->chunks[chunk] == NULL) {
        char *made = meta_map(entry_bytes << (TABLE_FIRST_BITS + chunk));
        if (made == NULL)
            return 0;
        /* release: a reader that finds it finds it zero */
        __atomic_store_n(&table->chunks[chunk], made, __ATOMIC_RELEASE);
    }
    /* release: what a reader counts is there */
    __atomic_store_n(&table->used, number + 1, __ATOMIC_RELEASE);
    return number;
}

#endif
