/*
 * alignment.c - every block is aligned, as long as asked for, and overlaps no other.
 *
 * All sizes from 1 to 70,000 through malloc; then all alignments from 16 to 4 MiB with odd sizes
 * through each aligned function. Live blocks wait in a ring with a pattern in them, which is
 * checked before they are freed, so that blocks which overlap are found.
 * Faults it finds (planted.c): misaligned, overlapping.
 */
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

/* ---- A ring of live blocks ------------------------------------------------------------------- */

enum { RING = 64 };

struct live {
    void *block;
    size_t size;
    uint64_t seed;
};

static struct live ring[RING];
static uint64_t ring_count;

static void ring_release(struct live *entry)
{
    if (entry->block == NULL)
        return;
    CHECK_MSG(pattern_holds(entry->block, entry->size, entry->size, entry->seed),
              "a block of %zu bytes was overwritten by another", entry->size);
    free(entry->block);
    entry->block = NULL;
}

/* Takes a new block in, writes to all of it, and frees the oldest. */
static void ring_put(void *block, size_t size, size_t width)
{
    struct live *entry = &ring[ring_count % width];
    ring_release(entry);
    *entry = (struct live){block, size, ++ring_count};
    pattern_fill(block, size, entry->seed);
}

static void ring_empty(void)
{
    for (size_t i = 0; i < RING; i++)
        ring_release(&ring[i]);
}

/* ---- malloc ---------------------------------------------------------------------------------- */

static void every_size(void)
{
    for (size_t size = 1; size <= 70000; size++) {
        void *block = opaque(malloc(size));
        CHECK_MSG(block != NULL, "size %zu", size);
        CHECK_MSG(is_aligned(block, 16), "size %zu", size);
        size_t usable = malloc_usable_size(block);
        CHECK_MSG(usable >= size, "size %zu, usable %zu", size, usable);
        ring_put(block, usable, RING);
    }
    ring_empty();
}

static void every_size_of_calloc_and_realloc(void)
{
    for (size_t size = 1; size <= 70000; size += 7) {
        void *cleared = opaque(calloc(1, size));
        CHECK_MSG(cleared != NULL && is_aligned(cleared, 16), "size %zu", size);
        CHECK_MSG(all_zero(cleared, size), "size %zu", size);
        ring_put(cleared, size, RING);
        void *grown = opaque(realloc(opaque(malloc(size / 2 + 1)), size));
        CHECK_MSG(grown != NULL && is_aligned(grown, 16), "size %zu", size);
        ring_put(grown, size, RING);
    }
    ring_empty();
}

/* ---- The aligned functions ------------------------------------------------------------------- */

static void *by_aligned_alloc(size_t alignment, size_t size)
{
    return aligned_alloc(alignment, size);
}

static void *by_memalign(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

static void *by_posix_memalign(size_t alignment, size_t size)
{
    void *block = NULL;
    CHECK(posix_memalign(&block, alignment, size) == 0);
    return block;
}

typedef void *(*aligned_function)(size_t alignment, size_t size);
static const aligned_function functions[] = {by_aligned_alloc, by_memalign, by_posix_memalign};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static void one_alignment(aligned_function function, size_t alignment)
{
    const size_t sizes[] = {1,
                            3,
                            16,
                            17,
                            100,
                            1000,
                            1023,
                            1025,
                            4095,
                            4097,
                            12345,
                            65537,
                            alignment - 1,
                            alignment,
                            alignment + 1,
                            alignment + alignment / 2 + 7};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        /* An odd neighbour, so that aligned blocks do not just follow each other. */
        ring_put(opaque(malloc(i * 24 + 1)), i * 24 + 1, 8);
        void *block = opaque(function(alignment, sizes[i]));
        CHECK_MSG(block != NULL, "alignment %zu, size %zu", alignment, sizes[i]);
        CHECK_MSG(is_aligned(block, alignment), "alignment %zu, size %zu", alignment, sizes[i]);
        CHECK_MSG(is_aligned(block, 16), "alignment %zu, size %zu", alignment, sizes[i]);
        size_t usable = malloc_usable_size(block);
        CHECK_MSG(usable >= sizes[i], "alignment %zu, size %zu", alignment, sizes[i]);
        ring_put(block, usable, 8);
    }
}

static void every_alignment(void)
{
    for (size_t alignment = sizeof(void *); alignment <= (size_t)4 << 20; alignment *= 2)
        for (size_t i = 0; i < FUNCTIONS; i++)
            one_alignment(functions[i], alignment);
    ring_empty();
}

/* memalign and aligned_alloc take small alignments as well; memalign rounds odd ones up. */
static void small_and_odd_alignments(void)
{
    for (size_t alignment = 1; alignment <= 16; alignment *= 2) {
        void *block = opaque(memalign(alignment, 5));
        CHECK(block != NULL && is_aligned(block, 16));
        free(block);
        block = opaque(aligned_alloc(alignment, 5));
        CHECK(block != NULL && is_aligned(block, 16));
        free(block);
    }
    static const size_t odd[][2] = {{24, 32}, {33, 64}, {100, 128}, {3000, 4096}, {70000, 131072}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        void *block = opaque(memalign(opaque_size(odd[i][0]), 100));
        CHECK_MSG(block != NULL && is_aligned(block, odd[i][1]), "alignment %zu", odd[i][0]);
        free(block);
    }
}

static void page_functions(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    static const size_t sizes[] = {1, 100, 4095, 4096, 4097, 65536, 100000, 3000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *block = opaque(valloc(sizes[i]));
        CHECK(block != NULL && is_aligned(block, page));
        ring_put(block, sizes[i], RING);
        block = opaque(pvalloc(sizes[i]));
        CHECK(block != NULL && is_aligned(block, page));
        size_t whole_pages = (sizes[i] + page - 1) / page * page;
        CHECK_MSG(malloc_usable_size(block) >= whole_pages, "size %zu", sizes[i]);
        ring_put(block, whole_pages, RING);
    }
    ring_empty();
}

/* An alignment larger than any segment can be refused, but not ignored. */
static void enormous_alignments(void)
{
    for (size_t alignment = (size_t)8 << 20; alignment <= (size_t)1 << 30; alignment *= 2) {
        errno = 0;
        void *block = opaque(aligned_alloc(alignment, 100));
        CHECK(block != NULL ? is_aligned(block, alignment) : errno == ENOMEM);
        if (block != NULL)
            pattern_fill(block, 100, alignment);
        free(block);
    }
}

/* Many aligned blocks at once: none overlaps, all come back, and the next round fits as well. */
static void many_aligned_at_once(void)
{
    enum { BLOCKS = 2000 };
    static struct live blocks[BLOCKS];
    uint64_t random = 12345;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            size_t alignment = (size_t)16 << (random_next(&random) % 11);
            size_t size = 1 + random_next(&random) % 3000;
            void *block = opaque(memalign(alignment, size));
            CHECK(block != NULL && is_aligned(block, alignment));
            blocks[i] = (struct live){block, size, i + 1};
            pattern_fill(block, size, i + 1);
        }
        for (size_t i = 0; i < BLOCKS; i++)
            ring_release(&blocks[(i * 7919) % BLOCKS]);
    }
}

int main(void)
{
    test_begin(60);
    every_size();
    every_size_of_calloc_and_realloc();
    every_alignment();
    small_and_odd_alignments();
    page_functions();
    enormous_alignments();
    many_aligned_at_once();
    return test_end();
}
