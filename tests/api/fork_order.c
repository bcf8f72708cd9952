/*
 * fork_order.c - what a handler of pthread_atfork that was registered before the first malloc can
 * rely on: while it runs, other threads still get memory. It may wait for one that holds a lock of
 * its own and allocates under it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { BLOCKS = 2000 };

static atomic_bool asked, done;

static void before_fork(void)
{
    atomic_store(&asked, true);
    for (unsigned i = 0; i < 5000 && !atomic_load(&done); i++)
        usleep(1000);
    CHECK_MSG(atomic_load(&done), "a thread waits for memory while handlers run");
}

/* Sizes of all kinds, so that each lock of the heap is taken. */
static void *allocate(void *argument)
{
    static void *blocks[BLOCKS];
    while (!atomic_load(&asked))
        usleep(100);
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = opaque(malloc(16 + i * 131 % 300000));
        CHECK(blocks[i] != NULL);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    atomic_store(&done, true);
    return argument;
}

int main(void)
{
    CHECK(pthread_atfork(before_fork, NULL, NULL) == 0);
    test_begin(60);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, allocate, NULL) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(opaque(malloc(100)) == NULL);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return test_end();
}
