/*
 * Fork while threads are in the middle of everything. The child has one thread and a copy of the
 * heap in which the others' magazines are lost; all else must work: it allocates, checks and frees
 * the blocks that waited in slots, starts a thread, forks once more, and finds its heap sound. The
 * parent goes on undisturbed, and at the end nothing of its own may be lost.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/common.h"
#include "snug/snug.h"
#include "team.h"

enum { THREADS = 4, SLOTS = 2000, SECONDS = 200 };

static struct slots slots;
static atomic_bool done;

/* ---- The load ---- */

struct place {
    pthread_t thread;
    struct ticket ticket;
    struct ticket *current;
    struct random random;
};

static void turn(struct place *place)
{
    if (place->current->block == NULL)
        ticket_take(place->current, &place->random);
    else if (random_one_in(&place->random, 3))
        ticket_resize(place->current, &place->random);
    else
        ticket_free(place->current, &place->random);
    place->current = slots_exchange(&slots, &place->random, place->current);
}

static void *work(void *argument)
{
    struct place *place = argument;
    while (!atomic_load_explicit(&done, memory_order_relaxed))
        turn(place);
    return NULL;
}

static void place_init(struct place *place, uint64_t number)
{
    place->current = &place->ticket;
    place->random = stress_random(number);
}

/* ---- The child ---- */

static void take_and_free(struct random *random, size_t times)
{
    struct ticket tickets[64] = {0};
    for (size_t i = 0; i < times; i++) {
        struct ticket *ticket = &tickets[random_below(random, 64)];
        if (ticket->block == NULL)
            ticket_take(ticket, random);
        else
            ticket_free(ticket, random);
    }
    for (size_t i = 0; i < 64; i++)
        ticket_free(&tickets[i], random);
}

static void *work_in_child(void *argument)
{
    struct random random = *(struct random *)argument;
    take_and_free(&random, 300);
    return NULL;
}

static void start_a_thread(struct random *random)
{
    pthread_t thread;
    if (sanitized()) {
        work_in_child(random);
        return;
    }
    EXPECT(pthread_create(&thread, NULL, work_in_child, random) == 0, "the child gets no thread");
    EXPECT(pthread_join(thread, NULL) == 0, "no thread to join");
}

static void wait_for(pid_t child, const char *whose)
{
    int status = 0;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child, "no child");
    EXPECT(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM, "%s did not end in time", whose);
    EXPECT(!WIFSIGNALED(status), "%s was killed by signal %d", whose, WTERMSIG(status));
    EXPECT(WEXITSTATUS(status) == 0, "%s ended with %d", whose, WEXITSTATUS(status));
}

/* A thread that is stuck in the allocator runs no handler: the signal itself ends the process. */
static void child_begin(void)
{
    signal(SIGALRM, SIG_DFL);
    alarm(watchdog_seconds(SECONDS) / 4); /* before the parent's own */
}

_Noreturn static void child_end(void)
{
    /* Under a sanitizer the end of a process looks at threads that a child does not have. */
    if (sanitized())
        _exit(0);
    exit(0);
}

_Noreturn static void live_as_child(struct random random)
{
    child_begin();
    take_and_free(&random, 300);
    expect_sound_heap();
    pid_t grandchild = fork();
    if (grandchild == 0) {
        child_begin();
        slots_free_blocks(&slots, &random);
        take_and_free(&random, 300);
        expect_sound_heap();
        child_end();
    }
    slots_free_blocks(&slots, &random);
    start_a_thread(&random);
    snug_malloc_trim(0);
    start_a_thread(&random);
    expect_sound_heap();
    wait_for(grandchild, "a child's child");
    child_end();
}

/* ---- The forks ---- */

static void fork_once(struct random *random)
{
    struct random for_child = {random_next(random)};
    pid_t child = fork();
    if (child == 0)
        live_as_child(for_child);
    wait_for(child, "a child");
}

static size_t forks_of_each;

/* Of two threads that fork, so that forks meet. Each works between, and so has magazines. */
static void *fork_and_work(void *argument)
{
    struct place *place = argument;
    for (size_t i = 0; i < forks_of_each; i++) {
        size_t turns = random_log(&place->random, 1, 500);
        while (turns-- > 0)
            turn(place);
        fork_once(&place->random);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    static struct place places[THREADS + 2]; /* the last two are those that fork */
    stress_begin(count, arguments, SECONDS);
    slots_init(&slots, SLOTS);
    forks_of_each = scaled(30);
    double begun = seconds_now();
    for (size_t i = 0; i < THREADS + 2; i++)
        place_init(&places[i], i);
    for (size_t i = 0; i <= THREADS; i++)
        EXPECT(pthread_create(&places[i].thread, NULL, i < THREADS ? work : fork_and_work,
                              &places[i]) == 0,
               "no thread");
    fork_and_work(&places[THREADS + 1]);
    EXPECT(pthread_join(places[THREADS].thread, NULL) == 0, "no thread to join");
    atomic_store(&done, true);
    for (size_t i = 0; i < THREADS; i++)
        EXPECT(pthread_join(places[i].thread, NULL) == 0, "no thread to join");
    struct random random = stress_random(THREADS + 2);
    for (size_t i = 0; i < THREADS + 2; i++)
        ticket_free(places[i].current, &random);
    slots_free_blocks(&slots, &random);
    expect_empty_heap();
    slots_end(&slots);
    printf("fork: %zu forks in %.1f s\n", 2 * forks_of_each, seconds_now() - begun);
    return 0;
}
