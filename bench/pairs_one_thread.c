/*
 * pairs_one_thread.c - the rows of `pairs` that one thread runs.
 *
 *   freed-at-once      64 bytes, freed before the next: a temporary in a loop
 *   reverse-100        100 blocks of 64 bytes, freed last first: a call that unwinds
 *   in-order-10000     10,000 blocks of 64 bytes, freed first first: a list or queue that is torn
 *                      down; more than a per-thread cache holds
 *   random-16-1024     10,000 live blocks, any of them replaced by one of another size: a program
 *                      at work on its heap
 *   random-16-256      200,000 live blocks likewise: a heap larger than the caches of the CPU
 *   random-1-30000     1,000 live blocks up to 30,000 bytes: buffers, with medium sizes
 *
 * The program writes the start of every block, as programs do.
 */
#include <stdbool.h>
#include <stddef.h>

#include "pairs.h"
#include "workload.h"

enum {
    BLOCK = 64,
    AT_ONCE = 1000000,
    REVERSE = 100,
    REVERSE_TIMES = 8000,
    IN_ORDER = 10000,
    IN_ORDER_TIMES = 60,
    MOST_LIVE = 200000,
    REPLACED = 200000 /* in a round of the random rows */
};

static void **slots;      /* the live blocks */
static uint32_t *victims; /* the slots that a round of a random row replaces, in this order, */
static uint16_t *sizes;   /* and by blocks of these sizes */

static inline void *take(size_t size, uint64_t mark)
{
    uint64_t *block = malloc(size);
    if (block == NULL)
        die("malloc");
    *block = mark;
    return block;
}

/* Where a block may be too small for a whole word. */
static inline void *take_any(size_t size, uint64_t mark)
{
    unsigned char *block = malloc(size);
    if (block == NULL)
        die("malloc");
    *block = (unsigned char)mark;
    return block;
}

static void prepare_slots(void)
{
    slots = memory_of_our_own(MOST_LIVE * sizeof *slots);
}

/* What is live, as far as it can be said outside of what is timed. */
static void note_live(uint64_t bytes)
{
    meter_set(0, (int64_t)bytes);
}

static void freed_at_once(void)
{
    for (uint64_t i = 0; i < AT_ONCE; i++)
        free(take(BLOCK, i));
}

static void reverse_100(void)
{
    for (uint64_t i = 0; i < REVERSE_TIMES; i++) {
        for (int k = 0; k < REVERSE; k++)
            slots[k] = take(BLOCK, i);
        for (int k = REVERSE - 1; k >= 0; k--)
            free(slots[k]);
    }
}

static void in_order_10000(void)
{
    for (uint64_t i = 0; i < IN_ORDER_TIMES; i++) {
        for (int k = 0; k < IN_ORDER; k++)
            slots[k] = take(BLOCK, i);
        note_live((uint64_t)IN_ORDER * BLOCK);
        for (int k = 0; k < IN_ORDER; k++)
            free(slots[k]);
    }
}

/* Fills `live` slots and draws which are replaced, and by what; the same in every run. */
static void prepare_random(uint32_t live, uint32_t smallest, uint32_t largest)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    prepare_slots();
    victims = memory_of_our_own(REPLACED * sizeof *victims);
    sizes = memory_of_our_own(REPLACED * sizeof *sizes);
    for (uint32_t i = 0; i < REPLACED; i++) {
        victims[i] = random_between(&state, 0, live - 1);
        sizes[i] = (uint16_t)random_between(&state, smallest, largest);
    }
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < live; i++) {
        uint32_t size = random_between(&state, smallest, largest);
        slots[i] = take_any(size, i);
        bytes += size;
    }
    note_live(bytes); /* sizes drawn later have the same mean */
}

static void prepare_random_1024(void)
{
    prepare_random(10000, 16, 1024);
}

static void prepare_random_256(void)
{
    prepare_random(MOST_LIVE, 16, 256);
}

static void prepare_random_30000(void)
{
    prepare_random(1000, 1, 30000);
}

static void replace(void)
{
    for (uint32_t i = 0; i < REPLACED; i++) {
        void **slot = &slots[victims[i]];
        free(*slot);
        *slot = take(sizes[i], i);
    }
}

static void replace_any(void)
{
    for (uint32_t i = 0; i < REPLACED; i++) {
        void **slot = &slots[victims[i]];
        free(*slot);
        *slot = take_any(sizes[i], i);
    }
}

const struct row one_thread_rows[] = {
    {"freed-at-once", AT_ONCE, NULL, freed_at_once, NULL},
    {"reverse-100", REVERSE *REVERSE_TIMES, prepare_slots, reverse_100, NULL},
    {"in-order-10000", IN_ORDER *IN_ORDER_TIMES, prepare_slots, in_order_10000, NULL},
    {"random-16-1024", REPLACED, prepare_random_1024, replace, NULL},
    {"random-16-256", REPLACED, prepare_random_256, replace, NULL},
    {"random-1-30000", REPLACED, prepare_random_30000, replace_any, NULL},
    {NULL, 0, NULL, NULL, NULL},
};
