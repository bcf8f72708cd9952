/*
 * sparse.c - blocks that are hardly touched.
 *
 * usage: sparse MANNER OPERATIONS LIVE LOW_KIB HIGH_KIB
 *
 * It imitates programs that take room for more than they mostly need: buffers for the longest line,
 * tables that stay nearly empty. Blocks of LOW_KIB to HIGH_KIB KiB have one byte written, and LIVE
 * of them are live. MANNER is one of
 *
 *   fill      LIVE blocks are taken, then all freed, in order, until OPERATIONS were taken
 *   ring      each new block replaces the oldest
 *   calloc    a ring of blocks from calloc that nothing is written to
 *
 * What is resident beyond a page for each block, and any time beyond some microseconds for each, is
 * the allocator's doing.
 */
#include "workload.h"

enum { MOST_LIVE = 100000, KIB_SHIFT = 10 };

static struct slot {
    unsigned char *block;
    size_t size;
} slots[MOST_LIVE];

static uint64_t state = 0x9e3779b97f4a7c15u;
static int64_t live;

static void release(struct slot *slot)
{
    free(slot->block);
    live -= (int64_t)slot->size;
    *slot = (struct slot){NULL, 0};
    meter_set(0, live);
}

static void take(struct slot *slot, uint32_t low, uint32_t high, int cleared)
{
    slot->size = (size_t)random_between(&state, low, high) << KIB_SHIFT;
    slot->block = cleared ? calloc(1, slot->size) : malloc(slot->size);
    if (slot->block == NULL)
        die("malloc");
    if (!cleared)
        slot->block[0] = 1;
    live += (int64_t)slot->size;
    meter_set(0, live);
}

int main(int argc, char **argv)
{
    const char *manner = argc == 6 ? argv[1] : "";
    int fills = strcmp(manner, "fill") == 0, cleared = strcmp(manner, "calloc") == 0;
    if (!fills && !cleared && strcmp(manner, "ring") != 0) {
        fprintf(stderr, "usage: %s fill|ring|calloc OPERATIONS LIVE LOW_KIB HIGH_KIB\n", argv[0]);
        return 2;
    }
    long operations = number_argument(argv[2], 1, 1000000000);
    long count = number_argument(argv[3], 1, MOST_LIVE);
    uint32_t low = (uint32_t)number_argument(argv[4], 1, 4 << 20);
    uint32_t high = (uint32_t)number_argument(argv[5], low, 4 << 20);

    uint64_t start = now_ns();
    for (long i = 0; i < operations; i++) {
        struct slot *slot = &slots[i % count];
        if (fills && i % count == 0)
            for (long j = 0; j < count; j++)
                release(&slots[j]);
        release(slot);
        take(slot, low, high, cleared);
    }
    uint64_t end = now_ns();
    print_figures((uint64_t)operations, (double)(end - start) / (double)operations);
    return 0;
}
