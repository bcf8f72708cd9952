/*
 * The table of size classes. See size_class.h.
 *
 * Slabs have at most 512 objects, which is what the bitmap of a descriptor of 128 bytes holds, and
 * mostly 64 to 256; smaller slabs empty sooner and leave less half-used, larger ones are made less
 * often. A magazine of the largest size holds about 16 KiB of objects, but never fewer than 4.
 */
#include "slab/size_class.h"

/* The fine classes, with one rule for their slabs and magazines. */
#define FINE(bytes)                                                      \
    {                                                                    \
        (bytes), (bytes) <= 16 ? 2 : (bytes) <= 256 ? 4 : 8,             \
            (bytes) <= 128 ? 4 : (bytes) <= 256 ? 3 : 2                  \
    }
#define FINE4(bytes) FINE(bytes), FINE((bytes) + 16), FINE((bytes) + 32), FINE((bytes) + 48)
#define FINE16(bytes) FINE4(bytes), FINE4((bytes) + 64), FINE4((bytes) + 128), FINE4((bytes) + 192)
#define WIDE(bytes)                           \
    {                                         \
        (bytes), 16, (bytes) <= 2048 ? 1 : 0  \
    }

const struct size_class size_classes[CLASS_COUNT] = {
    {0, 0, 0},   FINE16(16),  FINE16(272), FINE16(528), FINE16(784), WIDE(1152),  WIDE(1280),
    WIDE(1408),  WIDE(1536),  WIDE(1664),  WIDE(1792),  WIDE(1920),  WIDE(2048),  WIDE(2304),
    WIDE(2560),  WIDE(2816),  WIDE(3072),  WIDE(3328),  WIDE(3584),  WIDE(3840),  WIDE(4096),
    WIDE(4608),  WIDE(4992),  WIDE(5376),  WIDE(5888),  WIDE(6528),  WIDE(7168),  WIDE(8192),
    WIDE(9344),  WIDE(10880), WIDE(13056), WIDE(16384),
};

uint8_t class_of_wide[SMALL_MOST / 128];

void size_classes_init(void)
{
    for (unsigned class = 1; class < CLASS_COUNT; class++)
        page_map.reciprocal[class] =
            (uint32_t)((((uint64_t)1 << 32) + class_bytes(class) - 1) / class_bytes(class));
    unsigned class = 1;
    for (size_t i = 0; i < sizeof(class_of_wide); i++) {
        while (class_bytes(class) < (i + 1) * 128)
            class++;
        class_of_wide[i] = (uint8_t)class;
    }
}
