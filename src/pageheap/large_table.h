/*
 * The large and huge blocks of a heap by their address.
 *
 * The idea: a table with open addressing, of descriptors, whose key is the block's first page. So
 * what is known of a block takes memory by the number of blocks, not by their length: of ten
 * thousand blocks of 1.5 MB of which a byte is touched, a word for each of their pages was as much
 * memory as the program's own.
 *
 * Cost: O(1); 16 to 32 bytes a block, and what smaller tables took before. Source: D. Knuth, The
 * Art of Computer Programming 3, 6.4 (linear probing, and deletion without marks).
 *
 * Not thread-safe: under the lock of the spans.
 */
#ifndef SNUG_PAGEHEAP_LARGE_TABLE_H
#define SNUG_PAGEHEAP_LARGE_TABLE_H

#include "base/bits.h"

struct span;
struct meta;

struct large_table {
    struct span **slots; /* NULL: nothing was ever in it */
    unsigned log;        /* of the number of slots */
    size_t count;        /* of blocks, and */
    size_t out;          /* of those that were taken out and come back; count + out < slots */
    size_t lacks;        /* bytes: of a larger one, for which there was no memory; else 0 */
    struct span **spare; /* as many, which are zero, for the next time; NULL: there are none */
};

/* Makes sure that one more block finds room. False: no memory for a larger table. */
bool large_table_reserve(struct large_table *table, struct meta *meta);

/* Has the place of a block that was just taken out kept for it, however many others come meanwhile;
 * and ends that, before the block is added again. */
static inline void large_table_keep_place(struct large_table *table)
{
    table->out++;
}

static inline void large_table_use_place(struct large_table *table)
{
    table->out--;
}

/* Adds a block, for which there must be room: large_table_reserve said so, or its place was kept.
 */
void large_table_add(struct large_table *table, struct span *span);

/* Takes out a block, which must be there. */
void large_table_remove(struct large_table *table, const struct span *span);

/* Forgets all blocks. */
void large_table_clear(struct large_table *table);

/* The slot in which the search for an address begins. There must be slots. */
static inline size_t large_table_home(const struct large_table *table, const char *start)
{
    return bits_spread((uintptr_t)start >> PAGE_SHIFT, table->log);
}

/* The span in that slot, which mostly is the one that begins at `start` if there is one; or NULL.
 */
static inline struct span *large_table_at_home(const struct large_table *table, const char *start)
{
    return table->slots == NULL ? NULL : table->slots[large_table_home(table, start)];
}

/* The span that begins at `start`, or NULL. */
struct span *large_table_find(const struct large_table *table, const char *start);

#endif
