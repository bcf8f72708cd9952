/*
 * realloc_small.c - small blocks that change their size.
 *
 * usage: realloc_small LOW HIGH [OPERATIONS [SLOTS]]       1,000,000 and 1,000 unless given
 *
 * It imitates interpreters, whose strings and lists grow and shrink by a few bytes at a time. An
 * operation draws one of SLOTS slots and resizes what is in it to LOW to HIGH bytes: a realloc,
 * which often can leave the block where it is if the range is narrow. The first byte is looked at,
 * as it must have stayed, and the first and the last are written. As often as not a block that has
 * been resized eight times is freed, and a new one begins with LOW bytes.
 */
#include "workload.h"

enum { MOST_SLOTS = 1000000, RESIZES = 8 };

static struct slot {
    unsigned char *block;
    uint32_t size, resized;
} *slots;

static int64_t resize(struct slot *slot, uint32_t size)
{
    int64_t difference = (int64_t)size - slot->size;
    unsigned char *block = realloc(slot->block, size);
    if (block == NULL)
        die("realloc");
    if (slot->block != NULL && block[0] != (unsigned char)slot->size) {
        fprintf(stderr, "realloc_small: what was at %p has changed\n", (void *)block);
        exit(1);
    }
    block[size - 1] = 1;
    block[0] = (unsigned char)size;
    *slot = (struct slot){block, size, slot->resized + 1};
    return difference;
}

static int64_t begin_anew(struct slot *slot, uint32_t size)
{
    int64_t freed = slot->size;
    free(slot->block);
    *slot = (struct slot){NULL, 0, 0};
    return resize(slot, size) - freed;
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
    uint32_t count = argc > 4 ? (uint32_t)number_argument(argv[4], 1, MOST_SLOTS) : 1000;
    uint64_t state = 0x9e3779b97f4a7c15u;
    int64_t live = 0;
    slots = memory_of_our_own(count * sizeof *slots);
    for (uint32_t i = 0; i < count; i++)
        live += begin_anew(&slots[i], low);

    uint64_t start = now_ns();
    for (long i = 0; i < operations; i++) {
        uint64_t drawn = random_next(&state) >> 8;
        struct slot *slot = &slots[(uint32_t)drawn % count];
        uint32_t size = low + (uint32_t)(drawn >> 32) % (high - low + 1);
        int ends = slot->resized >= RESIZES && (drawn >> 31 & 1) != 0;
        live += ends ? begin_anew(slot, low) : resize(slot, size);
        meter_set(0, live);
    }
    uint64_t end = now_ns();
    print_figures((uint64_t)operations, (double)(end - start) / (double)operations);
    return 0;
}
