/*
 * many_threads.c - the memory of many threads that each allocate a little and wait.
 *
 * usage: many_threads [THREADS [OBJECTS]]      (1000 threads, 20 objects each)
 *
 * It imitates a server with a thread for each connection, or a runtime with large pools. Each
 * thread allocates OBJECTS blocks of 16 to 512 bytes, writes all of them, and waits until all
 * threads have; then each frees its blocks and ends. An operation is a block: its part of the time
 * from the start of the first thread until all wait. Prints one line:
 *     threads=N objects=N payload_bytes=N before_kib=N waiting_kib=N after_join_kib=N
 *     ops=N ns_per_op=F peak_rss_kib=N
 * payload_bytes is what the threads asked for; the next three are resident memory before the first
 * thread starts, while all wait, and after the last has ended. Thread stacks are part of it (small
 * and the same under every allocator).
 */
#include <pthread.h>

#include "workload.h"

enum { STACK = 64 * 1024, SMALLEST = 16, LARGEST = 512 };

struct block {
    struct block *next;
    uint64_t size;
};

static pthread_barrier_t all_have, may_end;
static long objects = 20;

/* Returns what the thread asked for, in bytes. */
static void *live(void *number)
{
    uint64_t state = 0x2545f4914f6cdd1du ^ ((uintptr_t)number * 0x9e3779b97f4a7c15u);
    uint64_t bytes = 0;
    struct block *list = NULL;
    for (long i = 0; i < objects; i++) {
        size_t size = random_between(&state, SMALLEST, LARGEST);
        struct block *block = malloc(size);
        if (block == NULL)
            die("malloc");
        memset(block, (int)i + 1, size);
        block->next = list;
        block->size = size;
        list = block;
        bytes += size;
    }
    meter_add((unsigned)(uintptr_t)number, (int64_t)bytes);
    pthread_barrier_wait(&all_have);
    pthread_barrier_wait(&may_end);
    while (list != NULL) {
        struct block *next = list->next;
        free(list);
        list = next;
    }
    meter_add((unsigned)(uintptr_t)number, -(int64_t)bytes);
    return (void *)(uintptr_t)bytes;
}

int main(int argc, char **argv)
{
    long threads = argc > 1 ? number_argument(argv[1], 1, 100000) : 1000;
    if (argc > 2)
        objects = number_argument(argv[2], 0, 1000000);

    pthread_t *thread = memory_of_our_own((size_t)threads * sizeof *thread);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_barrier_init(&all_have, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&may_end, NULL, (unsigned)threads + 1);

    long before = rss_kib();
    uint64_t start = now_ns();
    for (long i = 0; i < threads; i++)
        if (pthread_create(&thread[i], &attributes, live, (void *)(i + 1)) != 0)
            die("pthread_create");
    pthread_barrier_wait(&all_have);
    uint64_t end = now_ns();
    long waiting = rss_kib();
    pthread_barrier_wait(&may_end);

    uint64_t payload = 0;
    for (long i = 0; i < threads; i++) {
        void *bytes;
        pthread_join(thread[i], &bytes);
        payload += (uintptr_t)bytes;
    }
    long after = rss_kib();
    printf("threads=%ld objects=%ld payload_bytes=%llu before_kib=%ld waiting_kib=%ld "
           "after_join_kib=%ld ",
           threads, objects, (unsigned long long)payload, before, waiting, after);
    uint64_t blocks = (uint64_t)threads * (uint64_t)objects;
    print_figures(blocks, (double)(end - start) / (double)(blocks != 0 ? blocks : 1));
    return 0;
}
