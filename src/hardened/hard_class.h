/*
 * The sizes of hardened blocks, up to HARD_MOST: every 16 bytes up to 1 KiB, eight to each doubling
 * up to 16 KiB, then whole pages. Each size is a class with zones of its own (zone.h).
 *
 * A block has at least one byte more than was asked for: its canary. So a request of n bytes goes
 * to the class of n + 1.
 */
#ifndef SNUG_HARDENED_HARD_CLASS_H
#define SNUG_HARDENED_HARD_CLASS_H

#include "base/bits.h"

/* Layout: classes up to 1 KiB, then to 16 KiB, then to HARD_MOST, and class 0 of large blocks. */
enum {
    HARD_FINE = 64,
    HARD_STEPS = 32,
    HARD_PAGED = 28,
    HARD_CLASSES = 1 + HARD_FINE + HARD_STEPS + HARD_PAGED
};

/* Layout: the classes up to 4 KiB are below. Of those a thread has magazines; what is longer goes
 * to its bin, where a lock is little beside clearing it. */
enum { HARD_KEPT = 1 + HARD_FINE + HARD_STEPS / 2 };

/* Bytes: the largest object of a class; above, each block has a mapping of its own. */
#define HARD_MOST (128 * KIB)

/* Layout: steps of a doubling between 1 and 16 KiB, as a power of two. */
enum { HARD_STEP_LOG = 3 };

struct hard_class {
    uint32_t bytes;      /* of an object */
    uint32_t slab_bytes; /* whole pages */
    uint32_t per_slab;   /* objects */
    uint32_t magazine;   /* objects that a thread's magazine has room for; 0: it has none */
    uint32_t slab_rest;  /* slab_bytes - 1 */
    uint32_t slab_shift; /* of those up to HARD_FAST_MOST: slab_bytes == 1 << slab_shift */
    uint32_t by_rest;    /* 2^32 / bytes rounded up; 0 above HARD_FAST_MOST: see zone_place_fast */
    uint64_t by_bytes;   /* 2^44 / bytes rounded up, and the same of a slab: see hard_divide */
    uint64_t by_slab;
};

extern INTERNAL struct hard_class hard_classes[HARD_CLASSES];

/* Bytes: an object of at most so many leaves no more behind a block than a short canary (canary.h),
 * unless the block is aligned. Their slabs are powers of two. */
#define HARD_FAST_MOST KIB

/* Fills the table. */
void hard_classes_init(void);

/* offset / bytes by one multiplication: the product is below 2^64 for offsets below 2^23 and sizes
 * of at least 16, and exact since offset * (r * bytes - 2^44) < 2^23 * 2^17 < 2^44. */
static ALWAYS_INLINE uint32_t hard_divide(size_t offset, uint64_t reciprocal)
{
    return (uint32_t)((offset * reciprocal) >> 44);
}

/* Bytes of an object of a class, computed as for the table: for readers of another process. */
static inline size_t hard_class_bytes(size_t class)
{
    if (class <= HARD_FINE)
        return class * MIN_ALIGN;
    if (class > HARD_FINE + HARD_STEPS)
        return (class - HARD_FINE - HARD_STEPS + 4) * PAGE_BYTES;
    size_t number = class - HARD_FINE - 1, step = number % (1 << HARD_STEP_LOG);
    size_t base = KIB << (number >> HARD_STEP_LOG);
    return base + (step + 1) * (base >> HARD_STEP_LOG);
}

/* The same, by the table, but without a look at it for small classes. */
static ALWAYS_INLINE size_t hard_bytes_of(size_t class)
{
    return LIKELY(class <= HARD_FINE) ? class * MIN_ALIGN : hard_classes[class].bytes;
}

/* The class of objects of at least `bytes`, from 1 to HARD_MOST. */
static ALWAYS_INLINE size_t hard_class_of(size_t bytes)
{
    if (LIKELY(bytes <= KIB))
        return (bytes + MIN_ALIGN - 1) / MIN_ALIGN;
    if (bytes > 16 * KIB)
        return HARD_FINE + HARD_STEPS + (bytes + PAGE_BYTES - 1) / PAGE_BYTES - 4;
    unsigned log = bit_highest(bytes - 1);
    size_t step = (bytes - 1) >> (log - HARD_STEP_LOG) & ((1u << HARD_STEP_LOG) - 1);
    return HARD_FINE + 1 + ((size_t)(log - 10) << HARD_STEP_LOG) + step;
}

/* The same at a multiple of `alignment`, a power of two; 0: no class has that. */
size_t hard_class_of_aligned(size_t alignment, size_t bytes);

#endif
