/*
 * Who looks at requests: the profile, guards, both or nobody. While somebody does, malloc's fast
 * path serves nobody (profile.h), and each request is counted, here.
 */
#ifndef SNUG_PROFILE_WATCH_H
#define SNUG_PROFILE_WATCH_H

#include "profile/guard.h"
#include "profile/profile.h"

/* Whether somebody does. */
static inline bool watch_is_on(void)
{
    /* acquire: pairs with the release in profile_begin and guard_begin */
    return UNLIKELY(__atomic_load_n(&profile_watchers, __ATOMIC_ACQUIRE) != 0);
}

/* Counts a request of `size` bytes if it is nothing to look at; if it may be, nothing is done. */
static inline bool watch_counts_plain(size_t size)
{
    if (profile_is_on() && !profile_counts_plain(size))
        return false;
    if (!guard_is_on() || guard_counts_plain())
        return true;
    if (profile_is_on())
        profile_uncounts(size);
    return false;
}

/* Takes that back. */
static inline void watch_uncounts(size_t size)
{
    if (profile_is_on())
        profile_uncounts(size);
    if (guard_is_on())
        guard_uncounts();
}

#endif
