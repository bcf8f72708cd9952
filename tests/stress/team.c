/*
 * Tickets, slots and the final accounts of the stress tests. See team.h.
 */
#include "team.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/common.h"
#include "heap/totals.h"
#include "snug/snug.h"

static uint64_t seed;

static void write_context(char *text, size_t capacity)
{
    snprintf(text, capacity, "\nagain, if the threads meet like that: --seed=%llu",
             (unsigned long long)seed);
}

void stress_begin(int count, char **arguments, unsigned seconds)
{
    seed = (uint64_t)time(NULL);
    if (count > 1 && strncmp(arguments[1], "--seed=", 7) == 0)
        seed = strtoull(arguments[1] + 7, NULL, 0);
    printf("stress: --seed=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    fail_context = write_context;
    watchdog_start(seconds);
}

struct random stress_random(uint64_t number)
{
    return (struct random){seed * 1000003 + number};
}

/* ---- Tickets ---- */

/* Large blocks are there, but do not take all of the time. */
static size_t stress_size(struct random *random)
{
    size_t size = random_size(random);
    return size > 16 * KIB && !random_one_in(random, 4) ? size % KIB : size;
}

static void ticket_fill(struct ticket *ticket, struct random *random, void *block, size_t size)
{
    EXPECT(block != NULL, "no block of %zu bytes", size);
    EXPECT(((uintptr_t)block & (MIN_ALIGN - 1)) == 0, "block %p of %zu bytes is not aligned", block,
           size);
    *ticket = (struct ticket){.block = block, .size = size, .id = random_next(random)};
    pattern_fill(block, size, ticket->id);
}

void ticket_take_size(struct ticket *ticket, struct random *random, size_t size)
{
    ticket_fill(ticket, random, snug_malloc(size), size);
}

static void *take_zero(size_t size)
{
    const unsigned char *block = snug_calloc(1, size);
    for (size_t i = 0; block != NULL && i < size; i++)
        EXPECT(block[i] == 0, "calloc's block %p of %zu bytes is not zero at byte %zu",
               (const void *)block, size, i);
    return (void *)(uintptr_t)block;
}

void ticket_take(struct ticket *ticket, struct random *random)
{
    size_t size = stress_size(random);
    size_t way = random_below(random, 16);
    void *block;
    if (way == 0) {
        size_t alignment = random_alignment(random, 32 * KIB);
        block = snug_aligned_alloc(alignment, size);
        EXPECT(((uintptr_t)block & (alignment - 1)) == 0,
               "block %p of %zu bytes is not aligned to %zu", block, size, alignment);
    } else if (way < 4) {
        block = take_zero(size);
    } else {
        block = snug_malloc(size);
    }
    ticket_fill(ticket, random, block, size);
}

static void check_bytes(const struct ticket *ticket, const void *block, size_t kept)
{
    size_t wrong = pattern_check(block, kept, ticket->id);
    EXPECT(wrong == kept, "block %p of %zu bytes, filled at %p, has lost its contents at byte %zu",
           block, ticket->size, (const void *)ticket->block, wrong);
}

void ticket_check(const struct ticket *ticket)
{
    check_bytes(ticket, ticket->block, ticket->size);
}

void ticket_resize(struct ticket *ticket, struct random *random)
{
    size_t size = stress_size(random) + 1;
    ticket_check(ticket);
    void *moved = snug_realloc(ticket->block, size);
    EXPECT(moved != NULL, "no block of %zu bytes", size);
    check_bytes(ticket, moved, size_min(size, ticket->size));
    ticket_fill(ticket, random, moved, size);
}

void ticket_free(struct ticket *ticket, struct random *random)
{
    if (ticket->block == NULL)
        return;
    ticket_check(ticket);
    if (random_one_in(random, 8))
        snug_free_sized(ticket->block, ticket->size);
    else
        snug_free(ticket->block);
    ticket->block = NULL;
}

/* ---- Slots ---- */

void slots_init(struct slots *slots, size_t count)
{
    slots->count = count;
    slots->at = calloc(count, sizeof(*slots->at));
    slots->tickets = calloc(count, sizeof(*slots->tickets));
    EXPECT(slots->at != NULL && slots->tickets != NULL, "no memory for the slots");
    for (size_t i = 0; i < count; i++)
        atomic_store(&slots->at[i], &slots->tickets[i]);
}

struct ticket *slots_exchange(struct slots *slots, struct random *random, struct ticket *ticket)
{
    /* release: the block is filled when another thread finds it; acquire: the same from its side */
    return atomic_exchange_explicit(&slots->at[random_below(random, slots->count)], ticket,
                                    memory_order_acq_rel);
}

void slots_free_blocks(struct slots *slots, struct random *random)
{
    for (size_t i = 0; i < slots->count; i++)
        ticket_free(atomic_load(&slots->at[i]), random);
}

void slots_end(struct slots *slots)
{
    free((void *)slots->at);
    free(slots->tickets);
}

/* ---- Threads and children ---- */

void member_init(struct member *member, uint64_t number)
{
    member->current = &member->ticket;
    member->random = stress_random(number);
}

void child_begin(unsigned seconds)
{
    signal(SIGALRM, SIG_DFL);
    alarm(watchdog_seconds(seconds) / 4);
}

void child_wait(pid_t child, const char *whose)
{
    int status = 0;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child, "no child");
    EXPECT(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM, "%s did not end in time", whose);
    EXPECT(!WIFSIGNALED(status), "%s was killed by signal %d", whose, WTERMSIG(status));
    EXPECT(WEXITSTATUS(status) == 0, "%s ended with %d", whose, WEXITSTATUS(status));
}

/* ---- The heap as a whole ---- */

void expect_sound_heap(void)
{
    EXPECT(snug_check() == 0, "snug_check() finds the heap damaged");
}

void expect_empty_heap(void)
{
    expect_sound_heap();
    struct heap_totals totals = heap_totals();
    EXPECT(totals.small_live == 0, "%zu bytes of small objects are live, but all were freed",
           totals.small_live);
    EXPECT(totals.cells_live == 0 && totals.cells_count == 0,
           "%zu bytes of cells in %zu blocks are live, but all were freed", totals.cells_live,
           totals.cells_count);
    EXPECT(totals.large == 0 && totals.huge == 0 && totals.huge_count == 0,
           "%zu bytes of large and %zu of huge blocks are live, but all were freed", totals.large,
           totals.huge);
    snug_malloc_trim(0);
    totals = heap_totals();
    EXPECT(totals.dirty == SEGMENTS_LEFT, "%zu bytes are dirty after a trim", totals.dirty);
    EXPECT(totals.segments == SEGMENTS_LEFT, "%zu bytes of segments are left after a trim",
           totals.segments);
    expect_sound_heap();
}
