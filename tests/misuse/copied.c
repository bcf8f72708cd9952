/*
 * copied.c - functions of libc that write or read beyond a block, or into one that was freed.
 */
#include "kinds.h"

#include <string.h>

/* A text of `length` bytes, which is no block of the heap. */
static const char *text_of(size_t length)
{
    static char text[700000];
    CHECK(length < sizeof text);
    memset(text, 'x', length);
    text[length] = 0;
    return text;
}

#define WRITES(name, call) \
    static bool name(size_t size) \
    { \
        struct around around; \
        around_make(&around, size); \
        char *block = opaque(around_victim(&around)); \
        call; \
        bool damaged = around_is_damaged(&around); \
        around_free(&around); \
        return damaged; \
    }

WRITES(memcpy_1, memcpy(block, text_of(size + 1), size + 1))
WRITES(memcpy_64, memcpy(block, text_of(size + 64), size + 64))
WRITES(memcpy_inside, memcpy(block + size / 2, text_of(size), size))
WRITES(memmove_64, memmove(block, text_of(size + 64), size + 64))
WRITES(memset_64, memset(block, 0x41, size + 64))
WRITES(strcpy_64, strcpy(block, text_of(size + 64)))
WRITES(strcpy_zero, strcpy(block, text_of(size)))
WRITES(stpcpy_64, stpcpy(block, text_of(size + 64)))
WRITES(strncpy_64, strncpy(block, text_of(10), size + 64))
WRITES(strcat_64, (void)(memset(block, 'y', size / 2), block[size / 2] = 0,
                         strcat(block, text_of(size / 2 + 64))))
WRITES(strncat_64, (void)(memset(block, 'y', size / 2), block[size / 2] = 0,
                          strncat(block, text_of(size), size / 2 + 64)))
WRITES(memcpy_overlap, memcpy(block + 8, block, size - 8))

/* The length is less than nothing. */
static bool memset_negative(size_t size)
{
    struct around around;
    around_make(&around, size);
    /* Far below zero: of numbers just below it, the end lies just before the block, and the newest
     * libcs write to both ends only. */
    memset(opaque(around_victim(&around)), 0x41, opaque_size((size_t)PTRDIFF_MIN + size));
    return true;
}

static bool memcpy_from_behind(size_t size)
{
    static unsigned char copy[700000];
    struct around around;
    around_make(&around, size);
    memcpy(copy, opaque(around_victim(&around)), size + 64);
    around_free(&around);
    return secret_is_seen(copy + size, 64);
}

static bool memcpy_to_freed(size_t size)
{
    unsigned char *block = secret_block(size);
    free(block);
    memcpy(opaque(block), text_of(size), size);
    (void)handed_out_twice(size, NULL);
    return true;
}

static bool memset_freed(size_t size)
{
    unsigned char *block = secret_block(size);
    free(block);
    memset(opaque(block), 0, size);
    (void)handed_out_twice(size, NULL);
    return true;
}

static const struct kind table[] = {
    {"memcpy-1", "`memcpy` writes 1 byte behind a block", memcpy_1},
    {"memcpy-64", "... 64 bytes", memcpy_64},
    {"memcpy-inside", "... half of the block, from its middle on", memcpy_inside},
    {"memmove-64", "`memmove` writes 64 bytes behind a block", memmove_64},
    {"memset-64", "`memset`", memset_64},
    {"strcpy-64", "`strcpy`", strcpy_64},
    {"strcpy-zero", "`strcpy` writes the zero at a text's end behind a block", strcpy_zero},
    {"stpcpy-64", "`stpcpy` writes 64 bytes behind a block", stpcpy_64},
    {"strncpy-64", "`strncpy`", strncpy_64},
    {"strcat-64", "`strcat`", strcat_64},
    {"strncat-64", "`strncat`", strncat_64},
    {"memset-negative", "`memset` of a negative number of bytes", memset_negative},
    {"memcpy-from-behind", "`memcpy` reads 64 bytes behind a block", memcpy_from_behind},
    {"memcpy-to-freed", "`memcpy` to a block that was freed", memcpy_to_freed},
    {"memset-freed", "`memset` of a block that was freed", memset_freed},
    {"memcpy-overlap", "`memcpy` between parts of a block that overlap", memcpy_overlap},
};

const struct kinds kinds_copied = KINDS("Copied by libc", table);
