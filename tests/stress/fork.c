/*
 * Fork while threads are in the middle of everything. The child has one thread and a copy of the
 * heap in which the others' magazines are lost; all else must work: it allocates, checks and frees
 * the blocks that waited in slots, starts a thread, forks once more, and finds its heap sound. The
 * parent goes on undisturbed, and at the end nothing of its own may be lost.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/common.h"
#include "snug/snug.h"
#include "team.h"

enum { THREADS = 4, SLOTS = 2000, SECONDS = 200 };

static struct slots slots;
static atomic_bool done;

/* ---- The load ---- */

static void turn(struct member *member)
{
    if (member->current->block == NULL)
        ticket_take(member->current, &member->random);
    else if (random_one_in(&member->random, 3))
        ticket_resize(member->current, &member->random);
    else
        ticket_free(member->current, &member->random);
    member->current = slots_exchange(&slots, &member->random, member->current);
}

static void *work(void *argument)
{
    struct member *member = argument;
    while (!atomic_load_explicit(&done, memory_order_relaxed))
        turn(member);
    return NULL;
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

_Noreturn static void child_end(void)
{
    /* Under a sanitizer the end of a process looks at threads that a child does not have. */
    if (sanitized())
        _exit(0);
    exit(0);
}

_Noreturn static void live_as_child(struct random random)
{
    child_begin(SECONDS);
    take_and_free(&random, 300);
    expect_sound_heap();
    pid_t grandchild = fork();
    if (grandchild == 0) {
        child_begin(SECONDS);
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
    child_wait(grandchild, "a child's child");
    child_end();
}

/* ---- The forks ---- */

static void fork_once(struct random *random)
{
    struct random for_child = {random_next(random)};
    pid_t child = fork();
    if (child == 0)
        live_as_child(for_child);
    child_wait(child, "a child");
}

static size_t forks_of_each;

/* Of two threads that fork, so that forks meet. Each works between, and so has magazines. */
static void *fork_and_work(void *argument)
{
    struct member *member = argument;
    for (size_t i = 0; i < forks_of_each; i++) {
        size_t turns = random_log(&member->random, 1, 500);
        while (turns-- > 0)
            turn(member);
        fork_once(&member->random);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    static struct member members[THREADS + 2]; /* the last two are those that fork */
    stress_begin(count, arguments, SECONDS);
    slots_init(&slots, SLOTS);
    forks_of_each = scaled(16);
    double begun = seconds_now();
    for (size_t i = 0; i < THREADS + 2; i++)
        member_init(&members[i], i);
    for (size_t i = 0; i <= THREADS; i++)
        EXPECT(pthread_create(&members[i].thread, NULL, i < THREADS ? work : fork_and_work,
                              &members[i]) == 0,
               "no thread");
    fork_and_work(&members[THREADS + 1]);
    EXPECT(pthread_join(members[THREADS].thread, NULL) == 0, "no thread to join");
    atomic_store(&done, true);
    for (size_t i = 0; i < THREADS; i++)
        EXPECT(pthread_join(members[i].thread, NULL) == 0, "no thread to join");
    struct random random = stress_random(THREADS + 2);
    for (size_t i = 0; i < THREADS + 2; i++)
        ticket_free(members[i].current, &random);
    slots_free_blocks(&slots, &random);
    expect_empty_heap();
    slots_end(&slots);
    printf("fork: %zu forks in %.1f s\n", 2 * forks_of_each, seconds_now() - begun);
    return 0;
}
