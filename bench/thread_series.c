/*
 * thread_series.c - threads one after another: each allocates and frees a little, leaves some
 * blocks to the next one, and ends. Memory must not depend on how many there have been.
 *
 *   thread_series [THREADS]      100000 by default
 *
 * Prints the resident memory at ten points on the way.
 */
#include "workload.h"

#include <pthread.h>

enum { BLOCKS = 200, LEFT = 20, STACK = 64 * 1024 };

static void *left[LEFT];

static void *live(void *argument)
{
    uint64_t random = (uintptr_t)argument + 1;
    void *own[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        own[i] = malloc(random_between(&random, 16, 3000));
        if (own[i] == NULL)
            die("malloc");
        *(char *)own[i] = 1;
    }
    for (int i = 0; i < LEFT; i++) {
        free(left[i]);
        left[i] = own[i];
    }
    for (int i = LEFT; i < BLOCKS; i++)
        free(own[i]);
    return NULL;
}

int main(int argc, char **argv)
{
    long threads = argc > 1 ? number_argument(argv[1], 10, 100000000) : 100000;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    for (long i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, live, (void *)i) != 0)
            die("pthread_create");
        pthread_join(thread, NULL);
        if ((i + 1) % (threads / 10) == 0)
            printf("threads=%ld rss_kib=%ld\n", i + 1, rss_kib());
    }
    return 0;
}
