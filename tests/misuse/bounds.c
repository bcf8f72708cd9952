/*
 * bounds.c - writing and reading before and behind a block, and through blocks of no bytes.
 */
#include "kinds.h"

#include <malloc.h>
#include <string.h>

/* By hand: copies by libc are in copied.c. */
static void write_bytes(unsigned char *at, size_t count, unsigned char byte)
{
    volatile unsigned char *to = opaque(at);
    for (size_t i = 0; i < count; i++)
        to[i] = byte;
}

static bool write_at(size_t size, ptrdiff_t offset, size_t count, unsigned char byte)
{
    struct around around;
    around_make(&around, size);
    write_bytes(around_victim(&around) + offset, count, byte);
    bool damaged = around_is_damaged(&around);
    around_free(&around);
    return damaged;
}

static bool read_at(size_t size, ptrdiff_t offset, size_t count)
{
    struct around around;
    around_make(&around, size);
    bool secret = secret_is_seen(around_victim(&around) + offset, count);
    around_free(&around);
    return secret;
}

#define SIDES(n) \
    static bool write_behind_##n(size_t size) \
    { \
        return write_at(size, (ptrdiff_t)size, n, 0x41); \
    } \
    static bool read_behind_##n(size_t size) \
    { \
        return read_at(size, (ptrdiff_t)size, n); \
    } \
    static bool write_before_##n(size_t size) \
    { \
        return write_at(size, -(n), n, 0x41); \
    } \
    static bool read_before_##n(size_t size) \
    { \
        return read_at(size, -(n), n); \
    }

SIDES(1)
SIDES(8)
SIDES(16)
SIDES(64)
SIDES(4096)

static bool write_zero_behind(size_t size)
{
    return write_at(size, (ptrdiff_t)size, 1, 0);
}

/* Nothing between is touched. */
static bool write_far_behind(size_t size)
{
    return write_at(size, (ptrdiff_t)(2 * size + 100), 8, 0x41);
}

static bool write_behind_and_stay(size_t size)
{
    struct around around;
    around_make(&around, size);
    write_bytes(around_victim(&around) + size, 16, 0x41);
    return around_is_damaged(&around); /* nobody frees them */
}

/* Others whose last bytes are theirs. */
static bool write_behind_of(unsigned char *block, size_t size)
{
    CHECK(block != NULL);
    write_bytes(block + size, 8, 0x41);
    free(block);
    return true;
}

static bool write_behind_calloc(size_t size)
{
    return write_behind_of(opaque(calloc(1, size)), size);
}

static bool write_behind_memalign(size_t size)
{
    return write_behind_of(opaque(memalign(256, size)), size);
}

static bool write_behind_grown(size_t size)
{
    return write_behind_of(opaque(realloc(secret_block(size / 2), size)), size);
}

static bool write_behind_shrunk(size_t size)
{
    return write_behind_of(opaque(realloc(secret_block(size), size - size / 4)), size - size / 4);
}

/* ---- No bytes: the size says how far behind the beginning ---- */

static size_t zero_offset(size_t size)
{
    return size < 1000 ? 0 : size < 100000 ? 15 : 4000;
}

static bool write_zero_sized(size_t size)
{
    unsigned char *block = opaque(malloc(0));
    write_bytes(block + zero_offset(size), 1, 0x41);
    free(block);
    return true;
}

static bool read_zero_sized(size_t size)
{
    unsigned char *block = opaque(malloc(0));
    (void)secret_is_seen(block + zero_offset(size), 1);
    free(block);
    return true;
}

static bool write_zero_calloc(size_t size)
{
    unsigned char *block = opaque(calloc(0, size));
    write_bytes(block + zero_offset(size), 1, 0x41);
    free(block);
    return true;
}

static bool write_zero_realloc(size_t size)
{
    unsigned char *block = opaque(realloc(NULL, 0));
    write_bytes(block + zero_offset(size), 1, 0x41);
    free(block);
    return true;
}

#define BEHIND(n, text_of_n) \
    {"write-behind-" #n, text_of_n " behind a block are written", write_behind_##n}, \
    { \
        "read-behind-" #n, "... read", read_behind_##n \
    }
#define BEFORE(n, text_of_n) \
    {"write-before-" #n, text_of_n " before a block are written", write_before_##n}, \
    { \
        "read-before-" #n, "... read", read_before_##n \
    }

static const struct kind table[] = {
    BEHIND(1, "1 byte"),
    BEHIND(8, "8 bytes"),
    BEHIND(16, "16 bytes"),
    BEHIND(64, "64 bytes"),
    BEHIND(4096, "4096 bytes"),
    {"write-zero-behind", "a zero byte behind a block is written, as behind a text",
     write_zero_behind},
    {"write-far-behind", "8 bytes far behind a block are written", write_far_behind},
    {"write-behind-stays", "16 bytes behind a block are written that is never freed",
     write_behind_and_stay},
    {"write-behind-calloc", "8 bytes behind a block of `calloc` are written", write_behind_calloc},
    {"write-behind-memalign", "... of `memalign`", write_behind_memalign},
    {"write-behind-grown", "... that has grown", write_behind_grown},
    {"write-behind-shrunk", "... that has shrunk", write_behind_shrunk},
    BEFORE(1, "1 byte"),
    BEFORE(8, "8 bytes"),
    BEFORE(16, "16 bytes"),
    BEFORE(64, "64 bytes"),
    BEFORE(4096, "4096 bytes"),
    {"write-malloc-0", "a byte of `malloc(0)` is written: the first, the 16th, the 4001st",
     write_zero_sized},
    {"read-malloc-0", "... read", read_zero_sized},
    {"write-calloc-0", "a byte of `calloc(0, n)` is written", write_zero_calloc},
    {"write-realloc-0", "a byte of `realloc(NULL, 0)` is written", write_zero_realloc},
};

const struct kinds kinds_bounds = KINDS("Beyond a block", table);
