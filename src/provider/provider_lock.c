/*
 * The list of the providers' locks. See provider_lock.h.
 */
#include "provider/provider_lock.h"

static struct provider_lock *locks;
static struct lock locks_lock = LOCK_INIT(RANK_PROVIDERS);

void provider_lock_init(struct provider_lock *lock)
{
    lock_init(&lock->lock, RANK_PROVIDER);
    lock_acquire(&locks_lock);
    lock->next = locks;
    locks = lock;
    lock_release(&locks_lock);
}

void provider_lock_end(struct provider_lock *lock)
{
    lock_acquire(&locks_lock);
    struct provider_lock **link = &locks;
    while (*link != lock)
        link = &(*link)->next;
    *link = lock->next;
    lock_release(&locks_lock);
}

struct lock *provider_locks_lock(void)
{
    return &locks_lock;
}

void provider_locks_each(void (*act)(struct lock *lock))
{
    for (struct provider_lock *each = locks; each != NULL; each = each->next)
        act(&each->lock);
}
