/*
 * The one place where requests are polled and the heap's clock ticks: on the way into whatever a
 * program calls to take, free or resize, unless a magazine or a quick list serves.
 *
 * The idea: what a heap keeps for a demand that has ended must go although nobody frees any more.
 * The page heap and the cells of each arena say when they want to be looked at; a tick comes at the
 * first slow paths from then on, of any thread, and visits all of them, and the depots.
 *
 * Cost: one load while no heap wants a tick; otherwise a count, and now and then the coarse clock,
 * which is no system call.
 */
#ifndef SNUG_HEAP_TICK_H
#define SNUG_HEAP_TICK_H

#include "heap/heap.h"
#include "stats/event.h"

/* Calls: a thread reads the clock in one of so many slow ones, which take ten times as long as that
 * in all. */
enum { POLLS_PER_LOOK = 16 };

/* Does what is asked for, and what is due. No lock may be held, here and below. */
void heap_tick(struct heap *heap);

/* What a call goes on with when it has polled. */
struct polled {
    size_t bytes;
    struct heap *heap;
};

/* The same as heap_tick, but looks only now and then what is due. No bytes: nothing is taken.
 * Returns what it was given, in registers: so a caller need not keep it on the stack, not even
 * where it does not poll. */
NOINLINE struct polled heap_polled(size_t bytes, struct heap *heap);

static ALWAYS_INLINE struct polled heap_poll_with(size_t bytes, struct heap *heap)
{
    return LIKELY(!events_wait()) ? (struct polled){bytes, heap} : heap_polled(bytes, heap);
}

static inline void heap_poll(struct heap *heap)
{
    heap_poll_with(0, heap);
}

/* The same on the way into what takes memory. */
static inline void heap_poll_taking(struct heap *heap)
{
    heap_poll_with(1, heap);
}

/* Called by each poll on the way into what takes memory; NULL: there is nothing. Libc frees with
 * locks of its own held, so what calls libc is not for others. */
extern INTERNAL void (*heap_taking_handler)(void);

#endif
