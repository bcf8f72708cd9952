/*
 * Size classes of small objects.
 *
 * Class 0 means "not small". Classes 1 to 64 are the multiples of 16 up to 1 KiB, so that the class
 * of a size is a shift. Above, up to SMALL_MOST, the classes divide 64 KiB with little rest, in
 * steps of about an eighth.
 *
 * The grid: an object of a class always lies at a multiple of the class's size, counted from the
 * 64 KiB boundary below it, whatever slab it is in. So from the address and the class alone
 * follows whether a pointer is one to the beginning of an object, with the low 16 bits of the
 * address and one multiplication, and no look at a slab.
 *
 * The multiplication: let r = ceil(2^32 / size) and n the offset in the 64 KiB. If n = k * size,
 * n * r mod 2^32 = k * (size * r - 2^32) < k * size < 2^16; otherwise it is at least r - 2^16 and
 * r >= 2^18 since size <= 2^14. The high half of n * r is then n / size.
 * Source: D. Lemire et al., "Faster remainder by direct computation" (2019).
 */
#ifndef SNUG_SLAB_SIZE_CLASS_H
#define SNUG_SLAB_SIZE_CLASS_H

#include "base/common.h"
#include "meta/page_map.h"

#define GRID_BYTES (64 * KIB)

enum {
    CLASS_FINE = 64,           /* the last class in steps of 16 bytes */
    CLASS_FINE_BYTES = 1024,   /* its size */
    CLASS_COUNT = 64 + 1 + 27, /* all of them, class 0 included */
    SMALL_MOST = 16384         /* the size of the last */
};

struct size_class {
    uint32_t bytes;       /* of an object */
    uint16_t slab_pages;  /* of a slab; a power of two, a slab is aligned to it */
    uint16_t magazine_log; /* a magazine of the class has at most 64 << magazine_log bytes */
};

extern const struct size_class size_classes[CLASS_COUNT];

/* For sizes above CLASS_FINE_BYTES: index (size - 1) / 128. */
extern uint8_t class_of_wide[SMALL_MOST / 128];

/* Fills class_of_wide and the page map's reciprocals. Call once, before the first slab is made. */
void size_classes_init(void);

/* The class for a request of `bytes`, which must be at most SMALL_MOST; 0 for 0 bytes. */
static ALWAYS_INLINE size_t class_of_size(size_t bytes)
{
    if (LIKELY(bytes <= CLASS_FINE_BYTES))
        return (bytes + MIN_ALIGN - 1) / MIN_ALIGN;
    return class_of_wide[(bytes - 1) / 128];
}

static inline size_t class_bytes(size_t class)
{
    return size_classes[class].bytes;
}

/* Whether an object of `class` can begin at `address`. */
static ALWAYS_INLINE bool on_grid(uintptr_t address, size_t class)
{
    return (uint32_t)(uint16_t)address * page_map.reciprocal[class] < GRID_BYTES;
}

/* The number of the object at or around `address` in its 64 KiB. */
static inline unsigned grid_index(uintptr_t address, size_t class)
{
    return (unsigned)(((uint64_t)(uint16_t)address * page_map.reciprocal[class]) >> 32);
}

#endif
