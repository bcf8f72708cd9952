/*
 * Clearing and copying of small objects: whole steps of 16 bytes, which is what sizes are made of.
 *
 *   33 to 64 bytes:   [ first 32       ]
 *                           [ last 32        ]    they overlap where there are fewer than 64
 *
 * The idea: a size lies between two powers of two, and twice the smaller covers it, once from its
 * beginning and once up to its end. So a few comparisons choose a fixed number of stores, there is
 * no loop, and nothing is called. Of more than 256 bytes libc's wide stores gain more than the call
 * of it costs.
 *
 * Cost: 64 bytes are 4 stores and 3 comparisons.
 */
#ifndef SNUG_BASE_BYTES_H
#define SNUG_BASE_BYTES_H

#include <string.h>

#include "base/common.h"

/* Layout: a store of 16 bytes. */
enum { BYTES_STEP = 16 };

/* Bytes: up to here a page holds many, so that none is a cell, and libc's wide stores gain less
 * than the call of it costs. */
enum { BYTES_SHORT = 16 * BYTES_STEP };

/* The first and the last `half` bytes, where that is a constant, and up to 4 steps: of a longer one
 * a compiler makes a string instruction, which takes as long to begin as 30 stores. */
static ALWAYS_INLINE void bytes_clear_ends(char *to, size_t bytes, size_t half)
{
    memset(to, 0, half);
    memset(to + bytes - half, 0, half);
}

static ALWAYS_INLINE void bytes_copy_ends(char *to, const char *from, size_t bytes, size_t half)
{
    memcpy(to, from, half);
    memcpy(to + bytes - half, from + bytes - half, half);
}

/* Clears `bytes`, a multiple of BYTES_STEP that is not 0. Returns `object`. */
static ALWAYS_INLINE void *bytes_clear(void *object, size_t bytes)
{
    char *to = object;
    if (UNLIKELY(bytes > BYTES_SHORT)) {
        /* A compiler that knew the bound would make a string instruction of it, which takes longer
         * to begin than all of this. */
        __asm__("" : "+r"(bytes));
        return memset(object, 0, bytes);
    }
    if (bytes <= 2 * BYTES_STEP) {
        bytes_clear_ends(to, bytes, BYTES_STEP);
    } else if (bytes <= 4 * BYTES_STEP) {
        bytes_clear_ends(to, bytes, 2 * BYTES_STEP);
    } else if (bytes <= 8 * BYTES_STEP) {
        bytes_clear_ends(to, bytes, 4 * BYTES_STEP);
    } else {
        bytes_clear_ends(to, 8 * BYTES_STEP, 4 * BYTES_STEP);
        bytes_clear_ends(to + bytes - 8 * BYTES_STEP, 8 * BYTES_STEP, 4 * BYTES_STEP);
    }
    return object;
}

/* Copies `bytes`, a multiple of BYTES_STEP from that to BYTES_SHORT, between places that do not
 * overlap. */
static ALWAYS_INLINE void bytes_copy(void *to, const void *from, size_t bytes)
{
    if (bytes <= 2 * BYTES_STEP)
        bytes_copy_ends(to, from, bytes, BYTES_STEP);
    else if (bytes <= 4 * BYTES_STEP)
        bytes_copy_ends(to, from, bytes, 2 * BYTES_STEP);
    else if (bytes <= 8 * BYTES_STEP)
        bytes_copy_ends(to, from, bytes, 4 * BYTES_STEP);
    else
        bytes_copy_ends(to, from, bytes, 8 * BYTES_STEP);
}

#endif
