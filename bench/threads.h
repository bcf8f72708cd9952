/*
 * threads.h - threads that begin together, and the time from when the first of them begins until
 * the last has ended its work. They read the clock themselves: whoever waits for them may be woken
 * when they have long begun, or ended.
 */
#ifndef SNUG_BENCH_THREADS_H
#define SNUG_BENCH_THREADS_H

#include <pthread.h>

#include "workload.h"

enum { MOST_THREADS = METER_THREADS };

static struct {
    pthread_barrier_t ready, done;
    void (*body)(unsigned thread);
    uint64_t begin[MOST_THREADS], end[MOST_THREADS];
} together;

static void *threads_body(void *number)
{
    unsigned thread = (unsigned)(uintptr_t)number;
    pthread_barrier_wait(&together.ready);
    together.begin[thread] = now_ns();
    together.body(thread);
    together.end[thread] = now_ns();
    pthread_barrier_wait(&together.done);
    return NULL;
}

/* Runs body(0) to body(count - 1) on a thread each. In ns: without the making of the threads. */
static inline uint64_t threads_time(unsigned count, void (*body)(unsigned thread))
{
    static pthread_t threads[MOST_THREADS];
    together.body = body;
    pthread_barrier_init(&together.ready, NULL, count + 1);
    pthread_barrier_init(&together.done, NULL, count + 1);
    for (unsigned i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, threads_body, (void *)(uintptr_t)i) != 0)
            die("pthread_create");
    pthread_barrier_wait(&together.ready);
    pthread_barrier_wait(&together.done);
    uint64_t begin = UINT64_MAX, end = 0;
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        begin = together.begin[i] < begin ? together.begin[i] : begin;
        end = together.end[i] > end ? together.end[i] : end;
    }
    return end - begin;
}

#endif
