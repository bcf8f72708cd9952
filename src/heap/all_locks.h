/*
 * Every lock of every heap at once: what a thread needs that wants to find nothing half done.
 *
 * The idea: locks are taken in the order of their ranks, so it waits for nobody who waits for it.
 * While it has them all, taking and releasing one is without effect for it (lock_fork_begin), so it
 * may call whatever takes locks. Fork needs that, and so does what another process asks for
 * (outside_call.h), which may have interrupted a holder and must not wait.
 *
 * Cost: one atomic operation for each lock there is, about 140 for each processor that was used.
 */
#ifndef SNUG_HEAP_ALL_LOCKS_H
#define SNUG_HEAP_ALL_LOCKS_H

#include "platform/lock.h"

/* Waits for each; for a fork. */
void all_locks_take(void);

/* Waits for none. False: one was not free, and none is held. One thread at a time may try. */
bool all_locks_try(void);

/* `release` is lock_release, or in the child of a fork lock_reset. */
void all_locks_release(void (*release)(struct lock *lock));

#endif
