/*
 * Producers that only allocate, consumers that only free, and a queue of bounded length between: of
 * the gigabytes that pass through, hardly more than what is in the queue may be in memory at any
 * time. This is what a depot is for, and what it must not be too generous with.
 */
#include <pthread.h>
#include <stdio.h>

#include "base/common.h"
#include "bounds.h"
#include "team.h"

enum { PAIRS = 2, QUEUE = 2048, BATCH = 64 };

/* At most so much is in the queue and in the threads' hands. */
#define SIZE_MOST (4 * KIB)

/* How far memory may go above the mark: depots and magazines of sizes that had not been used by
 * then, half-used slabs, and what the page heap keeps for a demand like that of a moment ago.
 * Seen: up to 14 MiB on a loaded machine. A leak of one block in ten, the planted fault, comes to
 * many times this even in the shortest run. */
#define SLACK (24 * MIB)

/* And what it may be in all, which no mark can hide: less than 4 MiB are in the queue on average,
 * and each depot of a size class may keep 1 MiB. Seen: 12 MiB. */
#define HEAP_MOST (64 * MIB)

static struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct ticket tickets[QUEUE];
    size_t first;
    size_t count;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static size_t blocks_of_each;

static void queue_put(const struct ticket *tickets)
{
    pthread_mutex_lock(&queue.lock);
    while (queue.count + BATCH > QUEUE)
        pthread_cond_wait(&queue.changed, &queue.lock);
    for (size_t i = 0; i < BATCH; i++)
        queue.tickets[(queue.first + queue.count + i) % QUEUE] = tickets[i];
    queue.count += BATCH;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
}

static void queue_take(struct ticket *tickets)
{
    pthread_mutex_lock(&queue.lock);
    while (queue.count < BATCH)
        pthread_cond_wait(&queue.changed, &queue.lock);
    for (size_t i = 0; i < BATCH; i++)
        tickets[i] = queue.tickets[(queue.first + i) % QUEUE];
    queue.first = (queue.first + BATCH) % QUEUE;
    queue.count -= BATCH;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
}

static void *produce(void *argument)
{
    struct random random = *(struct random *)argument;
    for (size_t i = 0; i < blocks_of_each; i += BATCH) {
        struct ticket tickets[BATCH];
        for (size_t j = 0; j < BATCH; j++)
            ticket_take_size(&tickets[j], &random, random_log(&random, 8, SIZE_MOST));
        queue_put(tickets);
    }
    return NULL;
}

/* The first consumer also looks at memory, fifty times in all. */
static void look(size_t freed, struct bounds *mark, struct bounds *most)
{
    size_t looks = blocks_of_each / 50 / BATCH * BATCH;
    if (looks == 0 || freed % looks != 0)
        return;
    struct bounds now = bounds_now();
    if (freed <= blocks_of_each / 5)
        bounds_raise(mark, now);
    bounds_raise(most, now);
    expect_within(now, *mark, SLACK, "while blocks passed through");
    EXPECT(now.segments <= HEAP_MOST, "the heap has %zu KiB for a queue of %d blocks",
           now.segments / KIB, QUEUE);
}

static struct random *first_random;

static void *consume(void *argument)
{
    struct random random = *(struct random *)argument;
    bool looks = argument == first_random;
    struct bounds mark = {0}, most = {0};
    for (size_t i = 0; i < blocks_of_each; i += BATCH) {
        struct ticket tickets[BATCH];
        queue_take(tickets);
        for (size_t j = 0; j < BATCH; j++)
            ticket_free(&tickets[j], &random);
        if (looks)
            look(i, &mark, &most);
    }
    if (looks)
        bounds_print("pipeline", mark, most);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[2 * PAIRS];
    struct random random[2 * PAIRS];
    stress_begin(count, arguments, 200);
    first_random = &random[0];
    blocks_of_each = align_up(scaled(750000), BATCH);
    double begun = seconds_now();
    for (size_t i = 0; i < 2 * PAIRS; i++) {
        random[i] = stress_random(i);
        EXPECT(pthread_create(&threads[i], NULL, i < PAIRS ? consume : produce, &random[i]) == 0,
               "no thread");
    }
    for (size_t i = 0; i < 2 * PAIRS; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0, "no thread to join");
    expect_empty_heap();
    printf("pipeline: %zu blocks in %.1f s\n", PAIRS * blocks_of_each, seconds_now() - begun);
    return 0;
}
