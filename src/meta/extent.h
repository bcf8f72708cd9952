/*
 * From an address anywhere in a block to where that block begins and ends: for checks of what a
 * program is about to do with memory (api/copies.c).
 *
 * Signal handlers may ask, whatever the thread was doing. So a lock that is not free after a while
 * is given up, and then nothing is known of the block.
 */
#ifndef SNUG_META_EXTENT_H
#define SNUG_META_EXTENT_H

#include "platform/lock.h"

struct block_extent {
    uintptr_t start, end;
    bool is_free; /* `end` is then somewhere behind the address */
};

/* Times: longer than a lock is held where the holder runs, but for a rare system call. */
enum { EXTENT_TRIES = 200 };

/* Takes a lock to look under; false: it was not free, and must not be waited for. */
static inline bool extent_lock(struct lock *lock)
{
    for (int tries = 0; tries < EXTENT_TRIES; tries++)
        if (lock_try(lock))
            return true;
    return false;
}

#endif
