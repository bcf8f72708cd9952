/*
 * meter.h - how many bytes of blocks a workload has live, kept where whoever started it can read
 * it.
 *
 * `snug bench` hands a file to the workload by the variable BENCH_METER and reads it, together with
 * the resident memory of the process, every few milliseconds. Without the variable the counts are
 * kept all the same, for nobody. A thread has a slot of its own, one cache line, and stores its sum
 * into it: no atomic operation, no line that two threads write. Threads from METER_SHARED on have
 * the last slot in common, to which each adds what changed. A slot may be negative, if the
 * thread frees what others took; the sum over all slots is meant. Builtins rather than C11's
 * atomics, as there are workloads in C++, too; relaxed, as nothing else is read with the counts.
 */
#ifndef SNUG_BENCH_METER_H
#define SNUG_BENCH_METER_H

#include <stdint.h>

enum { METER_SLOTS = 255, METER_SHARED = METER_SLOTS - 1, METER_THREADS = 1024 };

struct meter_slot {
    int64_t live __attribute__((aligned(64)));
};

/* The layout is known to tool/src/bench/meter.rs. */
struct meter {
    uint64_t own __attribute__((aligned(64))); /* bytes of the workload's own tables */
    struct meter_slot slots[METER_SLOTS];
};

extern struct meter *meter; /* never NULL; set before main */

/* What each of the threads that share a slot has said last. */
extern int64_t meter_said[METER_THREADS];

/* Says what a thread has live, less what it freed of others. Threads count from 0 on, to less than
 * METER_THREADS; of one number there is one at a time. */
static inline void meter_set(unsigned thread, int64_t live)
{
    if (thread < METER_SHARED) {
        __atomic_store_n(&meter->slots[thread].live, live, __ATOMIC_RELAXED);
        return;
    }
    __atomic_fetch_add(&meter->slots[METER_SHARED].live, live - meter_said[thread],
                       __ATOMIC_RELAXED);
    meter_said[thread] = live;
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
