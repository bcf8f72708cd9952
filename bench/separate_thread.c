/*
 * separate_thread.c - threads that free what others took.
 *
 * usage: separate_thread THREADS MOST_SIZE [OPERATIONS [SLOTS]]       2,000,000 and 100,000 unless
 * given
 *
 * It imitates a cache or table that all threads of a program share. Each thread walks over the
 * slots in a random order of its own; where a slot is empty it puts a block of 0 to MOST_SIZE bytes
 * there, and where it is full it frees the block, whoever took it. An operation is one such step, a
 * malloc or a free; OPERATIONS are shared by the threads, and ns_per_op is the time over all of
 * them.
 */
#include <stdatomic.h>

#include "threads.h"

/* A block and its size in one word, so that both change hands at once: addresses of programs have
 * 48 bits. */
static _Atomic uint64_t *slots;
static uint32_t slot_count, most_size;
static long operations_each;

enum { ADDRESS_BITS = 48, PAGE = 4096 };

static uint64_t pack(void *block, uint32_t size)
{
    return (uint64_t)(uintptr_t)block | (uint64_t)size << ADDRESS_BITS;
}

static void give(uint64_t packed)
{
    free((void *)(uintptr_t)(packed & (((uint64_t)1 << ADDRESS_BITS) - 1)));
}

static uint64_t take(uint32_t size)
{
    unsigned char *block = malloc(size);
    if (block == NULL)
        die("malloc");
    for (uint32_t i = 0; i < size; i += PAGE)
        block[i] = (unsigned char)i;
    return pack(block, size);
}

/* Returns how many bytes are live now that were not before. */
static int64_t step(_Atomic uint64_t *slot, uint32_t size)
{
    uint64_t found = atomic_exchange_explicit(slot, 0, memory_order_acq_rel);
    if (found != 0) {
        give(found);
        return -(int64_t)(found >> ADDRESS_BITS);
    }
    uint64_t taken = take(size);
    if (atomic_compare_exchange_strong_explicit(slot, &found, taken, memory_order_acq_rel,
                                                memory_order_relaxed))
        return size;
    give(taken); /* another thread was faster */
    return 0;
}

static void walk(unsigned thread)
{
    uint64_t state = 0x9e3779b97f4a7c15u * (thread + 1);
    int64_t live = 0;
    for (long i = 0; i < operations_each; i++) {
        uint64_t drawn = random_next(&state) >> 8;
        live +=
            step(&slots[(uint32_t)drawn % slot_count], (uint32_t)(drawn >> 32) % (most_size + 1));
        meter_set(thread, live);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 5) {
        fprintf(stderr, "usage: %s THREADS MOST_SIZE [OPERATIONS [SLOTS]]\n", argv[0]);
        return 2;
    }
    unsigned threads = (unsigned)number_argument(argv[1], 1, MOST_THREADS);
    most_size = (uint32_t)number_argument(argv[2], 0, 65535);
    long operations = argc > 3 ? number_argument(argv[3], 1, 1000000000000) : 2000000;
    slot_count = argc > 4 ? (uint32_t)number_argument(argv[4], 1, 100000000) : 100000;
    operations_each = (operations + threads - 1) / threads;
    slots = memory_of_our_own(slot_count * sizeof *slots);
    uint64_t time = threads_time(threads, walk);
    uint64_t done = threads * (uint64_t)operations_each;
    print_figures(done, (double)time / (double)done);
    return 0;
}
