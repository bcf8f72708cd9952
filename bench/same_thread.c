/*
 * same_thread.c - threads that each take many blocks of random size, then free them in order.
 *
 * usage: same_thread THREADS MOST_SIZE [BLOCKS [ROUNDS]]       100,000 and 5 unless given
 *
 * It imitates workers that load something, work on it and unload it, none of them needing the
 * others. Sizes are 0 to MOST_SIZE, as likely; every page of a block is written to. An operation is
 * a malloc and its free; ns_per_op is the time of all threads together over the operations of all,
 * so that on enough processors it falls with the number of threads.
 */
#include "threads.h"

static uint32_t most_size;
static size_t block_count;
static long rounds;
static unsigned char **blocks_of[MOST_THREADS];

enum { PAGE = 4096 };

/* From a generator that is begun anew, so that sizes need not be kept. */
static uint32_t draw_size(uint64_t *state)
{
    return (uint32_t)(random_next(state) >> 11) % (most_size + 1);
}

static unsigned char *take(size_t size)
{
    unsigned char *block = malloc(size);
    if (block == NULL)
        die("malloc");
    for (size_t i = 0; i < size; i += PAGE)
        block[i] = (unsigned char)i;
    return block;
}

static void work(unsigned thread)
{
    unsigned char **blocks = blocks_of[thread];
    int64_t live = 0;
    for (long round = 0; round < rounds; round++) {
        uint64_t seed = 0x9e3779b97f4a7c15u * (thread + 1) + (uint64_t)round;
        uint64_t taking = seed, freeing = seed;
        for (size_t i = 0; i < block_count; i++) {
            uint32_t size = draw_size(&taking);
            blocks[i] = take(size);
            meter_set(thread, live += size);
        }
        for (size_t i = 0; i < block_count; i++) {
            free(blocks[i]);
            meter_set(thread, live -= draw_size(&freeing));
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 5) {
        fprintf(stderr, "usage: %s THREADS MOST_SIZE [BLOCKS [ROUNDS]]\n", argv[0]);
        return 2;
    }
    unsigned threads = (unsigned)number_argument(argv[1], 1, MOST_THREADS);
    most_size = (uint32_t)number_argument(argv[2], 0, 1 << 30);
    block_count = argc > 3 ? (size_t)number_argument(argv[3], 1, 100000000) : 100000;
    rounds = argc > 4 ? number_argument(argv[4], 1, 1000000) : 5;
    for (unsigned i = 0; i < threads; i++)
        blocks_of[i] = memory_of_our_own(block_count * sizeof **blocks_of);
    uint64_t time = threads_time(threads, work);
    uint64_t operations = threads * block_count * (uint64_t)rounds;
    print_figures(operations, (double)time / (double)operations);
    return 0;
}
