/*
 * The large and huge blocks of a heap by powers of two: how many there are, and what the program
 * asked for in them. Their sums are those of all such blocks.
 *
 * The idea: a block is counted where it becomes one, is resized, and ends as one, each of which
 * costs page faults or a lock. So anybody may read the rows at any time, without a walk through
 * blocks of which there may be many and nothing touched. A block that was freed and waits to be
 * taken again (recent.h) stays in its row: mostly it comes back with the same size, and those who
 * read subtract the few that wait.
 *
 * Cost: two additions for each block that comes, and two for each that goes; none for one that is
 * taken and freed in turn.
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

/* There are so many blocks more of `bytes`, or by negative numbers fewer. The lock of the page heap
 * is held. */
void large_sizes_count(struct large_sizes *sizes, size_t bytes, size_t more);

/* A block of `from` bytes has `to` now. */
static inline void large_sizes_change(struct large_sizes *sizes, size_t from, size_t to)
{
    large_sizes_count(sizes, from, (size_t)-1);
    large_sizes_count(sizes, to, 1);
}

#endif
