/*
 * load.c - see load.h.
 */
#include "load.h"

#include <malloc.h>
#include <pthread.h>

#include "check.h"

enum { BLOCKS = 1500, ROUNDS = 2, THREADS = 2, PRIME = 7919 };

/* Of one in `rare` some MB, of one in 20 some KB. */
static size_t size_of(size_t i, size_t rare, uint64_t *random)
{
    if (i % rare == 0)
        return 1000000 + random_next(random) % 8000000;
    if (i % 20 == 0)
        return 10000 + random_next(random) % 200000;
    return 1 + random_next(random) % 2000;
}

static void block_free(struct block *block, size_t seed)
{
    CHECK(pattern_holds(block->start, block->size, block->size, seed));
    errno = 4242;
    free(block->start);
    CHECK_MSG(errno == 4242, "free set errno to %d", errno);
    block->start = NULL;
}

void load_by_malloc(struct block *blocks, size_t count, uint64_t seed)
{
    uint64_t random = seed;
    for (size_t i = 0; i < count; i++) {
        blocks[i].size = size_of(i, 1000, &random);
        errno = 4242;
        blocks[i].start = opaque(malloc(blocks[i].size));
        CHECK_MSG(blocks[i].start != NULL, "block %zu of %zu bytes", i, blocks[i].size);
        CHECK_MSG(errno == 4242, "malloc set errno to %d", errno);
        pattern_fill(blocks[i].start, blocks[i].size, i);
    }
    for (size_t i = 0; i < count; i++)
        block_free(&blocks[i * PRIME % count], i * PRIME % count);
}

static void *take(size_t i, size_t size)
{
    if (i % 3 == 0)
        return opaque(aligned_alloc(64, (size + 63) / 64 * 64));
    if (i % 2 != 0)
        return opaque(malloc(size));
    void *block = opaque(calloc(size, 1));
    CHECK(block == NULL || all_zero(block, size));
    return block;
}

void load_by_realloc(void)
{
    size_t size = 1 << 20;
    char *block = opaque(malloc(size));
    pattern_fill(block, size, 1);
    for (size_t next = 2 * size; next <= (size_t)64 << 20; next *= 2) {
        block = opaque(realloc(block, next));
        CHECK(block != NULL && pattern_holds(block, size, size, 1));
        block[next - 1] = 1;
    }
    block = opaque(realloc(block, size));
    CHECK(block != NULL && pattern_holds(block, size, size, 1));
    free(block);
}

void *load_mixed(void *argument)
{
    static __thread struct block blocks[BLOCKS];
    uint64_t random = (uintptr_t)argument + 1;
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            size_t at = (i * PRIME + round) % BLOCKS;
            if (blocks[at].start != NULL)
                block_free(&blocks[at], at);
            blocks[at].size = size_of(i, 500, &random);
            blocks[at].start = take(i, blocks[at].size);
            CHECK(blocks[at].start != NULL);
            pattern_fill(blocks[at].start, blocks[at].size, at);
        }
        load_by_realloc();
        (void)malloc_trim(0);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        block_free(&blocks[i], i);
    return NULL;
}

void load_in_threads(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, load_mixed, (void *)(i + 1)) == 0);
    load_mixed(NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}
