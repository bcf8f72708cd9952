/*
 * The table of size classes. See size_class.h.
 *
 * Slabs have at most 512 objects, which is what the bitmap of a descriptor of 128 bytes holds, and
 * mostly 64 to 256; smaller slabs empty sooner and leave less half-used, larger ones are made less
 * often.
 */
#include "slab/size_class.h"

#define CLASS(bytes) \
    {(bytes), \
     (bytes) <= 16    ? 2 \
     : (bytes) <= 256 ? 4 \
                      : 8, \
     (bytes) <= 128   ? 4 \
     : (bytes) <= 256 ? 3 \
                      : 2}
#define CLASS4(bytes) CLASS(bytes), CLASS((bytes) + 16), CLASS((bytes) + 32), CLASS((bytes) + 48)
#define CLASS16(bytes) \
    CLASS4(bytes), CLASS4((bytes) + 64), CLASS4((bytes) + 128), CLASS4((bytes) + 192)

READ_BY_ALL const struct size_class size_classes[CLASS_COUNT] = {
    {0, 0, 0}, CLASS16(16), CLASS16(272), CLASS16(528), CLASS16(784),
};

void size_classes_init(void)
{
    for (size_t class = 1; class < CLASS_COUNT; class++)
        page_map.reciprocal[class] =
            (uint32_t)((((uint64_t)1 << 32) + class_bytes(class) - 1) / class_bytes(class));
    page_map.small_sizes = SMALL_MOST + 1;
}
