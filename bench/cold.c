/*
 * cold.c - frees of objects that are far from the processor.
 *
 * usage: cold free|replace OPERATIONS LIVE
 *
 * It imitates tables and vectors of strings: LIVE blocks of 16 to 112 bytes, of which
 *
 *   free      all are freed in random order, then as many taken again; only the frees are timed
 *   replace   any is freed and another taken in its place
 *
 * until OPERATIONS were freed. The first word of a block is written when it is taken, or its pages
 * would never be there. It is not touched again before it is freed, so an allocator that looks into
 * it waits for memory.
 */
#include "workload.h"

enum { LEAST = 16, MOST = 112, MOST_LIVE = 100000000 };

static uint64_t state = 0x9e3779b97f4a7c15u;

/* Calls for metering take as long as a free: the live bytes are told rarely. */
static int64_t live;

static void *take(void)
{
    uint64_t *block = malloc(random_between(&state, LEAST, MOST));
    if (block == NULL)
        die("malloc");
    *block = state;
    live += (LEAST + MOST) / 2;
    return block;
}

static void shuffle(void **blocks, size_t count)
{
    for (size_t i = count - 1; i > 0; i--) {
        size_t other = random_next(&state) % (i + 1);
        void *block = blocks[i];
        blocks[i] = blocks[other];
        blocks[other] = block;
    }
}

static void fill(void **blocks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        blocks[i] = take();
    meter_set(0, live);
}

/* Returns nanoseconds. */
static uint64_t free_all(void **blocks, size_t count)
{
    shuffle(blocks, count);
    uint64_t start = now_ns();
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    uint64_t end = now_ns();
    live = 0;
    meter_set(0, live);
    return end - start;
}

static uint64_t replace(void **blocks, size_t count, size_t operations)
{
    uint64_t start = now_ns();
    for (size_t i = 0; i < operations; i++) {
        size_t at = random_next(&state) % count;
        free(blocks[at]);
        live -= (LEAST + MOST) / 2;
        blocks[at] = take();
    }
    return now_ns() - start;
}

int main(int argc, char **argv)
{
    const char *manner = argc == 4 ? argv[1] : "";
    int frees = strcmp(manner, "free") == 0;
    if (!frees && strcmp(manner, "replace") != 0) {
        fprintf(stderr, "usage: %s free|replace OPERATIONS LIVE\n", argv[0]);
        return 2;
    }
    size_t operations = (size_t)number_argument(argv[2], 1, 1000000000);
    size_t count = (size_t)number_argument(argv[3], 1, MOST_LIVE);
    void **blocks = memory_of_our_own(count * sizeof(*blocks));
    uint64_t spent = 0;
    size_t done = 0;
    while (frees && done < operations) {
        fill(blocks, count);
        spent += free_all(blocks, count);
        done += count;
    }
    if (!frees) {
        fill(blocks, count);
        spent = replace(blocks, count, operations);
        done = operations;
    }
    print_figures(done, (double)spent / (double)done);
    return 0;
}
