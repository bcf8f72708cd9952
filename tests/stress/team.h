/*
 * What the stress tests share: tickets, slots through which threads pass each other blocks, and
 * what must hold of the heap when everything is free.
 *
 * A ticket describes one block, so that any thread that holds the ticket can check the block's
 * contents, resize it or free it. Tickets change hands by an atomic exchange with a slot, as
 * pointers do in a real program: that exchange is all the order there is between the threads.
 */
#ifndef SNUG_TESTS_TEAM_H
#define SNUG_TESTS_TEAM_H

#include <pthread.h>
#include <sys/types.h>

#include "expect.h"

struct ticket {
    unsigned char *block; /* NULL: none */
    size_t size;
    uint64_t id; /* of the pattern; unlike any other block's */
};

/* Takes a block of a random size by a random call, checks and fills it. The ticket must be empty.
 */
void ticket_take(struct ticket *ticket, struct random *random);

/* The same with a size of the caller's choice, by malloc. */
void ticket_take_size(struct ticket *ticket, struct random *random, size_t size);

/* Checks the block's contents. */
void ticket_check(const struct ticket *ticket);

/* Resizes the block to a random size, and checks what must have been kept. */
void ticket_resize(struct ticket *ticket, struct random *random);

/* Checks the block's contents and frees it; nothing if there is none. */
void ticket_free(struct ticket *ticket, struct random *random);

/* A thread with the ticket that it has in hand. */
struct member {
    pthread_t thread;
    struct ticket ticket;
    struct ticket *current;
    struct random random;
};

void member_init(struct member *member, uint64_t number);

/* Places where tickets wait for any thread. */
struct slots {
    struct ticket *_Atomic *at;
    struct ticket *tickets;
    size_t count;
};

/* `count` slots, each with an empty ticket. */
void slots_init(struct slots *slots, size_t count);

/* Puts `ticket` into a random slot and returns the one that was there. */
struct ticket *slots_exchange(struct slots *slots, struct random *random, struct ticket *ticket);

/* Checks and frees all blocks that wait in slots. No other thread may use them. */
void slots_free_blocks(struct slots *slots, struct random *random);

/* Gives the slots' own memory back. */
void slots_end(struct slots *slots);

/* In a child of fork: it ends within a quarter of the `seconds` of its parent's watchdog. A thread
 * that is stuck in the allocator runs no handler, so the signal itself ends the process. */
void child_begin(unsigned seconds);

/* Waits for a child, which must end with 0. `whose` begins the line that says what it did. */
void child_wait(pid_t child, const char *whose);

/* To be called when every thread has been joined and every block is free: nothing may be live,
 * every invariant must hold, and after a trim nothing may be left. */
void expect_empty_heap(void);

/* snug_check() finds nothing. */
void expect_sound_heap(void);

/* Starts the watchdog, and prints the seed: --seed=N on the command line, else the clock. */
void stress_begin(int count, char **arguments, unsigned seconds);

/* A source of random numbers for one thread, different for each `number`. */
struct random stress_random(uint64_t number);

#endif
