/*
 * replace_large.c - a cache of large blocks of many lengths.
 *
 * usage: replace_large LOW HIGH MIB OPERATIONS
 *
 * It imitates a cache with a limit in bytes: of images, of decoded frames, of blocks of a database.
 * An operation draws a length of LOW to HIGH bytes, frees blocks at random until it and what is
 * left are no more than MIB MiB, and takes it. A byte of each page is written, and the last one.
 */
#include "workload.h"

enum { SLOTS = 1 << 16, PAGE = 4096 };

struct cached {
    unsigned char *block;
    uint32_t size;
};

static struct cached *cache;
static uint32_t count;
static size_t held;

static void drop_one(uint64_t *state)
{
    uint32_t at = random_between(state, 0, count - 1);
    held -= cache[at].size;
    free(cache[at].block);
    cache[at] = cache[--count];
}

static void put_one(uint32_t size)
{
    unsigned char *block = malloc(size);
    if (block == NULL)
        die("malloc");
    for (uint32_t at = 0; at < size; at += PAGE)
        block[at] = 1;
    block[size - 1] = 1;
    cache[count++] = (struct cached){block, size};
    held += size;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: %s LOW HIGH MIB OPERATIONS\n", argv[0]);
        return 2;
    }
    uint32_t low = (uint32_t)number_argument(argv[1], 1, 1 << 30);
    uint32_t high = (uint32_t)number_argument(argv[2], low, 1 << 30);
    size_t budget = (size_t)number_argument(argv[3], 1, 1 << 20) << 20;
    long operations = number_argument(argv[4], 1, 1000000000);
    if (budget < high || budget / low >= SLOTS) {
        fprintf(stderr, "%ld MiB hold no block of HIGH bytes, or more than %d of LOW\n",
                (long)(budget >> 20), SLOTS);
        return 2;
    }
    uint64_t state = 0x9e3779b97f4a7c15u;
    cache = memory_of_our_own(SLOTS * sizeof *cache);

    uint64_t start = now_ns();
    for (long i = 0; i < operations; i++) {
        uint32_t size = random_between(&state, low, high);
        while (held + size > budget)
            drop_one(&state);
        put_one(size);
        meter_set(0, (int64_t)held);
    }
    uint64_t end = now_ns();
    print_figures((uint64_t)operations, (double)(end - start) / (double)operations);
    return 0;
}
