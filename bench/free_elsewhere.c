/*
 * free_elsewhere.c - producers and consumers: two threads allocate and never free, two others only
 * free what those allocated, for as long as is asked, through queues of a fixed length.
 *
 *   free_elsewhere [--seconds=60] [--csv=NAME]
 *
 * Sizes are 16 to 4,096 bytes; each queue holds 20,000 blocks, and at least half of that is always
 * live. Prints twice a second what is
 * live, as asked for, and what is resident; with --csv=NAME as lines `NAME,seconds,live_kib,
 * resident_kib`. What the queues themselves and the program take is not counted.
 */
#include "workload.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { PAIRS = 2, LENGTH = 20000, SAMPLE_MS = 500 };

struct queue {
    _Atomic(void *) place[LENGTH];
    _Atomic uint64_t live; /* bytes in it */
};

static struct queue *queues;
static atomic_bool stop;

/* A block says how long it is. */
static void *produce(void *argument)
{
    struct queue *queue = argument;
    uint64_t random = (uintptr_t)argument | 1;
    for (size_t at = 0; !stop; at = (at + 1) % LENGTH) {
        uint64_t size = random_between(&random, 16, 4096);
        uint64_t *block = malloc(size);
        if (block == NULL)
            die("malloc");
        memset(block, 1, size);
        *block = size;
        while (queue->place[at] != NULL && !stop)
            sched_yield();
        queue->live += size;
        queue->place[at] = block;
    }
    return NULL;
}

static void *consume(void *argument)
{
    struct queue *queue = argument;
    for (size_t at = 0; !stop; at = (at + 1) % LENGTH) {
        while (queue->place[(at + LENGTH / 2) % LENGTH] == NULL && !stop)
            sched_yield();
        uint64_t *block = queue->place[at];
        if (block == NULL)
            break;
        queue->place[at] = NULL;
        queue->live -= *block;
        free(block);
    }
    return NULL;
}

static void watch(long seconds, const char *csv, long before)
{
    uint64_t start = now_ns();
    double passed = 0;
    while (passed < (double)seconds) {
        struct timespec pause = {0, SAMPLE_MS * 1000000};
        nanosleep(&pause, NULL);
        passed = (double)(now_ns() - start) / 1e9;
        unsigned long live = (queues[0].live + queues[1].live) / 1024;
        long resident = rss_kib() - before;
        if (csv != NULL)
            printf("%s,%.1f,%lu,%ld\n", csv, passed, live, resident);
        else
            printf("after_s=%.1f live_kib=%lu rss_kib=%ld\n", passed, live, resident);
    }
}

int main(int argc, char **argv)
{
    long seconds = 60;
    const char *csv = NULL;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--seconds=", 10) == 0) {
            seconds = number_argument(argv[i] + 10, 1, 100000);
        } else if (strncmp(argv[i], "--csv=", 6) == 0) {
            csv = argv[i] + 6;
        } else {
            fprintf(stderr, "free_elsewhere: %s is not an argument\n", argv[i]);
            return 2;
        }
    }
    queues = memory_of_our_own(PAIRS * sizeof *queues);
    long before = rss_kib();
    pthread_t threads[2 * PAIRS];
    for (int i = 0; i < PAIRS; i++)
        if (pthread_create(&threads[2 * i], NULL, produce, &queues[i]) != 0 ||
            pthread_create(&threads[2 * i + 1], NULL, consume, &queues[i]) != 0)
            die("pthread_create");
    watch(seconds, csv, before);
    stop = true;
    for (int i = 0; i < 2 * PAIRS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
