/*
 * meter.h - how many bytes of blocks a workload has live, kept where whoever started it can read
 * it.
 *
 * `snug bench` hands a file to the workload by the variable BENCH_METER and reads it, together with
 * the resident memory of the process, every few milliseconds. Without the variable the counts are
 * kept all the same, for nobody. A thread has a slot of its own, one cache line, and stores its sum
 * into it: no atomic operation, no line that two threads write. A slot may be negative, if the
 * thread frees what others took; the sum over all slots is meant. Builtins rather than C11's
 * atomics, as there are workloads in C++, too; relaxed, as nothing else is read with the counts.
 */
#ifndef SNUG_BENCH_METER_H
#define SNUG_BENCH_METER_H

#include <stdint.h>

enum { METER_SLOTS = 255 };

struct meter_slot {
    int64_t live __attribute__((aligned(64)));
};

/* The layout is known to tool/src/bench/meter.rs. */
struct meter {
    uint64_t own __attribute__((aligned(64))); /* bytes of the workload's own tables */
    struct meter_slot slots[METER_SLOTS];
};

extern struct meter *meter; /* never NULL; set before main */

/* Says what a thread has live, less what it freed of others. Slots from 0 on; one thread each. */
static inline void meter_set(unsigned slot, int64_t live)
{
    __atomic_store_n(&meter->slots[slot % METER_SLOTS].live, live, __ATOMIC_RELAXED);
}

/* The same by differences, for more threads than there are slots; an atomic operation. */
static inline void meter_add(unsigned slot, int64_t difference)
{
    __atomic_fetch_add(&meter->slots[slot % METER_SLOTS].live, difference, __ATOMIC_RELAXED);
}

/* Memory of the workload itself, which is no block and does not count as resident. */
static inline void meter_own(uint64_t bytes)
{
    __atomic_fetch_add(&meter->own, bytes, __ATOMIC_RELAXED);
}

#endif
