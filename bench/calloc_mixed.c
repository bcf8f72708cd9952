/*
 * calloc_mixed.c - a working set of cleared blocks of random sizes.
 *
 * usage: calloc_mixed LOW HIGH [OPERATIONS [SLOTS]]       1,000,000 and 400 unless given
 *
 * It imitates compilers and libraries that take every structure from calloc. An operation draws one
 * of SLOTS slots, frees what is in it, and puts a block of LOW to HIGH bytes from calloc there. The
 * first, the middle and the last byte are looked at, and then all are written: what is freed is
 * never clear, so that an allocator must clear, or know memory that the system has just given.
 */
#include "workload.h"

enum { MOST_SLOTS = 1000000 };

static struct slot {
    unsigned char *block;
    uint32_t size;
} *slots;

static int64_t replace(struct slot *slot, uint32_t size)
{
    int64_t difference = (int64_t)size - slot->size;
    free(slot->block);
    slot->block = calloc(1, size);
    if (slot->block == NULL)
        die("calloc");
    if ((slot->block[0] | slot->block[size / 2] | slot->block[size - 1]) != 0) {
        fprintf(stderr, "calloc_mixed: %u bytes at %p are not clear\n", size, (void *)slot->block);
        exit(1);
    }
    memset(slot->block, 'x', size);
    slot->size = size;
    return difference;
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 5) {
        fprintf(stderr, "usage: %s LOW HIGH [OPERATIONS [SLOTS]]\n", argv[0]);
        return 2;
    }
    uint32_t low = (uint32_t)number_argument(argv[1], 1, 1 << 30);
    uint32_t high = (uint32_t)number_argument(argv[2], low, 1 << 30);
    long operations = argc > 3 ? number_argument(argv[3], 1, 1000000000000) : 1000000;
    uint32_t count = argc > 4 ? (uint32_t)number_argument(argv[4], 1, MOST_SLOTS) : 400;
    uint64_t state = 0x9e3779b97f4a7c15u;
    int64_t live = 0;
    slots = memory_of_our_own(count * sizeof *slots);
    for (uint32_t i = 0; i < count; i++)
        live += replace(&slots[i], random_between(&state, low, high));

    uint64_t start = now_ns();
    for (long i = 0; i < operations; i++) {
        uint64_t drawn = random_next(&state) >> 8;
        struct slot *slot = &slots[(uint32_t)drawn % count];
        live += replace(slot, low + (uint32_t)(drawn >> 32) % (high - low + 1));
        meter_set(0, live);
    }
    uint64_t end = now_ns();
    print_figures((uint64_t)operations, (double)(end - start) / (double)operations);
    return 0;
}
