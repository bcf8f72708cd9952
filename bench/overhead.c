/*
 * overhead.c - random sizes: the time of a pair, and the memory at the peak beside what was asked
 * for.
 *
 * usage: overhead LOW HIGH LIVE [OPERATIONS]       1,000,000 unless given
 *
 * LIVE blocks of LOW to HIGH bytes are live; an operation replaces one of them, drawn at random, by
 * one of another size: a pair of free and malloc. Blocks are written whole, which is part of the
 * time. One line is printed:
 *
 *   low=N high=N live=N requested_bytes=N resident_bytes=N overhead_ratio=F ops=N ns_per_op=F
 *   peak_rss_kib=N
 *
 * requested_bytes is the most that was live at a time, resident_bytes the peak of the process
 * (VmHWM) less the tables of this program; their ratio has in it what every process needs, some
 * 1.5 MB, the same for all allocators.
 */
#include "workload.h"

enum { MOST_LIVE = 10000000 };

static struct slot {
    void *block;
    size_t size;
} *slots;
static size_t live_bytes;
static size_t most_bytes;

static void take(struct slot *slot, size_t size)
{
    slot->size = size;
    slot->block = malloc(size);
    if (slot->block == NULL)
        die("malloc");
    memset(slot->block, 1, size);
    live_bytes += size;
    if (live_bytes > most_bytes)
        most_bytes = live_bytes;
    meter_set(0, (int64_t)live_bytes);
}

static void give(struct slot *slot)
{
    free(slot->block);
    live_bytes -= slot->size;
}

int main(int argc, char **argv)
{
    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: %s LOW HIGH LIVE [OPERATIONS]\n", argv[0]);
        return 2;
    }
    uint32_t low = (uint32_t)number_argument(argv[1], 1, 1 << 30);
    uint32_t high = (uint32_t)number_argument(argv[2], low, 1 << 30);
    uint32_t live = (uint32_t)number_argument(argv[3], 1, MOST_LIVE);
    long operations = argc == 5 ? number_argument(argv[4], 1, 1000000000000) : 1000000;
    uint64_t state = 0x9e3779b97f4a7c15u;
    slots = memory_of_our_own(live * sizeof *slots);
    for (uint32_t i = 0; i < live; i++)
        take(&slots[i], random_between(&state, low, high));

    uint64_t start = now_ns();
    for (long i = 0; i < operations; i++) {
        struct slot *slot = &slots[random_between(&state, 0, live - 1)];
        give(slot);
        take(slot, random_between(&state, low, high));
    }
    uint64_t end = now_ns();

    size_t resident = (size_t)peak_rss_kib() * 1024 - live * sizeof *slots;
    printf("low=%u high=%u live=%u requested_bytes=%zu resident_bytes=%zu overhead_ratio=%.4f ",
           low, high, live, most_bytes, resident, (double)resident / (double)most_bytes);
    print_figures((uint64_t)operations, (double)(end - start) / (double)operations);
    return 0;
}
