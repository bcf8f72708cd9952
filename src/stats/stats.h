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

#define COUNTED(name) __atomic_load_n(&counters.name, __ATOMIC_RELAXED)

#endif
