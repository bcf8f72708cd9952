/*
 * The table of hardened classes. See hard_class.h.
 */
#include "hardened/hard_class.h"

BULKY struct hard_class hard_classes[HARD_CLASSES];

/* Bytes: a thread's magazine of a class has about so many, of at most MAGAZINE_MOST objects. */
enum { MAGAZINE_BYTES = 8192 };

/* Objects: such a magazine fills two kilobytes of metadata. */
enum { MAGAZINE_MOST = 128 };

/* Few pages, so that objects in random order do not touch many at once; and enough that what is
 * left over at the end of a slab is little. */
static size_t slab_bytes_of(size_t bytes)
{
    if (bytes <= 256)
        return PAGE_BYTES;
    if (bytes <= 512)
        return 2 * PAGE_BYTES;
    if (bytes <= KIB)
        return 4 * PAGE_BYTES;
    if (bytes <= 4 * KIB)
        return 8 * PAGE_BYTES;
    return bytes <= 16 * KIB ? 16 * PAGE_BYTES : bytes;
}

void hard_classes_init(void)
{
    for (size_t class = 1; class < HARD_CLASSES; class++) {
        struct hard_class *row = &hard_classes[class];
        size_t bytes = hard_class_bytes(class), slab = slab_bytes_of(bytes);
        row->bytes = (uint32_t)bytes;
        row->slab_bytes = (uint32_t)slab;
        row->per_slab = (uint32_t)(slab / bytes);
        if (class < HARD_KEPT)
            row->magazine = (uint32_t)size_min(MAGAZINE_MOST, MAGAZINE_BYTES / bytes);
        row->slab_rest = (uint32_t)slab - 1;
        row->slab_shift = bit_highest(slab);
        row->by_rest = bytes <= HARD_FAST_MOST ? (uint32_t)((UINT32_MAX + bytes) / bytes) : 0;
        row->by_bytes = (((uint64_t)1 << 44) + bytes - 1) / bytes;
        row->by_slab = (((uint64_t)1 << 44) + slab - 1) / slab;
    }
}

size_t hard_class_of_aligned(size_t alignment, size_t bytes)
{
    if (alignment > PAGE_BYTES || bytes > HARD_MOST)
        return 0;
    for (size_t class = hard_class_of(bytes); class < HARD_CLASSES; class++)
        if (hard_classes[class].bytes % alignment == 0)
            return class;
    return 0;
}
