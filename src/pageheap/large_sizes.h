/*
 * Large and huge blocks of malloc's heap by powers of two: how many there are, and what the program
 * asked for in them.
 *
 * They are counted where blocks are taken, resized and freed, each of which costs page faults or a
 * lock: so anybody may read them at any time, without a walk through blocks of which there may be
 * many and nothing touched. Other heaps' blocks are not counted here; their sums stand in the heap.
 *
 * Cost: two additions for each block that comes, and two for each that goes.
 */
#ifndef SNUG_PAGEHEAP_LARGE_SIZES_H
#define SNUG_PAGEHEAP_LARGE_SIZES_H

#include "base/bits.h"
#include "base/peek.h"

/* Layout: up to 256 KiB (what is less is aligned), 512 KiB, ... 1 TiB; and what is larger. */
enum { LARGE_ROWS = 24 };

struct large_sizes {
    size_t blocks[LARGE_ROWS];
    size_t bytes[LARGE_ROWS];
};

extern INTERNAL struct large_sizes large_sizes;

/* Up to how many bytes the blocks of a row are; SIZE_MAX for the last. */
static inline size_t large_row_to(size_t row)
{
    return row == LARGE_ROWS - 1 ? SIZE_MAX : (256 * KIB) << row;
}

static inline size_t large_row_of(size_t bytes)
{
    size_t row = bytes <= 256 * KIB ? 0 : bit_highest((bytes - 1) / (256 * KIB)) + 1;
    return size_min(row, LARGE_ROWS - 1);
}

/* A block that was `from` bytes, 0 if there was none, is `to`, 0 if there is none any more.
 * The lock of malloc's page heap is held. */
static inline void large_sizes_change(size_t from, size_t to)
{
    if (from != 0) {
        GAUGE_ADD(large_sizes.blocks[large_row_of(from)], (size_t)-1);
        GAUGE_ADD(large_sizes.bytes[large_row_of(from)], -from);
    }
    if (to != 0) {
        GAUGE_ADD(large_sizes.blocks[large_row_of(to)], 1);
        GAUGE_ADD(large_sizes.bytes[large_row_of(to)], to);
    }
}

#endif
