/*
 * fork_generations.c - a process with four threads forks, the child starts four threads of its own,
 * forks, and so on. Each child has a copy of all that waited for the threads of its parent, which
 * it does not have: if it could not use it, memory would grow with every generation.
 *
 * In each generation the threads take and free blocks of all sizes, one thread after the other, and
 * stay with what they keep for themselves; the last generation has at most twice the resident
 * memory of the first. 12 generations, 200 in a full run, or as many as the command line says.
 * Fault it finds (planted.c): thread_leak, where what threads free is lost.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 4, BLOCKS = 1500, TURNS = 20000, SECONDS = 240 };

static pthread_barrier_t rested;
static pthread_barrier_t never; /* waits for one more than there are */

/* The number of the thread that works. Where threads work at once, how much memory they need in the
 * first generation is chance. */
static uintptr_t turn;
static pthread_mutex_t working = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t next = PTHREAD_COND_INITIALIZER;

static size_t random_size(uint64_t *random)
{
    static const size_t limits[] = {64, 64, 128, 256, 512, 1024, 4096, 30000};
    return 1 + random_next(random) % limits[random_next(random) % 8];
}

static void churn(uint64_t random)
{
    void **blocks = opaque(calloc(BLOCKS, sizeof *blocks));
    size_t *sizes = opaque(calloc(BLOCKS, sizeof *sizes));
    CHECK(blocks != NULL && sizes != NULL);
    for (size_t i = 0; i < TURNS; i++) {
        size_t at = random_next(&random) % BLOCKS;
        if (blocks[at] != NULL)
            CHECK(pattern_holds(blocks[at], sizes[at], sizes[at], at));
        free(blocks[at]);
        sizes[at] = random_size(&random);
        blocks[at] = opaque(malloc(sizes[at]));
        CHECK(blocks[at] != NULL);
        pattern_fill(blocks[at], sizes[at], at);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    free(blocks);
    free(sizes);
}

static void *live(void *argument)
{
    pthread_mutex_lock(&working);
    while (turn != (uintptr_t)argument)
        pthread_cond_wait(&next, &working);
    churn((uintptr_t)argument * 7919 + 1);
    turn++;
    pthread_cond_broadcast(&next);
    pthread_mutex_unlock(&working);
    pthread_barrier_wait(&rested);
    pthread_barrier_wait(&never);
    return NULL;
}

/* Resident memory when the threads of a generation rest. */
static size_t begin_generation(size_t number)
{
    CHECK(pthread_barrier_init(&rested, NULL, THREADS + 1) == 0);
    CHECK(pthread_barrier_init(&never, NULL, THREADS + 1) == 0);
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, live, (void *)(number * THREADS + i)) == 0);
    }
    pthread_barrier_wait(&rested);
    check_heap();
    return resident_kib();
}

int main(int argc, char **argv)
{
    size_t generations = argc > 1 ? strtoul(argv[1], NULL, 10) : test_scale(12, 200);
    test_begin(SECONDS);
    size_t first = begin_generation(0), last = first;
    for (size_t number = 1; number <= generations; number++) {
        int child = fork();
        CHECK(child >= 0);
        if (child != 0) {
            check_child(child, "a generation");
            return 0;
        }
        alarm(SECONDS * (test_full() ? 10 : 1));
        last = begin_generation(number);
    }
    printf("%zu KiB are resident first, %zu KiB after %zu generations\n", first, last, generations);
    fflush(stdout);
    CHECK_MSG(last <= 2 * first, "%zu KiB are resident, %zu at first", last, first);
    return test_end();
}
