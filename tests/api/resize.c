/*
 * resize.c - realloc and reallocarray keep what was in the block, whatever size it comes from and
 * goes to, and leave the block alone when they fail.
 *
 * A matrix of sizes on both sides of every border (small, medium, large, own mapping), growth by
 * small steps between neighbours, random walks of many blocks, blocks that were aligned, and
 * blocks that were written up to malloc_usable_size.
 * Faults it finds (planted.c): short_realloc, quiet_failure.
 */
#include <malloc.h>
#include <string.h>

#include "check.h"

#define KIB ((size_t)1024)
#define MIB ((size_t)1024 * 1024)

static const size_t sizes[] = {
    1,         15,       16,      17,       24,           100,       128,      500,       1000,
    1008,      1024,     1025,    1040,     2000,         4096,      5000,     8192,      16384,
    20000,     32 * KIB, 33000,   64 * KIB, 100000,       128 * KIB, 200000,   256 * KIB, 300000,
    512 * KIB, 1 * MIB,  3 * MIB, 4 * MIB,  5 * MIB + 13, 10 * MIB,  33 * MIB,
};
enum { SIZES = sizeof sizes / sizeof *sizes };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- From every size to every other ---------------------------------------------------------- */

static void check_step(size_t from, size_t to, size_t alignment)
{
    void *block = alignment == 0 ? opaque(malloc(from)) : opaque(memalign(alignment, from));
    /* So that growing in place has something in its way. */
    size_t beside = smaller(from, 256 * KIB);
    void *neighbour = opaque(malloc(beside));
    CHECK(block != NULL && neighbour != NULL);
    pattern_fill(block, from, from);
    pattern_fill(neighbour, beside, to);
    errno = 4321;
    void *moved = opaque(realloc(block, to));
    CHECK_MSG(moved != NULL, "from %zu to %zu", from, to);
    CHECK_MSG(errno == 4321, "errno %d after success, from %zu to %zu", errno, from, to);
    CHECK_MSG(is_aligned(moved, 16), "from %zu to %zu", from, to);
    CHECK_MSG(malloc_usable_size(moved) >= to, "from %zu to %zu", from, to);
    CHECK_MSG(pattern_holds(moved, from, smaller(from, to), from), "contents, from %zu to %zu",
              from, to);
    pattern_fill(moved, to, 7);
    CHECK_MSG(pattern_holds(neighbour, beside, beside, to), "neighbour, from %zu to %zu", from, to);
    CHECK(pattern_holds(moved, to, to, 7));
    free(moved);
    free(neighbour);
}

static void every_size_to_every_other(void)
{
    for (size_t from = 0; from < SIZES; from++)
        for (size_t to = 0; to < SIZES; to++)
            check_step(sizes[from], sizes[to], 0);
}

static void aligned_blocks(void)
{
    size_t count = test_full() ? SIZES : SIZES - 4; /* not the largest: they take their time */
    for (size_t alignment = 64; alignment <= 64 * KIB; alignment *= 4)
        for (size_t from = 0; from < count; from += 3)
            for (size_t to = 0; to < count; to += 2)
                check_step(sizes[from], sizes[to], alignment);
}

/* ---- By small steps -------------------------------------------------------------------------- */

