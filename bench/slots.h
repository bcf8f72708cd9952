/*
 * slots.h - what workloads share that replace blocks in random slots: their arguments, and the
 * loop, in which slot and size are drawn within the time, as that costs the same under every
 * allocator.
 *
 *   PROGRAM LOW HIGH [OPERATIONS [SLOTS]]
 */
#ifndef SNUG_BENCH_SLOTS_H
#define SNUG_BENCH_SLOTS_H

#include <stdbool.h>

#include "workload.h"

enum { SLOTS_MOST = 1000000 };

struct slot {
    unsigned char *block;
    uint32_t size, resized;
};

/* What an operation does to a slot: `size` is the next size, `drawn` a random bit. Returns by how
 * many bytes more are live. */
typedef int64_t slot_operation(struct slot *slot, uint32_t size, uint32_t low, int drawn);

/* `fill` is called for each slot first, with a size that is drawn. The figures are printed. */
static inline __attribute__((always_inline)) int
run_on_slots(int argc, char **argv, long slots_default, slot_operation *fill, slot_operation *turn)
{
    if (argc < 3 || argc > 5) {
        fprintf(stderr, "usage: %s LOW HIGH [OPERATIONS [SLOTS]]\n", argv[0]);
        return 2;
    }
    uint32_t low = (uint32_t)number_argument(argv[1], 1, 1 << 30);
    uint32_t high = (uint32_t)number_argument(argv[2], low, 1 << 30);
    long operations = argc > 3 ? number_argument(argv[3], 1, 1000000000000) : 1000000;
    uint32_t count = (uint32_t)(argc > 4 ? number_argument(argv[4], 1, SLOTS_MOST) : slots_default);
    uint64_t state = 0x9e3779b97f4a7c15u;
    int64_t live = 0;
    struct slot *slots = memory_of_our_own(count * sizeof *slots);
    for (uint32_t i = 0; i < count; i++)
        live += fill(&slots[i], random_between(&state, low, high), low, 0);

    uint64_t start = now_ns();
    for (long i = 0; i < operations; i++) {
        uint64_t drawn = random_next(&state) >> 8;
        uint32_t size = low + (uint32_t)(drawn >> 32) % (high - low + 1);
        live += turn(&slots[(uint32_t)drawn % count], size, low, (int)(drawn >> 31 & 1));
        meter_set(0, live);
    }
    uint64_t end = now_ns();
    print_figures((uint64_t)operations, (double)(end - start) / (double)operations);
    return 0;
}

#endif
