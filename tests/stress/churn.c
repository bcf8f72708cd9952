/*
 * Thousands of threads, a few at a time, each with a short life: some leave with full magazines,
 * some free what others left, some use the heap in a destructor of thread-specific data, after
 * their magazines are gone, some never call it. Memory must be as it was after the first few
 * hundred.
 */
#include <pthread.h>
#include <stdio.h>

#include "base/common.h"
#include "bounds.h"
#include "snug/snug.h"
#include "team.h"

enum { THREADS = 4, SLOTS = 300, HAND = 150 };

/* Seen: up to 8.5 MiB on a loaded machine, which is what the page heap keeps for a demand like
 * that of a moment ago, and no metadata, over 800,000 threads. Threads that keep their magazines,
 * the planted fault, come to many times this. */
#define SLACK (12 * MIB)

static struct slots slots;
static pthread_key_t key;

struct life {
    struct random random;
    struct ticket ticket; /* travels through the slots */
    struct ticket *current;
    struct ticket last; /* freed by the destructor */
};

/* Takes a handful and frees it: all that is freed waits in magazines when the thread ends. */
static void fill_magazines(struct life *life)
{
    struct ticket hand[HAND];
    for (size_t i = 0; i < HAND; i++)
        ticket_take_size(&hand[i], &life->random, random_log(&life->random, 1, KIB));
    for (size_t i = 0; i < HAND; i++)
        ticket_free(&hand[i], &life->random);
}

static void exchange(struct life *life)
{
    for (size_t i = 0; i < HAND; i++) {
        if (life->current->block == NULL)
            ticket_take_size(life->current, &life->random, random_log(&life->random, 1, 2 * KIB));
        else
            ticket_free(life->current, &life->random);
        life->current = slots_exchange(&slots, &life->random, life->current);
    }
}

static void free_only(struct life *life)
{
    for (size_t i = 0; i < HAND; i++) {
        ticket_free(life->current, &life->random);
        life->current = slots_exchange(&slots, &life->random, life->current);
    }
}

/* Runs after the allocator's own destructor, whose key is older, and once more after that. */
static void at_thread_exit(void *argument)
{
    struct life *life = argument;
    if (life->last.block != NULL) {
        ticket_free(&life->last, &life->random);
        fill_magazines(life);
        pthread_setspecific(key, life);
    } else {
        exchange(life);
    }
}

static void *live(void *argument)
{
    struct life *life = argument;
    switch (random_below(&life->random, 6)) {
    case 0:
        break;
    case 1:
        free_only(life);
        break;
    case 2:
        exchange(life);
        break;
    case 3:
        ticket_take(&life->last, &life->random);
        pthread_setspecific(key, life);
        break;
    default:
        fill_magazines(life);
        exchange(life);
        break;
    }
    return NULL;
}

static void generation(struct life *lives)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, live, &lives[i]) == 0, "no thread");
    for (size_t i = 0; i < THREADS; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0, "no thread to join");
}

int main(int count, char **arguments)
{
    static struct life lives[THREADS];
    struct bounds mark = {0}, most = {0};
    stress_begin(count, arguments, 200);
    struct random random = stress_random(THREADS);
    slots_init(&slots, SLOTS);
    EXPECT(pthread_key_create(&key, at_thread_exit) == 0, "no key");
    for (size_t i = 0; i < THREADS; i++) {
        lives[i].random = stress_random(i);
        lives[i].current = &lives[i].ticket;
    }
    double begun = seconds_now();
    size_t generations = scaled(2500);
    for (size_t i = 0; i < generations; i++) {
        generation(lives);
        if (i % 64 != 0 && i != generations - 1)
            continue;
        struct bounds now = bounds_now();
        if (i <= generations / 5)
            bounds_raise(&mark, now);
        bounds_raise(&most, now);
        expect_within(now, mark, SLACK, "while threads came and went");
    }
    bounds_print("churn", mark, most);
    for (size_t i = 0; i < THREADS; i++)
        ticket_free(lives[i].current, &random);
    slots_free_blocks(&slots, &random);
    expect_empty_heap();
    slots_end(&slots);
    printf("churn: %zu threads in %.1f s\n", generations * THREADS, seconds_now() - begun);
    return 0;
}
