/*
 * Events: what the next slow path of any thread is asked to do. Nobody waits until it is done, and
 * a program that is asked for nothing pays one load for each slow path. Every call that allocates,
 * frees or resizes polls once, unless a magazine or a quick list serves it: those calls notice
 * nothing, and change nothing that an event is about.
 *
 * Requests come from signal handlers and, through the tool (`snug trim`), from other processes:
 * each is a byte of its own, so that setting one needs no more than to write it.
 */
#ifndef SNUG_STATS_EVENT_H
#define SNUG_STATS_EVENT_H

#include "base/common.h"

struct events {
    union {
        uint64_t any; /* not 0 if a member of `wanted` is */
        struct {
            uint8_t trim;     /* give free memory back */
            uint8_t print;    /* print the statistics */
            uint8_t check;    /* walk the heap */
            uint8_t watch;    /* always look whether something is due */
            uint8_t profile;  /* enum profile_request: begin or end a profile */
            uint8_t peak;     /* more is in use than ever: copy the numbers */
            uint16_t ticking; /* the number of heaps that want a tick some time (heap/tick.h);
                                 malloc's counts until it is made */
        } wanted;
    };
    uint64_t trims;   /* how many trims were carried out */
    bool busy;        /* a thread carries requests out; others need not wait for it */
    uint64_t started; /* nanoseconds of os_clock() when there were both libc and malloc's heap */
};

_Static_assert(sizeof(((struct events *)0)->wanted) == sizeof(uint64_t), "any is all of them");

extern INTERNAL struct events events;

/* Carries the requests out; called with no lock held, by one thread at a time. NULL until the
 * report layer sets it. */
extern INTERNAL void (*events_handler)(void);

/* Carries out what is asked for, unless another thread is doing so. No lock may be held. */
COLD void events_run(void);

/* In a child of fork: the thread that was busy may not be there. */
void events_fork_in_child(void);

/* Whether malloc's heap is made and the library's constructor has run: from then on the program's
 * own code may. */
static inline bool events_started(void)
{
    return __atomic_load_n(&events.started, __ATOMIC_RELAXED) != 0;
}

/* Whether something is asked for. */
static ALWAYS_INLINE bool events_wait(void)
{
    /* relaxed: a request is honoured a little later then */
    return UNLIKELY(__atomic_load_n(&events.any, __ATOMIC_RELAXED) != 0);
}

/* Whether something is asked for besides a heap's tick. */
static inline bool events_requested(void)
{
    const struct events ticks = {.wanted = {.ticking = UINT16_MAX}};
    return (__atomic_load_n(&events.any, __ATOMIC_RELAXED) & ~ticks.any) != 0;
}

#endif
