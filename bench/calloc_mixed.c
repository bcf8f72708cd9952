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
#include "slots.h"

static int64_t replace(struct slot *slot, uint32_t size, uint32_t low, int drawn)
{
    (void)low, (void)drawn;
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
    return run_on_slots(argc, argv, 400, replace, replace);
}
