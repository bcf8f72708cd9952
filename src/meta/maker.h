/*
 * Which function made a block, and what the program says of a block that it frees.
 *
 * A block is to be freed by the function that belongs to the one which made it. Hardened heaps
 * look at that (SNUG_CHECK_DELETE); others do not know who made a block.
 */
#ifndef SNUG_META_MAKER_H
#define SNUG_META_MAKER_H

#include "base/common.h"

/* Layout: of two bits. The aligned forms of new and of new[] are one. */
enum maker {
    MADE_BY_MALLOC, /* or any other function of C's */
    MADE_BY_NEW,
    MADE_BY_NEW_ARRAY,
    MADE_BY_NEW_ALIGNED
};

/* Names as in a report: the function that made a block, and the one that frees it. (misuse_text.c)
 */
const char *maker_name(enum maker maker);
const char *maker_freer(enum maker maker);

/* Layout: the size that a free without one states. No block has so many bytes. */
#define SIZE_UNSAID (SIZE_MAX >> 2)

/* What a free says of its block. One register. */
struct said {
    size_t size : 62; /* SIZE_UNSAID: nothing */
    size_t maker : 2;
};

/* Any size: none that is too large for a block is taken for SIZE_UNSAID. */
static ALWAYS_INLINE struct said said_size(size_t size, enum maker maker)
{
    return (struct said){.size = size < SIZE_UNSAID ? size : SIZE_UNSAID - 1, .maker = maker};
}

static ALWAYS_INLINE struct said said_unsized(enum maker maker)
{
    return (struct said){.size = SIZE_UNSAID, .maker = maker};
}

#endif
