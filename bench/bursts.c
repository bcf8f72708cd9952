/*
 * bursts.c - threads that work in bursts, and partly on each other's blocks.
 *
 * usage: bursts [THREADS [LOW HIGH [OPERATIONS [LIVE]]]]
 *        2 threads, 8 to 16,000 bytes, 1,000,000 operations and 500 live blocks each unless given
 *
 * It imitates the threads of a server between whose requests time passes. A burst is 100
 * operations, each of which replaces one of the thread's LIVE blocks, drawn at random, by one of
 * another size; after one in four the old block is not freed but put where the next thread finds
 * it, which frees it at the end of its own next burst. Then the thread pauses for a moment, and
 * what it has freed lies there. The time is that of the bursts, without the pauses. Each page of a
 * block is written.
 */
#include <stdatomic.h>

#include "threads.h"

enum { BURST = 100, PASSED = 4, POST = 64, PAGE = 4096, PAUSE_NS = 50000 };

struct slot {
    unsigned char *block;
    uint32_t size;
};

/* What others have left for a thread to free: an exchange of a pointer in one place of a few. */
static _Atomic(void *) post[MOST_THREADS][POST];
static uint64_t busy_ns[MOST_THREADS];
static uint32_t low = 8, high = 16000, live_count = 500;
static long operations_each = 1000000;
static unsigned thread_count = 2;

static unsigned char *take(uint32_t size)
{
    unsigned char *block = malloc(size);
    if (block == NULL)
        die("malloc");
    for (uint32_t i = 0; i < size; i += PAGE)
        block[i] = (unsigned char)i;
    return block;
}

/* Gives a block to the next thread, or back what lies there already. */
static void pass(unsigned thread, uint64_t drawn, void *block)
{
    _Atomic(void *) *place = &post[(thread + 1) % thread_count][drawn % POST];
    free(atomic_exchange_explicit(place, block, memory_order_acq_rel));
}

static void free_post(unsigned thread)
{
    for (unsigned i = 0; i < POST; i++)
        free(atomic_exchange_explicit(&post[thread][i], NULL, memory_order_acq_rel));
}

static int64_t replace(unsigned thread, struct slot *slot, uint64_t drawn)
{
    uint32_t size = low + (uint32_t)(drawn >> 16) % (high - low + 1);
    int64_t difference = (int64_t)size - slot->size;
    if (drawn % PASSED == 0)
        pass(thread, drawn >> 4, slot->block);
    else
        free(slot->block);
    *slot = (struct slot){take(size), size};
    return difference;
}

static void work(unsigned thread)
{
    struct slot *slots = memory_of_our_own(live_count * sizeof *slots);
    uint64_t state = 0x9e3779b97f4a7c15u * (thread + 1);
    int64_t live = 0;
    for (long done = 0; done < operations_each; done += BURST) {
        uint64_t start = now_ns();
        for (int i = 0; i < BURST; i++) {
            uint64_t drawn = random_next(&state) >> 8;
            live += replace(thread, &slots[random_between(&state, 0, live_count - 1)], drawn);
        }
        free_post(thread);
        busy_ns[thread] += now_ns() - start;
        meter_set(thread, live);
        struct timespec pause = {0, PAUSE_NS};
        nanosleep(&pause, NULL);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 || argc > 6) {
        fprintf(stderr, "usage: %s [THREADS [LOW HIGH [OPERATIONS [LIVE]]]]\n", argv[0]);
        return 2;
    }
    if (argc > 1)
        thread_count = (unsigned)number_argument(argv[1], 1, MOST_THREADS);
    if (argc > 3) {
        low = (uint32_t)number_argument(argv[2], 1, 1 << 30);
        high = (uint32_t)number_argument(argv[3], low, 1 << 30);
    }
    if (argc > 4)
        operations_each = number_argument(argv[4], 1, 1000000000000) / thread_count + 1;
    if (argc > 5)
        live_count = (uint32_t)number_argument(argv[5], 1, 100000000);
    threads_time(thread_count, work);
    uint64_t busy = 0, done = (uint64_t)operations_each * thread_count;
    for (unsigned i = 0; i < thread_count; i++)
        busy += busy_ns[i];
    print_figures(done, (double)busy / (double)done);
    return 0;
}
