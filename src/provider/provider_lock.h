/*
 * The locks of providers, in a list, so that a fork finds all of them.
 *
 * Some calls of a provider come with no lock of the heap held: large blocks are cleared and resized
 * so. A lock of the provider's own then keeps its books, or makes sure that functions of the
 * program's are called by one thread at a time.
 *
 * Cost: the provider's own lock at each call, which asks the system for something or looks through
 * pages; that of the list where a provider is made or ended, and at a fork.
 */
#ifndef SNUG_PROVIDER_PROVIDER_LOCK_H
#define SNUG_PROVIDER_PROVIDER_LOCK_H

#include "base/list.h"
#include "platform/lock.h"

struct provider_lock {
    struct lock lock; /* RANK_PROVIDER */
    struct list link; /* in the list of all */
};

/* Makes the lock and lists it; takes it out of the list. */
void provider_lock_init(struct provider_lock *lock);
void provider_lock_end(struct provider_lock *lock);

/* The lock of the list. provider_locks_each calls `act` with each lock in it; the lock of the list
 * must be held. */
struct lock *provider_locks_lock(void);
void provider_locks_each(void (*act)(struct lock *lock));

#endif
