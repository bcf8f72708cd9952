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
#include "slots.h"

enum { RESIZES = 8 };

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

static int64_t begin_anew(struct slot *slot, uint32_t size, uint32_t low, int drawn)
{
    (void)size, (void)drawn;
    int64_t freed = slot->size;
    free(slot->block);
    *slot = (struct slot){NULL, 0, 0};
    return resize(slot, low) - freed;
}

static int64_t change(struct slot *slot, uint32_t size, uint32_t low, int drawn)
{
    bool ends = slot->resized >= RESIZES && drawn != 0;
    return ends ? begin_anew(slot, size, low, drawn) : resize(slot, size);
}

int main(int argc, char **argv)
{
    return run_on_slots(argc, argv, 1000, begin_anew, change);
}
