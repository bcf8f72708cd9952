/*
 * Threads of several kinds pass each other blocks of all sizes through shared slots, check what is
 * in them, resize and free them, while threads come and go, and the main thread checks and trims
 * the heap in the middle of it. At the end everything is freed, and nothing may be left.
 */
#include <pthread.h>
#include <stdio.h>

#include "base/common.h"
#include "heap/heap.h"
#include "snug/snug.h"
#include "team.h"

enum { THREADS = 6, SLOTS = 3000, OWN = 60 };

static struct slots slots;

/* ---- The kinds of threads ---- */

/* A thread's view of the test. */
struct worker {
    struct random random;
    struct ticket *ticket;   /* its own, to exchange */
    struct ticket *own[OWN]; /* blocks that it keeps for a while, from slots too */
    size_t turns;
};

/* Allocates, resizes what others allocated, frees now and then: a bit of everything. */
static void mix(struct worker *worker)
{
    struct random *random = &worker->random;
    if (worker->ticket->block == NULL)
        ticket_take(worker->ticket, random);
    else if (random_one_in(random, 4))
        ticket_resize(worker->ticket, random);
    else if (random_one_in(random, 2))
        ticket_free(worker->ticket, random);
    worker->ticket = slots_exchange(&slots, random, worker->ticket);
}

/* Only frees. Such a thread gets magazines by what it is given. */
static void free_only(struct worker *worker)
{
    ticket_free(worker->ticket, &worker->random);
    worker->ticket = slots_exchange(&slots, &worker->random, worker->ticket);
}

/* Only allocates, as far as the slots let it. */
static void take_only(struct worker *worker)
{
    if (worker->ticket->block == NULL)
        ticket_take(worker->ticket, &worker->random);
    worker->ticket = slots_exchange(&slots, &worker->random, worker->ticket);
}

/* Many of a size in a row, then all of them freed: its magazines run full and empty. */
static void go_up_and_down(struct worker *worker)
{
    struct ticket tickets[OWN];
    size_t size = random_log(&worker->random, 1, 4 * KIB);
    size_t count = 1 + random_below(&worker->random, OWN);
    for (size_t i = 0; i < count; i++)
        ticket_take_size(&tickets[i], &worker->random, size);
    bool forward = random_one_in(&worker->random, 2);
    for (size_t i = 0; i < count; i++)
        ticket_free(&tickets[forward ? i : count - 1 - i], &worker->random);
    mix(worker);
}

/* Keeps tickets of others for a while, and gives others in return. */
static void hold(struct worker *worker)
{
    struct ticket **place = &worker->own[random_below(&worker->random, OWN)];
    struct ticket *before = *place;
    *place = worker->ticket;
    worker->ticket = before;
    mix(worker);
}

static void (*const kinds[])(struct worker *worker) = {
    mix, mix, free_only, take_only, go_up_and_down, hold};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* ---- Threads ---- */

/* A place for one thread after the other, with the tickets that whoever is there owns. */
struct place {
    pthread_t thread;
    struct ticket tickets[1 + OWN];
    struct worker worker;
};

static void *work(void *argument)
{
    struct place *place = argument;
    struct worker *worker = &place->worker;
    void (*turn)(struct worker *) = kinds[random_below(&worker->random, KINDS)];
    for (size_t i = 0; i < worker->turns; i++)
        turn(worker);
    /* It leaves with its magazines as they are, and its tickets to the next one here. */
    return NULL;
}

static void start(struct place *place, struct random *random)
{
    place->worker.random = (struct random){random_next(random)};
    place->worker.turns = random_log(random, 1, 4000);
    EXPECT(pthread_create(&place->thread, NULL, work, place) == 0, "no thread");
}

static void place_init(struct place *place)
{
    place->worker.ticket = &place->tickets[0];
    for (size_t i = 0; i < OWN; i++)
        place->worker.own[i] = &place->tickets[1 + i];
}

static void place_free_blocks(struct place *place, struct random *random)
{
    ticket_free(place->worker.ticket, random);
    for (size_t i = 0; i < OWN; i++)
        ticket_free(place->worker.own[i], random);
}

/* What the main thread does meanwhile: its own work, and what may be asked of a heap at any time.
 */
static void interfere(struct worker *worker)
{
    for (size_t i = 0; i < 20; i++)
        mix(worker);
    struct snug_mallinfo info = snug_mallinfo2();
    EXPECT(info.arena >= info.keepcost,
           "%zu bytes in segments, but %zu of them could be given back", info.arena, info.keepcost);
    if (random_one_in(&worker->random, 4))
        expect_sound_heap();
    if (random_one_in(&worker->random, 8))
        snug_malloc_trim(random_one_in(&worker->random, 2) ? 0 : MIB);
}

static void all_come_and_go(struct place *places, struct worker *self, size_t threads)
{
    for (size_t i = 0; i < THREADS; i++)
        start(&places[i], &self->random);
    for (size_t i = 0; i < threads; i++) {
        struct place *place = &places[i % THREADS];
        EXPECT(pthread_join(place->thread, NULL) == 0, "no thread to join");
        start(place, &self->random);
        interfere(self);
    }
    for (size_t i = 0; i < THREADS; i++)
        EXPECT(pthread_join(places[i].thread, NULL) == 0, "no thread to join");
}

int main(int count, char **arguments)
{
    static struct place places[THREADS + 1]; /* the last is the main thread's */
    stress_begin(count, arguments, 200);
    struct worker *self = &places[THREADS].worker;
    self->random = stress_random(0);
    slots_init(&slots, SLOTS);
    for (size_t i = 0; i <= THREADS; i++)
        place_init(&places[i]);
    double begun = seconds_now();
    size_t threads = scaled(250);
    all_come_and_go(places, self, threads);
    for (size_t i = 0; i <= THREADS; i++)
        place_free_blocks(&places[i], &self->random);
    slots_free_blocks(&slots, &self->random);
    expect_empty_heap();
    slots_end(&slots);
    printf("exchange: %zu threads in %.1f s\n", threads, seconds_now() - begun);
    return 0;
}
