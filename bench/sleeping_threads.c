/*
 * sleeping_threads.c - one thread works beside many that have worked and sleep.
 *
 * usage: sleeping_threads [THREADS [LARGEST [OPERATIONS]]]      (60 threads, 1015 B, 2,000,000)
 *
 * It imitates a server whose pool of threads is large, and of which few have something to do: what
 * the others hold must not be what these lack. THREADS threads each have up to 1,000 blocks of 16
 * to LARGEST bytes, replace any of them 20,000 times, free all, and wait. Then a new thread does
 * the same OPERATIONS times, which is what the time is of. Prints one line:
 *     threads=N largest=N sleeping_kib=N ops=N ns_per_op=F peak_rss_kib=N
 * sleeping_kib is resident memory while all sleep and have nothing.
 */
#include <pthread.h>

#include "workload.h"

enum { STACK = 64 * 1024, LIVE = 1000, SMALLEST = 16, OPERATIONS_OF_SLEEPERS = 20000 };

struct block {
    unsigned char *start;
    uint32_t size;
};

static pthread_barrier_t all_sleep, may_end;
static uint32_t largest = 1015;

static void replace(struct block *block, uint32_t size, int64_t *bytes)
{
    free(block->start);
    *bytes += (int64_t)size - block->size;
    block->start = size != 0 ? malloc(size) : NULL;
    block->size = size;
    if (size == 0)
        return;
    if (block->start == NULL)
        die("malloc");
    block->start[0] = 1;
}

static void work(struct block *blocks, unsigned number, long operations)
{
    uint64_t state = 0x2545f4914f6cdd1du ^ ((number + 1) * 0x9e3779b97f4a7c15u);
    int64_t bytes = 0;
    for (long i = 0; i < operations; i++) {
        struct block *block = &blocks[random_between(&state, 0, LIVE - 1)];
        replace(block, random_between(&state, SMALLEST, largest), &bytes);
        meter_set(number, bytes);
    }
    for (long i = 0; i < LIVE; i++)
        replace(&blocks[i], 0, &bytes);
    meter_set(number, bytes);
}

static void *sleeper(void *number)
{
    struct block blocks[LIVE] = {{NULL, 0}};
    work(blocks, (unsigned)(uintptr_t)number, OPERATIONS_OF_SLEEPERS);
    pthread_barrier_wait(&all_sleep);
    pthread_barrier_wait(&may_end);
    return NULL;
}

static void *worker(void *operations)
{
    static struct block blocks[LIVE];
    work(blocks, 0, (long)operations);
    return NULL;
}

static void start(pthread_t *thread, void *(*begin)(void *), long argument)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    if (pthread_create(thread, &attributes, begin, (void *)argument) != 0)
        die("pthread_create");
    pthread_attr_destroy(&attributes);
}

int main(int argc, char **argv)
{
    long threads = argc > 1 ? number_argument(argv[1], 0, METER_THREADS - 1) : 60;
    largest = argc > 2 ? (uint32_t)number_argument(argv[2], SMALLEST, 1000000) : largest;
    long operations = argc > 3 ? number_argument(argv[3], 1, 1000000000) : 2000000;

    pthread_t *thread = memory_of_our_own((size_t)(threads + 1) * sizeof *thread);
    pthread_barrier_init(&all_sleep, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&may_end, NULL, (unsigned)threads + 1);
    for (long i = 1; i <= threads; i++)
        start(&thread[i], sleeper, i);
    pthread_barrier_wait(&all_sleep);
    long sleeping = rss_kib();
    uint64_t began = now_ns();
    start(&thread[0], worker, operations);
    pthread_join(thread[0], NULL);
    uint64_t end = now_ns();
    pthread_barrier_wait(&may_end);
    for (long i = 1; i <= threads; i++)
        pthread_join(thread[i], NULL);
    printf("threads=%ld largest=%u sleeping_kib=%ld ", threads, largest, sleeping);
    print_figures((uint64_t)operations, (double)(end - began) / (double)operations);
    return 0;
}
