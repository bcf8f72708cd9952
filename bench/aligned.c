/*
 * aligned.c - blocks with an alignment of their own.
 *
 * usage: aligned [MOST_ALIGNMENT [OPERATIONS [LIVE]]]       4,096, 1,000,000 and 1,000 unless given
 *
 * It imitates programs that work with vector units, direct input and output, or cache lines: an
 * operation replaces one of LIVE blocks, drawn at random, by one of 16 to 4,096 bytes with an
 * alignment of 32, 64, ... up to MOST_ALIGNMENT, each as likely: a free and a posix_memalign. The
 * alignment is checked, and the first and last byte are written.
 */
#include "workload.h"

enum { LEAST_ALIGNMENT = 32, MOST_LIVE = 1000000, SMALLEST = 16, LARGEST = 4096 };

static struct slot {
    void *block;
    uint32_t size;
} *slots;

static int64_t replace(struct slot *slot, size_t alignment, uint32_t size)
{
    int64_t difference = (int64_t)size - slot->size;
    free(slot->block);
    if (posix_memalign(&slot->block, alignment, size) != 0)
        die("posix_memalign");
    if ((uintptr_t)slot->block % alignment != 0) {
        fprintf(stderr, "aligned: %p is not aligned to %zu\n", slot->block, alignment);
        exit(1);
    }
    unsigned char *bytes = slot->block;
    bytes[0] = bytes[size - 1] = 1;
    slot->size = size;
    return difference;
}

int main(int argc, char **argv)
{
    if (argc > 4) {
        fprintf(stderr, "usage: %s [MOST_ALIGNMENT [OPERATIONS [LIVE]]]\n", argv[0]);
        return 2;
    }
    long most = argc > 1 ? number_argument(argv[1], LEAST_ALIGNMENT, 1 << 20) : 4096;
    long operations = argc > 2 ? number_argument(argv[2], 1, 1000000000000) : 1000000;
    uint32_t count = argc > 3 ? (uint32_t)number_argument(argv[3], 1, MOST_LIVE) : 1000;
    uint32_t choices = 0;
    while ((long)LEAST_ALIGNMENT << (choices + 1) <= most)
        choices++;
    uint64_t state = 0x9e3779b97f4a7c15u;
    int64_t live = 0;
    slots = memory_of_our_own(count * sizeof *slots);

    uint64_t start = now_ns();
    for (long i = 0; i < operations; i++) {
        uint64_t drawn = random_next(&state) >> 8;
        size_t alignment = (size_t)LEAST_ALIGNMENT << random_between(&state, 0, choices);
        uint32_t size = SMALLEST + (uint32_t)(drawn >> 32) % (LARGEST - SMALLEST + 1);
        live += replace(&slots[(uint32_t)drawn % count], alignment, size);
        meter_set(0, live);
    }
    uint64_t end = now_ns();
    print_figures((uint64_t)operations, (double)(end - start) / (double)operations);
    return 0;
}
