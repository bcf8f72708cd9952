/*
 * Heaps that are made where others were: threads fill one, which is then destroyed with all that is
 * in it, and the next one again. What one had left of another would be found in its blocks.
 */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "snug/snug.h"

enum { ROUNDS = 12, THREADS = 4, BLOCKS = 3000, LIVE = 400 };

static snug_heap *heap;
static pthread_barrier_t begin, end;

static size_t size_of(size_t i)
{
    return 16 + i % 8 * 16 + (i % 50 == 0 ? 3000 : 0);
}

static void fill(unsigned char thread)
{
    static __thread unsigned char *blocks[LIVE];
    for (size_t i = 0; i < BLOCKS; i++) {
        unsigned char **place = &blocks[i % LIVE];
        if (i >= LIVE) {
            size_t size = size_of(i - LIVE);
            for (size_t byte = 0; byte < size; byte++)
                CHECK((*place)[byte] == (unsigned char)(thread + i - LIVE));
            snug_heap_free(heap, *place);
        }
        *place = snug_heap_malloc(heap, size_of(i));
        CHECK(*place != NULL);
        memset(*place, (unsigned char)(thread + i), size_of(i));
    }
}

static void *work(void *thread)
{
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&begin);
        fill((unsigned char)(uintptr_t)thread);
        pthread_barrier_wait(&end);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&begin, NULL, THREADS + 1);
    pthread_barrier_init(&end, NULL, THREADS + 1);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(i * 50)) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        heap = snug_heap_create(NULL);
        CHECK(heap != NULL);
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
        snug_heap_destroy(heap); /* with what is live in it */
        CHECK(snug_check() == 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
