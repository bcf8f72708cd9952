/*
 * large_buffers.c - threads that each take large buffers of many lengths, use them and free them.
 *
 * usage: large_buffers THREADS PART [LOW HIGH [LIVE [OPERATIONS]]]
 *        200,000 to 300,000 bytes, 2 buffers of each thread, 40,000 operations of each unless given
 *
 * It imitates threads that compress, decode or convert: each has a few buffers, as long as what
 * comes is. An operation frees one of them, drawn at random, and takes one of another length. Of
 * that it writes PART: `full`, all bytes; `ends`, the first and the last one, as where the program
 * computes elsewhere, so that hardly more than the allocator is left.
 */
#include <stdbool.h>

#include "threads.h"

struct buffer {
    unsigned char *start;
    uint32_t size;
};

static uint32_t low = 200000, high = 300000, live_count = 2;
static long operations_each = 40000;
static bool in_full;

static void use(struct buffer *buffer)
{
    if (in_full)
        memset(buffer->start, 1, buffer->size);
    *(volatile unsigned char *)buffer->start = 1;
    ((volatile unsigned char *)buffer->start)[buffer->size - 1] = 1;
}

static void work(unsigned thread)
{
    struct buffer *buffers = memory_of_our_own(live_count * sizeof *buffers);
    uint64_t state = 0x9e3779b97f4a7c15u * (thread + 1);
    int64_t live = 0;
    for (long i = 0; i < operations_each; i++) {
        struct buffer *buffer = &buffers[random_between(&state, 0, live_count - 1)];
        live -= buffer->size;
        free(buffer->start);
        buffer->size = random_between(&state, low, high);
        buffer->start = malloc(buffer->size);
        if (buffer->start == NULL)
            die("malloc");
        live += buffer->size;
        use(buffer);
        meter_set(thread, live);
    }
}

int main(int argc, char **argv)
{
    in_full = argc > 2 && strcmp(argv[2], "full") == 0;
    if (argc < 3 || argc == 4 || argc > 7 || (!in_full && strcmp(argv[2], "ends") != 0)) {
        fprintf(stderr, "usage: %s THREADS full|ends [LOW HIGH [LIVE [OPERATIONS]]]\n", argv[0]);
        return 2;
    }
    unsigned threads = (unsigned)number_argument(argv[1], 1, MOST_THREADS);
    if (argc > 4) {
        low = (uint32_t)number_argument(argv[3], 1, 1 << 30);
        high = (uint32_t)number_argument(argv[4], low, 1 << 30);
    }
    if (argc > 5)
        live_count = (uint32_t)number_argument(argv[5], 1, 1000000);
    if (argc > 6)
        operations_each = number_argument(argv[6], 1, 1000000000);
    uint64_t time = threads_time(threads, work);
    uint64_t done = (uint64_t)operations_each * threads;
    print_figures(done, (double)time / (double)done);
    return 0;
}
