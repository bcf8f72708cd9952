/*
 * Counters: only written here, printed by the report layer. One global word each, added to by
 * relaxed atomics; that is cheap enough because nothing on the fast path counts. A refill counts
 * once for up to a hundred objects. While the process has one thread the additions are plain ones:
 * an atomic one waits for all stores before it, and a slow path has up to eight of them.
 */
#ifndef SNUG_STATS_STATS_H
#define SNUG_STATS_STATS_H

#include "base/peek.h"
#include "platform/lock.h"

#define COUNTER(name, text) uint64_t name;
struct counters {
#include "stats/counters.def"
};
#undef COUNTER

extern struct counters counters;

static inline void count_add(uint64_t *counter, uint64_t amount)
{
    if (lock_is_alone())
        GAUGE_ADD(*counter, amount);
    else /* relaxed: a total that nothing is decided by */
        __atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
}

#define COUNT(name, amount) count_add(&counters.name, (uint64_t)(amount))

/* Two at once, with one question whether the process has one thread. */
static inline void count_both(uint64_t *first, uint64_t amount, uint64_t *second, uint64_t more)
{
    if (lock_is_alone()) {
        GAUGE_ADD(*first, amount);
        GAUGE_ADD(*second, more);
    } else { /* relaxed: as above */
        __atomic_fetch_add(first, amount, __ATOMIC_RELAXED);
        __atomic_fetch_add(second, more, __ATOMIC_RELAXED);
    }
}

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
    count_both(&samples.requests[class], 1, &samples.bytes[class], bytes);
}

#define COUNTED(name) __atomic_load_n(&counters.name, __ATOMIC_RELAXED)

#endif
