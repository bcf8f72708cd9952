/*
 * The list of the providers' locks. See provider_lock.h.
 */
#include "provider/provider_lock.h"

static struct list locks = {&locks, &locks};
static struct lock locks_lock = LOCK_INIT(RANK_PROVIDERS);

void provider_lock_init(struct provider_lock *lock)
{
    lock_init(&lock->lock, RANK_PROVIDER);
    lock_acquire(&locks_lock);
    list_push(&locks, &lock->link);
    lock_release(&locks_lock);
}

void provider_lock_end(struct provider_lock *lock)
{
    lock_acquire(&locks_lock);
    list_remove(&lock->link);
    lock_release(&locks_lock);
}

struct lock *provider_locks_lock(void)
{
    return &locks_lock;
}

void provider_locks_each(void (*act)(struct lock *lock))
{
    LIST_EACH(node, &locks)
        act(&CONTAINER_OF(node, struct provider_lock, link)->lock);
}
