/*
 * pairs_two_threads.c - the rows of `pairs` that two threads run together.
 *
 *   producer-consumer        one thread allocates blocks of 64 bytes, the other frees them; a ring
 *                            of 4,096 pointers lies between: stages of a pipeline. Blocks never
 *                            come back by themselves to the thread that needs them.
 *   fill-250MB-two-threads   each thread fills 250 MB with blocks of 64 bytes, then frees them in
 *                            order: loading and unloading a large data set. Much of the time is
 *                            the kernel's, for pages.
 *
 * Threads are started once, so that rounds do not measure the making of threads.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "pairs.h"
#include "workload.h"

enum {
    PUBLISHED_TOGETHER = 32, /* blocks; one by one, the ring would cost more than the malloc */
    BLOCK = 64,
    HANDED_OVER = 500000,
    RING = 4096,                /* a power of two */
    FILLED = 250000000 / BLOCK, /* blocks of each thread */
    SPINS_BEFORE_YIELD = 2000,
    CACHE_LINE = 128 /* two lines, as CPUs fetch pairs of them */
};

static pthread_t other_thread;
static atomic_bool stopping;

static void start(void *(*body)(void *))
{
    if (pthread_create(&other_thread, NULL, body, NULL) != 0)
        die("pthread_create");
}

static inline void wait_a_little(unsigned *spins)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
    if (++*spins % SPINS_BEFORE_YIELD == 0)
        sched_yield();
}

/* ---- Producer and consumer ------------------------------------------------------------------ */

static struct {
    _Alignas(CACHE_LINE) atomic_size_t produced; /* blocks put into the ring since the start */
    _Alignas(CACHE_LINE) atomic_size_t consumed; /* blocks freed since the start */
    _Alignas(CACHE_LINE) uint64_t *block[RING];
} ring;

static void *consume(void *unused)
{
    uint64_t sum = 0;
    unsigned spins = 0;
    size_t done = 0;
    while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
        size_t produced = atomic_load_explicit(&ring.produced, memory_order_acquire);
        if (produced == done)
            wait_a_little(&spins);
        while (done != produced) {
            uint64_t *block = ring.block[done++ % RING];
            sum += *block;
            free(block);
        }
        atomic_store_explicit(&ring.consumed, done, memory_order_release);
    }
    (void)unused;
    return (void *)(uintptr_t)sum;
}

static void prepare_consumer(void)
{
    start(consume);
}

static void produce(void)
{
    unsigned spins = 0;
    size_t made = atomic_load_explicit(&ring.produced, memory_order_relaxed);
    size_t consumed = made;
    for (size_t end = made + HANDED_OVER; made != end; made++) {
        while (made - consumed == RING) {
            consumed = atomic_load_explicit(&ring.consumed, memory_order_acquire);
            if (made - consumed == RING)
                wait_a_little(&spins);
        }
        uint64_t *block = malloc(BLOCK);
        if (block == NULL)
            die("malloc");
        *block = made;
        ring.block[made % RING] = block;
        if ((made + 1) % PUBLISHED_TOGETHER == 0)
            atomic_store_explicit(&ring.produced, made + 1, memory_order_release);
    }
    atomic_store_explicit(&ring.produced, made, memory_order_release);
    while (atomic_load_explicit(&ring.consumed, memory_order_acquire) != made)
        wait_a_little(&spins);
}

/* Every block says which it is, so the sum tells whether each was seen once and unspoiled. */
static void finish_consumer(void)
{
    void *sum;
    uint64_t made = ring.produced;
    atomic_store(&stopping, true);
    pthread_join(other_thread, &sum);
    if ((uint64_t)(uintptr_t)sum != made * (made - 1) / 2) {
        fprintf(stderr, "producer-consumer: blocks were lost or spoiled\n");
        exit(1);
    }
}

/* ---- Two threads that fill --------------------------------------------------------------------
 */

static pthread_barrier_t barrier;
static uint64_t **blocks_of[2];

static void fill_and_free(unsigned thread)
{
    uint64_t **blocks = blocks_of[thread];
    for (size_t i = 0; i < FILLED; i++) {
        blocks[i] = malloc(BLOCK);
        if (blocks[i] == NULL)
            die("malloc");
        *blocks[i] = i;
        meter_set(thread, (int64_t)(i + 1) * BLOCK);
    }
    for (size_t i = 0; i < FILLED; i++) {
        free(blocks[i]);
        meter_set(thread, (int64_t)(FILLED - i - 1) * BLOCK);
    }
}

static void *fill_beside(void *unused)
{
    for (;;) {
        pthread_barrier_wait(&barrier);
        if (atomic_load(&stopping))
            return unused;
        fill_and_free(1);
        pthread_barrier_wait(&barrier);
    }
}

static void prepare_fill(void)
{
    for (int i = 0; i < 2; i++)
        blocks_of[i] = memory_of_our_own(FILLED * sizeof **blocks_of);
    pthread_barrier_init(&barrier, NULL, 2);
    start(fill_beside);
}

static void fill(void)
{
    pthread_barrier_wait(&barrier);
    fill_and_free(0);
    pthread_barrier_wait(&barrier);
}

static void finish_fill(void)
{
    atomic_store(&stopping, true);
    pthread_barrier_wait(&barrier);
    pthread_join(other_thread, NULL);
}

const struct row two_thread_rows[] = {
    {"producer-consumer", HANDED_OVER, prepare_consumer, produce, finish_consumer},
    {"fill-250MB-two-threads", 2 * (uint64_t)FILLED, prepare_fill, fill, finish_fill},
    {NULL, 0, NULL, NULL, NULL},
};
