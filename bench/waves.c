/*
 * waves.c - threads that each take a wave of blocks for themselves and free most of it, over and
 * over.
 *
 * usage: waves THREADS MOST_SIZE [OPERATIONS [BLOCKS]]       2,000,000 and 2,500 unless given
 *
 * It imitates threads of which each builds something for a request and tears it down. No block is
 * another thread's, so whatever they wait for from each other is the allocator's doing. A thread
 * has BLOCKS places. In each wave it fills those that are empty with blocks of 1 to MOST_SIZE
 * bytes, small ones more often, and writes their ends; then a fifth of them stays, another one each
 * time, what lies below is freed upwards and what lies above downwards. An operation is a malloc
 * and its free; OPERATIONS are shared by the threads, and ns_per_op is the time over all of them.
 */
#include "threads.h"

enum { STAYS = 5, SMALLER_LOG = 6 };

struct block {
    unsigned char *memory;
    uint32_t size;
};

static struct block *blocks_of[MOST_THREADS];
static uint32_t most_size, block_count;
static uint64_t operations_each;

/* Halved up to five times. */
static uint32_t draw_size(uint64_t *state)
{
    uint64_t drawn = random_next(state) >> 8;
    return 1 + ((uint32_t)drawn % most_size >> (uint32_t)(drawn >> 32) % SMALLER_LOG);
}

static void take(struct block *block, uint32_t size)
{
    block->memory = malloc(size);
    if (block->memory == NULL)
        die("malloc");
    block->memory[0] = block->memory[size - 1] = (unsigned char)size;
    block->size = size;
}

static uint32_t give(struct block *block)
{
    free(block->memory);
    block->memory = NULL;
    return block->size;
}

static void waves(unsigned thread)
{
    struct block *blocks = blocks_of[thread];
    uint64_t state = 0x9e3779b97f4a7c15u * (thread + 1), taken = 0;
    uint32_t stays = block_count / STAYS, from = 0;
    int64_t live = 0;
    while (taken < operations_each) {
        for (uint32_t i = 0; i < block_count; i++) {
            if (blocks[i].memory != NULL)
                continue;
            take(&blocks[i], draw_size(&state));
            taken++;
            meter_set(thread, live += blocks[i].size);
        }
        from = from + 2 * stays <= block_count ? from + stays : 0;
        for (uint32_t i = 0; i < from; i++)
            meter_set(thread, live -= give(&blocks[i]));
        for (uint32_t i = block_count; i-- > from + stays;)
            meter_set(thread, live -= give(&blocks[i]));
    }
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 5) {
        fprintf(stderr, "usage: %s THREADS MOST_SIZE [OPERATIONS [BLOCKS]]\n", argv[0]);
        return 2;
    }
    unsigned threads = (unsigned)number_argument(argv[1], 1, MOST_THREADS);
    most_size = (uint32_t)number_argument(argv[2], 1, 1 << 20);
    long operations = argc > 3 ? number_argument(argv[3], 1, 1000000000000) : 2000000;
    block_count = argc > 4 ? (uint32_t)number_argument(argv[4], STAYS, 10000000) : 2500;
    operations_each = ((uint64_t)operations + threads - 1) / threads;
    for (unsigned i = 0; i < threads; i++)
        blocks_of[i] = memory_of_our_own(block_count * sizeof **blocks_of);
    uint64_t time = threads_time(threads, waves);
    uint64_t done = threads * operations_each;
    print_figures(done, (double)time / (double)done);
    return 0;
}
