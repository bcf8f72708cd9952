/*
 * Counting requests. See watch.h.
 */
#include "profile/watch.h"

__thread struct watch_gaps watch_self __attribute__((tls_model("initial-exec")));

uint32_t watch_counts(size_t size)
{
    uint32_t found = 0;
    size += size == 0;
    if (sampler_count(&watch_self.bytes, size) &&
        sampler_take(&watch_self.bytes, &profile.rate, size, profile_draw))
        found = WATCH_PROFILE;
    if (sampler_count(&watch_self.requests, 1) &&
        sampler_take(&watch_self.requests, &guard.rate, 1, profile_draw))
        found |= WATCH_GUARDS;
    return found & watchers();
}
