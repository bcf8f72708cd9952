/*
 * zeroing.c - calloc gives zeroed memory, above all where it may skip the clearing because it
 * believes the memory is fresh from the system.
 *
 * For every size, blocks are taken, filled with ones and freed; then calloc takes as many. In
 * between, memory is trimmed, split, grown in place and handed from thread to thread, since each
 * of these changes what the allocator knows about a page.
 * Faults it finds (planted.c): dirty_calloc.
 */
#include <malloc.h>
#include <pthread.h>
#include <string.h>

#include "check.h"

#define MIB ((size_t)1024 * 1024)

static const size_t sizes[] = {
    1,      8,      16,     24,     64,      100,     500,     1000,    1024,     1025,
    2000,   4096,   5000,   8192,   16384,   20000,   32768,   65536,   100000,   131072,
    200000, 262144, 300000, 524288, 1000000, 2 * MIB, 4 * MIB, 5 * MIB, 10 * MIB, 20 * MIB,
};
enum { SIZES = sizeof sizes / sizeof *sizes, MOST = 2000 };

static size_t blocks_for(size_t size)
{
    size_t count = 4 * MIB / size;
    return count < 2 ? 2 : count > MOST ? MOST : count;
}

/* Takes blocks of `size`, dirties them to the last usable byte, and frees them. */
static void dirty_and_free(size_t size, void **blocks)
{
    size_t count = blocks_for(size);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = opaque(malloc(size));
        CHECK(blocks[i] != NULL);
        memset(blocks[i], 0xff, malloc_usable_size(blocks[i]));
    }
    for (size_t i = 0; i < count; i++)
        free(blocks[(i * 7919) % count]);
}

/* Takes zeroed blocks, checks them, dirties them, and frees them. */
static void take_zeroed(size_t size, void **blocks)
{
    size_t count = blocks_for(size);
    for (size_t i = 0; i < count; i++) {
        /* Both ways to write the product. */
        blocks[i] = i % 2 == 0 ? opaque(calloc(1, size)) : opaque(calloc(size, 1));
        CHECK(blocks[i] != NULL && is_aligned(blocks[i], 16));
        CHECK_MSG(all_zero(blocks[i], size), "size %zu, block %zu", size, i);
        memset(blocks[i], 0xee, size);
    }
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
}

static void same_size_again(void)
{
    static void *blocks[MOST];
    for (size_t i = 0; i < SIZES; i++) {
        take_zeroed(sizes[i], blocks); /* fresh memory, perhaps */
        dirty_and_free(sizes[i], blocks);
        take_zeroed(sizes[i], blocks); /* surely used memory */
        malloc_trim(0);
        take_zeroed(sizes[i], blocks); /* purged memory, perhaps */
    }
}

/* Memory that was dirty as one size comes back as another. */
static void other_size_again(void)
{
    static void *blocks[MOST];
    for (size_t i = 0; i < SIZES; i++)
        for (size_t j = i % 3; j < SIZES; j += 5) {
            dirty_and_free(sizes[i], blocks);
            take_zeroed(sizes[j], blocks);
        }
}

/* Blocks that were grown or shrunk in place leave remainders, which are dirty too. */
static void after_resizing(void)
{
    for (size_t i = 4; i < SIZES; i++) {
        size_t size = sizes[i];
        unsigned char *block = opaque(malloc(size));
        memset(block, 0xff, size);
        block = opaque(realloc(block, size / 2 + 1));
        unsigned char *rest = opaque(calloc(1, size / 3 + 1));
        CHECK_MSG(all_zero(rest, size / 3 + 1), "after shrinking %zu", size);
        memset(rest, 0xff, size / 3 + 1);
        block = opaque(realloc(block, size * 2));
        memset(block, 0xff, size * 2);
        free(rest);
        free(block);
        block = opaque(calloc(2, size));
        CHECK_MSG(all_zero(block, 2 * size), "after growing %zu", size);
        free(block);
    }
}

/* A zeroed block that grows is only zero where it was: calloc's promise ends there. But what calloc
 * gives after such a block was freed must be zero again. */
static void after_calloc_and_growth(void)
{
    for (size_t size = 1000; size < 20 * MIB; size *= 3) {
        unsigned char *block = opaque(calloc(1, size));
        memset(block, 1, size);
        block = opaque(realloc(block, 2 * size));
        memset(block + size, 2, size);
        free(block);
        block = opaque(calloc(1, 2 * size));
        CHECK_MSG(all_zero(block, 2 * size), "size %zu", size);
        free(block);
    }
}

static void *dirty_in_a_thread(void *argument)
{
    (void)argument;
    void **blocks = calloc(MOST, sizeof *blocks);
    CHECK(blocks != NULL);
    for (size_t i = 0; i < SIZES; i += 3)
        dirty_and_free(sizes[i], blocks);
    free(blocks);
    return NULL;
}

static void after_other_threads(void)
{
    static void *blocks[MOST];
    for (int round = 0; round < 3; round++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, dirty_in_a_thread, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        for (size_t i = 0; i < SIZES; i += 3)
            take_zeroed(sizes[i], blocks);
    }
}

int main(void)
{
    test_begin(120);
    same_size_again();
    other_size_again();
    after_resizing();
    after_calloc_and_growth();
    after_other_threads();
    return test_end();
}
