/*
 * Everything that is made at its first use (arenas, bins, parts of the page map, magazines) is
 * first used by many threads at the same moment. A process has one first time, so each try is a
 * child.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/common.h"
#include "snug/snug.h"
#include "team.h"

enum { THREADS = 8, SIZES = 120 };

static pthread_barrier_t start_line;

static size_t size_of(size_t number)
{
    return number < 64 ? (number + 1) * 16 : KIB + (number - 63) * (number - 63) * 64;
}

/* Each thread takes all sizes, in the same order as the others, so that they meet at each. */
static void *take_all_sizes(void *argument)
{
    struct random random = *(struct random *)argument;
    struct ticket tickets[SIZES];
    pthread_barrier_wait(&start_line);
    for (size_t i = 0; i < SIZES; i++)
        ticket_take_size(&tickets[i], &random, size_of(i));
    pthread_barrier_wait(&start_line);
    for (size_t i = 0; i < SIZES; i++)
        ticket_free(&tickets[i], &random);
    return NULL;
}

static void try_once(uint64_t number)
{
    pthread_t threads[THREADS];
    struct random random[THREADS];
    EXPECT(pthread_barrier_init(&start_line, NULL, THREADS) == 0, "no barrier");
    for (size_t i = 0; i < THREADS; i++) {
        random[i] = stress_random(number * THREADS + i);
        EXPECT(pthread_create(&threads[i], NULL, take_all_sizes, &random[i]) == 0, "no thread");
    }
    for (size_t i = 0; i < THREADS; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0, "no thread to join");
    expect_empty_heap();
}

int main(int count, char **arguments)
{
    stress_begin(count, arguments, 200);
    double begun = seconds_now();
    size_t tries = scaled(100);
    for (size_t i = 0; i < tries; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            signal(SIGALRM, SIG_DFL);
            alarm(watchdog_seconds(60));
            try_once(i);
            _exit(0);
        }
        EXPECT(child > 0 && waitpid(child, &status, 0) == child, "no child");
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "try %zu ended with status %#x", i,
               (unsigned)status);
    }
    printf("first_use: %zu tries in %.1f s\n", tries, seconds_now() - begun);
    return 0;
}
