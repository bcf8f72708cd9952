/*
 * Size classes of small objects: the multiples of 16 bytes up to 1 KiB, so that the class of a size
 * is a shift. Class 0 means "not small".
 *
 * The grid: an object of a class always lies at a multiple of the class's size, counted from the
 * 64 KiB boundary below it, whatever slab it is in. So from the address and the class alone
 * follows whether a pointer is one to the beginning of an object, with the low 16 bits of the
 * address and one multiplication, and no look at a slab.
 *
 * The multiplication: let r = ceil(2^32 / size) and n the offset in the 64 KiB. If n = k * size,
 * n * r mod 2^32 = k * (size * r - 2^32) < k * size < 2^16; otherwise it is at least r - 2^16 and
 * r >= 2^22 since size <= 2^10. The high half of n * r is then n / size.
 * Source: D. Lemire et al., "Faster remainder by direct computation" (2019).
 */
#ifndef SNUG_SLAB_SIZE_CLASS_H
#define SNUG_SLAB_SIZE_CLASS_H

#include "base/bits.h"
#include "meta/page_map.h"

/* Layout: the grid is found in the low 16 bits of an address. */
#define GRID_BYTES (64 * KIB)

/* Layout: one class for each 16 bytes, and class 0. */
enum { CLASS_COUNT = 64 + 1 };

/* Bytes: up to here a class every 16 bytes wastes less than a cell's header; above, cells take
 * over. */
enum { SMALL_MOST = 1024 };

_Static_assert((int)CLASS_COUNT <= (int)PAGE_MAP_CLASSES, "no class has the number of cells");

struct size_class {
    uint32_t bytes;        /* of an object */
    uint16_t slab_pages;   /* of a slab; a power of two, a slab is aligned to it */
    uint16_t magazine_log; /* a magazine of the class has at most 64 << magazine_log bytes */
};

extern INTERNAL const struct size_class size_classes[CLASS_COUNT];

/* Fills the page map's reciprocals, and its largest small size. Call once, before the first slab is
 * made. */
void size_classes_init(void);

/* The class for a request of `bytes`, which must be at most SMALL_MOST; 0 for 0 bytes. */
static ALWAYS_INLINE size_t class_of_size(size_t bytes)
{
    return (bytes + MIN_ALIGN - 1) / MIN_ALIGN;
}

/* The bytes of an object of a class, without a look at the table. */
static ALWAYS_INLINE size_t class_size(size_t class)
{
    return class * MIN_ALIGN;
}

/* The class for `bytes` at a multiple of `alignment`, a power of two; 0 if there is none, and for 0
 * bytes. All multiples of a size that is rounded up to the alignment are multiples of it, counted
 * from a 64 KiB boundary, so the grid does the rest. Rounding up fills the low bits of the last
 * byte's offset; said like this, nothing overflows. */
static ALWAYS_INLINE size_t class_of_aligned(size_t alignment, size_t bytes)
{
    size_t last = (bytes - 1) | (alignment - 1);
    return LIKELY(last < SMALL_MOST) ? last / MIN_ALIGN + 1 : 0;
}

/* The class that serves a class in a compact heap, where a slab for each of 64 would be too many:
 * four to each doubling. */
static inline size_t class_compact(size_t class)
{
    if (class <= 8)
        return class;
    size_t step = (size_t)1 << (bit_highest(class - 1) - 2);
    return align_up(class, step);
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

/* The word that a free object at `address` carries, its first: there programs write that use it
 * after its free, and those that write over the end of the object before it. It depends on the
 * address, so that a program that copies bytes it never wrote cannot make another object look
 * free. */
static ALWAYS_INLINE uint64_t object_key(uintptr_t address)
{
    return page_map.key + address;
}

static ALWAYS_INLINE uint64_t *object_key_word(uintptr_t address)
{
    return (uint64_t *)address;
}

#endif