static void grow_and_shrink_by_steps(void)
{
    enum { BLOCKS = 4 };
    unsigned char *blocks[BLOCKS] = {NULL};
    size_t size = 1;
    while (size < 12 * MIB) {
        size_t next = size + size / 9 + 1;
        for (size_t i = 0; i < BLOCKS; i++) {
            unsigned char *grown = opaque(realloc(blocks[i], next));
            CHECK(grown != NULL);
            CHECK_MSG(blocks[i] == NULL || pattern_holds(grown, size, size, i), "size %zu", size);
            pattern_fill(grown, next, i);
            blocks[i] = grown;
        }
        size = next;
    }
    while (size > 1) {
        size_t next = size - size / 7 - 1;
        if (next == 0)
            next = 1;
        for (size_t i = 0; i < BLOCKS; i++) {
            unsigned char *shrunk = opaque(realloc(blocks[i], next));
            CHECK(shrunk != NULL);
            CHECK_MSG(pattern_holds(shrunk, size, next, i), "from %zu to %zu", size, next);
            pattern_fill(shrunk, next, i);
            blocks[i] = shrunk;
        }
        size = next;
    }
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

/* ---- Random walks ---------------------------------------------------------------------------- */

static size_t random_size(uint64_t *random)
{
    size_t magnitude = random_next(random) % 22; /* up to 4 MiB, each power of two as often */
    return 1 + random_next(random) % ((size_t)1 << magnitude);
}

static void random_walks(void)
{
    enum { BLOCKS = 200 };
    static void *blocks[BLOCKS];
    static size_t lengths[BLOCKS];
    uint64_t random = 987654321;
    size_t steps = test_scale(20000, 400000);
    for (size_t step = 0; step < steps; step++) {
        size_t i = random_next(&random) % BLOCKS;
        size_t to = random_size(&random);
        void *moved = opaque(realloc(blocks[i], to));
        CHECK(moved != NULL);
        CHECK_MSG(blocks[i] == NULL || pattern_holds(moved, lengths[i], smaller(lengths[i], to), i),
                  "step %zu, from %zu to %zu", step, lengths[i], to);
        pattern_fill(moved, to, i);
        blocks[i] = moved;
        lengths[i] = to;
    }
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

/* ---- Up to the usable size ------------------------------------------------------------------- */

static void usable_bytes_are_kept(void)
{
    for (size_t i = 0; i < SIZES; i++) {
        void *block = opaque(malloc(sizes[i]));
        size_t usable = malloc_usable_size(block);
        pattern_fill(block, usable, i);
        void *same = opaque(realloc(block, usable));
        CHECK_MSG(pattern_holds(same, usable, usable, i), "to usable size %zu", usable);
        void *grown = opaque(realloc(same, usable * 2 + 1));
        CHECK_MSG(pattern_holds(grown, usable, usable, i), "from usable size %zu", usable);
        free(grown);
    }
}

/* ---- Sizes that cannot be had ---------------------------------------------------------------- */

static void failure_leaves_the_block(void)
{
    static const size_t impossible[] = {SIZE_MAX,        SIZE_MAX - 15,
                                        SIZE_MAX - 4096, (size_t)PTRDIFF_MAX + 1,
                                        PTRDIFF_MAX,     (size_t)1 << 62};
    for (size_t i = 0; i < SIZES; i++) {
        void *block = opaque(malloc(sizes[i]));
        pattern_fill(block, sizes[i], 5);
        for (size_t j = 0; j < sizeof impossible / sizeof *impossible; j++) {
            errno = 0;
            CHECK(realloc(opaque(block), opaque_size(impossible[j])) == NULL);
            CHECK_MSG(errno == ENOMEM, "realloc to %zu", impossible[j]);
        }
        errno = 0;
        CHECK(reallocarray(opaque(block), opaque_size((size_t)1 << 33), (size_t)1 << 33) == NULL);
        CHECK(errno == ENOMEM);
        errno = 0;
        CHECK(reallocarray(opaque(block), opaque_size(SIZE_MAX), 2) == NULL);
        CHECK(errno == ENOMEM);
        CHECK_MSG(pattern_holds(block, sizes[i], sizes[i], 5), "size %zu", sizes[i]);
        free(block);
    }
}

/* ---- The ends of the range ------------------------------------------------------------------- */

static void null_and_zero(void)
{
    void *block = opaque(realloc(NULL, 100));
    CHECK(block != NULL);
    pattern_fill(block, 100, 1);
    CHECK(realloc(block, opaque_size(0)) == NULL);
    block = opaque(realloc(NULL, opaque_size(0)));
    CHECK(block != NULL);
    free(block);
    block = opaque(reallocarray(NULL, 10, 30));
    CHECK(block != NULL && malloc_usable_size(block) >= 300);
    pattern_fill(block, 300, 2);
    block = opaque(reallocarray(block, 20, 30));
    CHECK(block != NULL && pattern_holds(block, 300, 300, 2));
    free(block);
}

/* realloc(block, 0) frees: what would otherwise be lost is twice what may be resident. */
static void zero_frees(void)
{
    for (size_t i = 0; i < 600; i++) {
        void *block = opaque(malloc(1 * MIB));
        CHECK(block != NULL);
        pattern_fill(block, 1 * MIB, i);
        CHECK(realloc(block, opaque_size(0)) == NULL);
    }
    CHECK_MSG(resident_kib() < 300 * 1024, "%zu KiB", resident_kib());
}

int main(void)
{
    test_begin(120);
    failure_leaves_the_block();
    every_size_to_every_other();
    aligned_blocks();
    grow_and_shrink_by_steps();
    random_walks();
    usable_bytes_are_kept();
    null_and_zero();
    zero_frees();
    return test_end();
}
