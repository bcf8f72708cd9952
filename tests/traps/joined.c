/*
 * joined.c - with SNUG_PURGE_THREAD=1: when threads are joined, libc frees what was theirs with a
 * lock held that pthread_create needs, too. If the thread that gives memory back is begun by such a
 * free, the program waits for itself.
 *
 * It takes more stacks of ended threads than libc keeps (40 MiB), and memory that becomes old.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { ROUNDS = 4, THREADS = 24, BLOCKS = 200, TURNS = 10, REST = 300000, STACK = 8 * 1024 * 1024 };

static pthread_barrier_t all;

static void *work(void *argument)
{
    void *blocks[BLOCKS];
    pthread_barrier_wait(&all); /* so that each has a stack of its own */
    for (unsigned turn = 0; turn < TURNS; turn++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            CHECK((blocks[i] = opaque(malloc(1000 + i * 150))) != NULL);
            memset(blocks[i], 1, 1000);
        }
        for (size_t i = 0; i < BLOCKS; i++)
            free(blocks[i]);
    }
    usleep(REST);
    return argument;
}

int main(void)
{
    pthread_attr_t attributes;
    pthread_t threads[THREADS];
    alarm(60);
    pthread_barrier_init(&all, NULL, THREADS);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], &attributes, work, NULL) == 0);
        for (size_t i = 0; i < THREADS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
    }
    return 0;
}
