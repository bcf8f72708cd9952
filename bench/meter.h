/*
 * meter.h - how many bytes of blocks a workload has live, kept where whoever started it can read it.
 *
 * `snug bench` hands a file to the workload by the variable BENCH_METER and reads it, together with
 * the resident memory of the process, every few milliseconds. Without the variable the counts are
 * kept all the same, for nobody. A thread has a slot of its own, one cache line, and stores its sum
 * into it: no atomic operation, no line that two threads write. A slot may be negative, if the
 * thread frees what others took; the sum over all slots is meant.
 */
#ifndef SNUG_BENCH_METER_H
#define SNUG_BENCH_METER_H

#include <stdatomic.h>
#include <stdint.h>

enum { METER_SLOTS = 255 };

struct meter_slot {
    _Alignas(64) _Atomic int64_t live;
};

/* The layout is known to tool/src/bench/meter.rs. */
struct meter {
    _Alignas(64) _Atomic uint64_t own; /* bytes of the workload's own tables */
    struct meter_slot slots[METER_SLOTS];
};

extern struct meter *meter; /* never NULL; set before main */

/* Says what a thread has live, less what it freed of others. Slots from 0 on; one thread each. */
static inline void meter_set(unsigned slot, int64_t live)
{
    atomic_store_explicit(&meter->slots[slot % METER_SLOTS].live, live, memory_order_relaxed);
}

/* The same by differences, for more threads than there are slots; an atomic operation. */
static inline void meter_add(unsigned slot, int64_t difference)
{
    atomic_fetch_add_explicit(&meter->slots[slot % METER_SLOTS].live, difference,
                              memory_order_relaxed);
}

/* Memory of the workload itself, which is no block and does not count as resident. */
static inline void meter_own(uint64_t bytes)
{
    atomic_fetch_add_explicit(&meter->own, bytes, memory_order_relaxed);
}

#endif
