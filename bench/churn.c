/*
 * churn.c - a few blocks of one size, taken together, freed together, again and again.
 *
 * usage: churn SIZE BLOCKS [OPERATIONS]       10,000,000 unless given
 *
 * It imitates a loop that builds something small and throws it away: 64 blocks of 64 bytes fill
 * one page, 1,000 need many. The allocator's page (slab, span) empties each time: one that gives it
 * back, or puts it on some list, pays for that each time. An operation is a malloc and its free.
 * The first word of each block is written.
 */
#include "workload.h"

enum { MOST_BLOCKS = 1000000, DEFAULT_OPERATIONS = 10000000 };

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: %s SIZE BLOCKS [OPERATIONS]\n", argv[0]);
        return 2;
    }
    size_t size = (size_t)number_argument(argv[1], 8, 1 << 20);
    long count = number_argument(argv[2], 1, MOST_BLOCKS);
    long operations = argc == 4 ? number_argument(argv[3], 1, 1000000000000) : DEFAULT_OPERATIONS;
    uint64_t **blocks = memory_of_our_own((size_t)count * sizeof *blocks);
    long rounds = (operations + count - 1) / count;
    meter_set(0, (int64_t)(size * (size_t)count));

    uint64_t start = now_ns();
    for (long round = 0; round < rounds; round++) {
        for (long i = 0; i < count; i++) {
            blocks[i] = malloc(size);
            if (blocks[i] == NULL)
                die("malloc");
            *blocks[i] = (uint64_t)i;
        }
        for (long i = 0; i < count; i++)
            free(blocks[i]);
    }
    uint64_t end = now_ns();
    uint64_t done = (uint64_t)rounds * (uint64_t)count;
    print_figures(done, (double)(end - start) / (double)done);
    return 0;
}
