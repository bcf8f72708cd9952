/*
 * random_mixed.c - a small working set of blocks of random sizes.
 *
 * usage: random_mixed LOW HIGH [OPERATIONS [SLOTS]]       1,000,000 and 400 unless given
 *
 * It imitates a program at work on a few hundred objects. An operation draws one of SLOTS slots,
 * frees what is in it, and puts a block of LOW to HIGH bytes there: a free and a malloc. The first
 * and the last byte of each block are written.
 */
#include "slots.h"

static int64_t replace(struct slot *slot, uint32_t size, uint32_t low, int drawn)
{
    (void)low, (void)drawn;
    int64_t difference = (int64_t)size - slot->size;
    free(slot->block);
    slot->block = malloc(size);
    if (slot->block == NULL)
        die("malloc");
    slot->block[0] = slot->block[size - 1] = (unsigned char)size;
    slot->size = size;
    return difference;
}

int main(int argc, char **argv)
{
    return run_on_slots(argc, argv, 400, replace, replace);
}
