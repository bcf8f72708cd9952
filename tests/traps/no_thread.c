/*
 * no_thread.c - with SNUG_PURGE_THREAD=1, where no thread can be had: the program goes on, what is
 * free goes back in its own calls, and the thread is not asked for again and again.
 *
 * The program's own pthread_create stands before libc's, and refuses.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "check.h"

#define MIB ((size_t)1024 * 1024)

enum { CHUNKS = 24, ROUNDS = 300 };

static unsigned refused;

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread,
                                                          const pthread_attr_t *attributes,
                                                          void *(*run)(void *), void *argument)
{
    (void)thread, (void)attributes, (void)run, (void)argument;
    refused++;
    return EAGAIN;
}

static void up_and_down(void)
{
    void *chunks[CHUNKS];
    for (size_t i = 0; i < CHUNKS; i++) {
        CHECK((chunks[i] = opaque(malloc(MIB))) != NULL);
        memset(chunks[i], 1, 4096);
    }
    for (size_t i = 0; i < CHUNKS; i++)
        free(chunks[i]);
    for (size_t i = 0; i < 2000; i++) /* slow paths, in which the thread is started */
        free(opaque(malloc(1 + i)));
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(void)
{
    test_begin(60);
    double begun = seconds();
    for (int i = 0; i < ROUNDS; i++) {
        errno = 4242;
        up_and_down();
        CHECK_MSG(errno == 4242, "errno is %d", errno);
    }
    unsigned most = 2 + (unsigned)(seconds() - begun); /* one a second */
    CHECK_MSG(refused >= 1, "no thread was asked for");
    CHECK_MSG(refused <= most, "a thread was asked for %u times, not %u at most", refused, most);
    return test_end();
}
