/* A program under load, to be attached to (attached.rs): threads that end, forks and execs,
 * libraries that are opened and closed, and pairs of calls of which is known what they ask for.
 * Until SIGTERM. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
#define CHECK(condition) ((condition) ? (void)0 : (perror(#condition), _exit(1)))

static volatile sig_atomic_t ended;

static void end(int number)
{
    (void)number;
    ended = 1;
}

static void churn(unsigned turns, unsigned seed)
{
    void *kept[16] = {NULL};
    for (unsigned i = 0; i < turns; i++) {
        void **one = &kept[rand_r(&seed) % 16];
        CHECK((*one = realloc(*one, (size_t)rand_r(&seed) % 2000 + 1)) != NULL);
    }
    for (unsigned i = 0; i < 16; i++)
        free(kept[i]);
}

static void *short_life(void *argument)
{
    churn(100, (unsigned)(size_t)argument + 1);
    return NULL;
}

static void *threads_end(void *argument)
{
    for (size_t i = 0; !ended; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, short_life, (void *)i) == 0);
        pthread_join(thread, NULL);
    }
    return argument;
}

static void *forks(void *argument)
{
    for (unsigned i = 0; !ended; i++) {
        int status, child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            churn(100, i + 1);
            if (i % 2 != 0)
                execl("/bin/true", "true", (char *)NULL);
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        usleep(1000);
    }
    return argument;
}

static void *opens(void *argument)
{
    while (!ended) {
        void *handle = dlopen(argument, RTLD_NOW | RTLD_LOCAL);
        CHECK(handle != NULL);
        dlclose(handle);
        usleep(1000);
    }
    return argument;
}

/* One call of each for one of the other, so whenever a profile begins and ends their bytes are as
 * three to one, but for two calls. */
APART static void *a_thousand(void)
{
    void *block = malloc(1000);
    __asm__ volatile("" : "+r"(block));
    return block;
}
APART static void *three_thousand(void)
{
    void *block = malloc(3000);
    __asm__ volatile("" : "+r"(block));
    return block;
}

static void *pairs(void *argument)
{
    while (!ended) {
        void *one = a_thousand(), *other = three_thousand();
        free(one);
        free(other);
        usleep(100);
    }
    return argument;
}

int main(int count, char **words)
{
    void *(*const workers[])(void *) = {threads_end, forks, opens, pairs};
    enum { WORKERS = sizeof(workers) / sizeof(workers[0]) };
    pthread_t threads[WORKERS];
    CHECK(count == 2 && signal(SIGTERM, end) != SIG_ERR);
    for (unsigned i = 0; i < WORKERS; i++)
        CHECK(pthread_create(&threads[i], NULL, workers[i], words[1]) == 0);
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
