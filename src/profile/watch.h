/*
 * Who looks at requests: the profile, guards, both or nobody. While somebody does, malloc's fast
 * path serves nobody (profile.h), and each request is counted, here.
 *
 * The idea: a thread has two gaps, of bytes to the next sample and of requests to the next guarded
 * block, and both are counted down whoever looks, so that nobody need ask who does before one of
 * them ends: two subtractions for nearly every request (magazine/counted.h). A gap that ends for
 * nobody is drawn anew; that of guards that never began is so long that it does not end.
 */
#ifndef SNUG_PROFILE_WATCH_H
#define SNUG_PROFILE_WATCH_H

#include "profile/guard.h"
#include "profile/profile.h"

/* Of a thread. */
struct watch_gaps {
    struct sampler bytes, requests;
};

extern INTERNAL __thread struct watch_gaps watch_self __attribute__((tls_model("initial-exec")));

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

/* Counts a request of `size` bytes, of the calling thread, and draws what gaps it ended. To be
 * called while somebody looks. Returns who is to look at it, as a sum of enum profile_watcher: of
 * the profile, profile_put is to be called with its block. */
uint32_t watch_counts(size_t size);

#endif
