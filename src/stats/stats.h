/*
 * Counters: only written here, printed by the report layer. One global word each, added to by
 * relaxed atomics; that is cheap enough because nothing on the fast path counts. A refill counts
 * once for up to a hundred objects.
 */
#ifndef SNUG_STATS_STATS_H
#define SNUG_STATS_STATS_H

#include "base/common.h"

#define COUNTER(name, text) uint64_t name;
struct counters {
#include "stats/counters.def"
};
#undef COUNTER

extern struct counters counters;

/* relaxed: a total that nothing is decided by */
#define COUNT(name, amount) \
    ((void)__atomic_fetch_add(&counters.name, (uint64_t)(amount), __ATOMIC_RELAXED))

/* What programs ask for, by small class: every request that meets an empty magazine is noted, which
 * is one of up to a hundred. `bytes` over `requests` is what a block of the class is asked for on
 * the average, as far as such a sample tells. */
enum { SAMPLE_CLASSES = 65 };

struct samples {
    uint64_t requests[SAMPLE_CLASSES];
    uint64_t bytes[SAMPLE_CLASSES];
};

extern struct samples samples;

static inline void sample_request(size_t class, size_t bytes)
{
    __atomic_fetch_add(&samples.requests[class], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&samples.bytes[class], bytes, __ATOMIC_RELAXED);
}

#define COUNTED(name) __atomic_load_n(&counters.name, __ATOMIC_RELAXED)

#endif
