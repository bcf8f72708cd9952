/*
 * Who looks at requests: the profile, guards, both or nobody. While somebody does, malloc's fast
 * path serves nobody (profile.h), and each request is counted, here.
 */
#ifndef SNUG_PROFILE_WATCH_H
#define SNUG_PROFILE_WATCH_H

#include "profile/guard.h"
#include "profile/profile.h"

/* Whether somebody does: a sum of enum profile_watcher. */
static ALWAYS_INLINE uint32_t watchers(void)
{
    /* acquire: pairs with the release in profile_watch */
    return __atomic_load_n(&profile_watchers, __ATOMIC_ACQUIRE);
}

static ALWAYS_INLINE bool watch_is_on(void)
{
    return UNLIKELY(watchers() != 0);
}

/* Counts a request of `size` bytes for these watchers if it is nothing to look at; if it may be,
 * nothing is done. */
static ALWAYS_INLINE bool watch_counts_plain(uint32_t who, size_t size)
{
    if ((who & WATCH_PROFILE) != 0 && UNLIKELY(!profile_counts_plain(size)))
        return false;
    if ((who & WATCH_GUARDS) == 0 || LIKELY(guard_counts_plain()))
        return true;
    if ((who & WATCH_PROFILE) != 0)
        profile_uncounts(size);
    return false;
}

/* Takes that back. */
static inline void watch_uncounts(uint32_t who, size_t size)
{
    if ((who & WATCH_PROFILE) != 0)
        profile_uncounts(size);
    if ((who & WATCH_GUARDS) != 0)
        guard_uncounts();
}

#endif
