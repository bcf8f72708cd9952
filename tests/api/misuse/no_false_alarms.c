/*
 * no_false_alarms.c - a correct program, however odd its bytes, is never accused of misuse.
 *
 * Four threads allocate, free and reallocate 10 million times (100 million in a full run). New
 * blocks are not written to before they are read: their stale bytes, and with them whatever the
 * allocator leaves in freed memory to recognise it by, are copied between blocks, shifted, kept
 * aside and written back to the very address they came from. Some blocks change threads.
 * The program ends with 0 and must have written nothing; misuse.py sees to both.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "check.h"

enum { THREADS = 4, SLOTS = 1000, SHARED = 512, KEPT = 64 };

struct slot {
    unsigned char *block;
    size_t size;
    unsigned char stale[KEPT]; /* its first bytes when it was handed out */
};

static _Atomic(unsigned char *) shared[SHARED];
static size_t steps;

static size_t random_size(uint64_t *random)
{
    uint64_t kind = random_next(random) % 100;
    if (kind < 70)
        return 1 + random_next(random) % 128;
    if (kind < 95)
        return 1 + random_next(random) % 1100;
    if (kind < 99)
        return 1 + random_next(random) % 8000;
    return 1 + random_next(random) % 80000;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void take(struct slot *slot, uint64_t *random)
{
    slot->size = random_size(random);
    slot->block = opaque(malloc(slot->size));
    CHECK(slot->block != NULL);
    memcpy(slot->stale, slot->block, smaller(KEPT, slot->size));
}

static void give(struct slot *slot, uint64_t *random)
{
    /* Bytes that once lay here in freed memory lie here again when the block is freed. */
    if (random_next(random) % 2 == 0)
        memcpy(slot->block, slot->stale, smaller(KEPT, slot->size));
    if (random_next(random) % 8 == 0) { /* to another thread, and one of theirs is freed here */
        slot->block = atomic_exchange(&shared[random_next(random) % SHARED], slot->block);
    }
    free(slot->block);
    slot->block = NULL;
}

/* Copies bytes nobody has written between two blocks, at the same place or shifted. */
static void copy(struct slot *to, const struct slot *from, uint64_t *random)
{
    if (from->block == NULL || to->block == NULL || from == to)
        return;
    size_t shift = random_next(random) % 4 * 8;
    size_t length = smaller(smaller(to->size, from->size), 256);
    if (shift >= length)
        return;
    if (random_next(random) % 2 == 0)
        memcpy(to->block, from->block + shift, length - shift);
    else
        memcpy(to->block + shift, from->block, length - shift);
}

static void *churn(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument * 0x9e3779b97f4a7c15 + 1;
    struct slot *slots = calloc(SLOTS, sizeof *slots);
    CHECK(slots != NULL);
    for (size_t step = 0; step < steps; step++) {
        struct slot *slot = &slots[random_next(&random) % SLOTS];
        if (slot->block == NULL) {
            take(slot, &random);
        } else if (random_next(&random) % 16 == 0) {
            size_t size = random_size(&random);
            slot->block = opaque(realloc(slot->block, size));
            slot->size = size;
            memcpy(slot->stale, slot->block, smaller(KEPT, size));
        } else {
            give(slot, &random);
        }
        copy(slot, &slots[random_next(&random) % SLOTS], &random);
    }
    for (size_t i = 0; i < SLOTS; i++)
        free(slots[i].block);
    free(slots);
    return NULL;
}

int main(int argc, char **argv)
{
    test_begin(100);
    steps = test_scale(1000000, 25000000);
    if (argc > 1)
        steps = strtoul(argv[1], NULL, 0);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, (void *)i) == 0);
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (size_t i = 0; i < SHARED; i++)
        free(shared[i]);
    return test_end();
}
