/*
 * Who looks at requests: the profile, guards, both or nobody. While somebody does, malloc's fast
 * path serves nobody (profile.h), and each request is counted here.
 *
 * The idea: a thread has two gaps, of bytes to the next sample and of requests to the next guarded
 * block. Both are counted down whoever looks, so that it matters who does only when one of them
 * ends: two subtractions for nearly every request (magazine/counted.h). If a gap ends that nobody
 * looks for, another is drawn. Guards that have not begun have gaps so long that they never end.
 */
#ifndef SNUG_PROFILE_WATCH_H
#define SNUG_PROFILE_WATCH_H

#include "profile/guard.h"
#include "profile/profile.h"

/* The gaps of a thread. */
struct watch_gaps {
    struct sampler bytes, requests;
};

extern INTERNAL __thread struct watch_gaps watch_self __attribute__((tls_model("initial-exec")));

/* Who looks at requests, as a sum of enum profile_watcher; 0: nobody. */
static ALWAYS_INLINE uint32_t watchers(void)
{
    /* acquire: pairs with the release in profile_watch */
    return __atomic_load_n(&profile_watchers, __ATOMIC_ACQUIRE);
}

static ALWAYS_INLINE bool watch_is_on(void)
{
    return UNLIKELY(watchers() != 0);
}

/* Counts a request of `size` bytes of the calling thread, and draws another gap for each that the
 * request ends. To be called while somebody looks. Returns who is to look at this request, as a sum
 * of enum profile_watcher; for WATCH_PROFILE, profile_put is to be called with its block. */
uint32_t watch_counts(size_t size);

#endif
