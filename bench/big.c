/*
 * big.c - blocks of 1 to 64 MiB.
 *
 * usage: big [OPERATIONS [LIVE [LOW_MIB HIGH_MIB]]]       200, 4, 1 and 64 unless given
 *
 * It imitates programs that hold pictures, matrices, files. An operation replaces one of LIVE
 * blocks, drawn at random, by one of LOW_MIB to HIGH_MIB MiB and writes to each of its pages: most
 * of the time is the kernel's, for pages that an allocator has given back and takes anew.
 */
#include "workload.h"

enum { MOST_LIVE = 1000, PAGE = 4096, MIB_SHIFT = 20 };

static struct slot {
    unsigned char *block;
    size_t size;
} slots[MOST_LIVE];

int main(int argc, char **argv)
{
    if (argc > 5 || argc == 4) {
        fprintf(stderr, "usage: %s [OPERATIONS [LIVE [LOW_MIB HIGH_MIB]]]\n", argv[0]);
        return 2;
    }
    long operations = argc > 1 ? number_argument(argv[1], 1, 1000000000) : 200;
    uint32_t count = argc > 2 ? (uint32_t)number_argument(argv[2], 1, MOST_LIVE) : 4;
    uint32_t low = argc > 4 ? (uint32_t)number_argument(argv[3], 1, 4096) : 1;
    uint32_t high = argc > 4 ? (uint32_t)number_argument(argv[4], low, 4096) : 64;
    uint64_t state = 0x9e3779b97f4a7c15u;
    int64_t live = 0;

    uint64_t start = now_ns();
    for (long i = 0; i < operations; i++) {
        struct slot *slot = &slots[random_between(&state, 0, count - 1)];
        free(slot->block);
        live -= (int64_t)slot->size;
        meter_set(0, live);
        slot->size = (size_t)random_between(&state, low << 10, high << 10) << (MIB_SHIFT - 10);
        slot->block = malloc(slot->size);
        if (slot->block == NULL)
            die("malloc");
        for (size_t at = 0; at < slot->size; at += PAGE)
            slot->block[at] = 1;
        live += (int64_t)slot->size;
        meter_set(0, live);
    }
    uint64_t end = now_ns();
    print_figures((uint64_t)operations, (double)(end - start) / (double)operations);
    return 0;
}
