/*
 * producer_consumer.c - pairs of threads: one takes blocks and fills them, the other frees them.
 *
 * usage: producer_consumer PAIRS [LOW HIGH [BLOCKS [QUEUE]]]
 *        16 to 512 bytes, 2,000,000 blocks, queues of 1,024 unless given
 *
 * It imitates the stages of a pipeline: messages of many sizes. The first gives nothing back and
 * the second takes nothing, so blocks must find their way back through the allocator; if they do
 * not, memory grows without bound though never more than QUEUE blocks of a pair are live. An
 * operation is a block; BLOCKS are shared by the pairs, and ns_per_op is the time over all of them.
 * The queue is handed over in parts of 32, as its own cost is not meant.
 */
#include <sched.h>
#include <stdatomic.h>

#include "threads.h"

enum { HANDED_TOGETHER = 32, MOST_PAIRS = MOST_THREADS / 2, LINE = 128 };

struct entry {
    unsigned char *block;
    uint32_t size;
};

static struct queue {
    _Alignas(LINE) _Atomic uint64_t made;
    _Alignas(LINE) _Atomic uint64_t used;
    _Alignas(LINE) struct entry *entries;
} queues[MOST_PAIRS];

static uint32_t low = 16, high = 512;
static uint64_t queue_size = 1024, blocks_each;

/* Waits until a counter has reached a value; returns the counter. */
static uint64_t wait_for(_Atomic uint64_t *counter, uint64_t least)
{
    uint64_t now;
    while ((now = atomic_load_explicit(counter, memory_order_acquire)) < least)
        sched_yield();
    return now;
}

static void produce(struct queue *queue, unsigned thread)
{
    uint64_t state = 0x9e3779b97f4a7c15u * (thread + 1);
    int64_t taken = 0;
    for (uint64_t i = 0; i < blocks_each; i++) {
        if (i % HANDED_TOGETHER == 0 && i >= queue_size)
            wait_for(&queue->used, i + HANDED_TOGETHER - queue_size);
        struct entry *entry = &queue->entries[i % queue_size];
        entry->size = random_between(&state, low, high);
        entry->block = malloc(entry->size);
        if (entry->block == NULL)
            die("malloc");
        memset(entry->block, (int)i, entry->size);
        meter_set(thread, taken += entry->size);
        if ((i + 1) % HANDED_TOGETHER == 0)
            atomic_store_explicit(&queue->made, i + 1, memory_order_release);
    }
}

static void consume(struct queue *queue, unsigned thread)
{
    int64_t freed = 0;
    for (uint64_t i = 0; i < blocks_each;) {
        uint64_t made = wait_for(&queue->made, i + HANDED_TOGETHER);
        for (; i < made; i++) {
            struct entry *entry = &queue->entries[i % queue_size];
            if (entry->block[0] != (unsigned char)i) {
                fprintf(stderr, "producer_consumer: a block was spoiled\n");
                exit(1);
            }
            free(entry->block);
            meter_set(thread, freed -= entry->size);
        }
        atomic_store_explicit(&queue->used, i, memory_order_release);
    }
}

static void work(unsigned thread)
{
    struct queue *queue = &queues[thread / 2];
    if (thread % 2 == 0)
        produce(queue, thread);
    else
        consume(queue, thread);
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc == 3 || argc > 6) {
        fprintf(stderr, "usage: %s PAIRS [LOW HIGH [BLOCKS [QUEUE]]]\n", argv[0]);
        return 2;
    }
    unsigned pairs = (unsigned)number_argument(argv[1], 1, MOST_PAIRS);
    if (argc > 3) {
        low = (uint32_t)number_argument(argv[2], 1, 1 << 30);
        high = (uint32_t)number_argument(argv[3], low, 1 << 30);
    }
    uint64_t blocks = argc > 4 ? (uint64_t)number_argument(argv[4], 1, 1000000000000) : 2000000;
    if (argc > 5)
        queue_size = (uint64_t)number_argument(argv[5], 2 * HANDED_TOGETHER, 1 << 30);
    queue_size -= queue_size % HANDED_TOGETHER;
    blocks_each = (blocks / pairs / HANDED_TOGETHER + 1) * HANDED_TOGETHER;
    for (unsigned i = 0; i < pairs; i++)
        queues[i].entries = memory_of_our_own(queue_size * sizeof *queues[i].entries);
    uint64_t time = threads_time(2 * pairs, work);
    print_figures(pairs * blocks_each, (double)time / (double)(pairs * blocks_each));
    return 0;
}
