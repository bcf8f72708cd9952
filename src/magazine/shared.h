/*
 * Processors' caches: for threads without one of their own, and for what those may not hold.
 *
 * The idea: of a thousand threads most do little. A cache is not worth its kilobytes to a thread
 * that has just begun, or calls now and then; one that has ended can have none; and what all
 * threads may hold may be used up by others that sleep. Such threads share one cache for each
 * processor, so what waits grows with processors. Who finds it taken meets a thread that was
 * interrupted in the middle, and goes to the slabs, as it would without. So nobody ever waits for
 * it: it needs no rank among the locks, and a misuse handler or a signal handler may allocate while
 * it is taken.
 *
 * A child of fork keeps the one that its thread has taken; the others are orphans like the caches
 * of the threads that it does not have (orphans.c).
 *
 * Cost: an atomic instruction for each object, where the slabs take a lock for each, a look for the
 * slab and, every few objects, the page heap. What nobody takes or brings between two ticks of the
 * heap goes back to the slabs.
 * Source: J. Bonwick and J. Adams, "Magazines and Vmem" (2001), for caches by processor; there
 * interrupts are turned off, here a word says who has it.
 */
#ifndef SNUG_MAGAZINE_SHARED_H
#define SNUG_MAGAZINE_SHARED_H

#include "magazine/cache.h"

/* An object of a class from the cache of the processor, or of the slabs; NULL: no memory. */
void *shared_alloc(struct arenas *arenas, size_t class);

/* The same if one waits in the cache of the processor, otherwise NULL. */
void *shared_pop(struct arenas *arenas, size_t class);

/* What became of an object. */
enum shared_put {
    SHARED_PUT,     /* it waits */
    SHARED_NO_ROOM, /* nothing was done */
    SHARED_REFUSED  /* nothing was done: it is not on the grid, or is free */
};

/* Puts the object at `address`, whose page has this class, into the cache of the processor. `free`:
 * it is free already, and carries its key. */
enum shared_put shared_put(struct arenas *arenas, uintptr_t address, size_t class, bool free);

/* What is done with all of them that no thread has at this moment. */
enum shared_call {
    SHARED_CHECK,  /* look whether all that waits is as it should be */
    SHARED_TICK,   /* give back what is in those that nobody used since the last tick of the heap */
    SHARED_FLUSH,  /* give back what is in all */
    SHARED_INSPECT /* the same as the process ends: what was written to is reported */
};

/* Does that. NULL: nothing is wrong, or nobody asked; otherwise what is. */
const char *shared_do_all(struct arenas *arenas, enum shared_call call);

/* In a child of fork, after its caches were made orphans: keeps the one that its thread has taken,
 * and leaves the others to `end`, as arenas_orphan does with those of threads. */
void shared_orphan(struct arenas *arenas, void (*end)(struct arenas *arenas));

#endif
