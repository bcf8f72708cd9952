/*
 * The one place where requests are polled and the heap's clock ticks: on the way into whatever a
 * program calls to take, free or resize, unless a magazine or a quick list serves.
 *
 * The idea: what a heap keeps for a demand that has ended must go although nobody frees any more.
 * The page heap and the cells of each arena say when they want to be looked at; a tick comes at the
 * first slow path from then on, of any thread, and visits all of them, and the depots.
 *
 * Cost: one load while no heap wants a tick; otherwise the coarse clock, which is no system call.
 */
#ifndef SNUG_HEAP_TICK_H
#define SNUG_HEAP_TICK_H

#include "heap/heap.h"
#include "stats/event.h"

/* Does what is asked for, and what is due. No lock may be held. */
NOINLINE void heap_tick(struct heap *heap);

static inline void heap_poll(struct heap *heap)
{
    if (events_wait())
        heap_tick(heap);
}

#endif
