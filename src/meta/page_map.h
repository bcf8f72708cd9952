/*
 * The page map: from any address to what snug has there.
 *
 * Two questions are answered, at two speeds. "Of which size class is this small object?" is asked
 * by every free: one byte per 4 KiB page, found by two loads and no comparison. "Which span is
 * this?" is asked on slow paths: one word per page.
 *
 * The idea: 48 address bits split into a root of 65,536 entries and leaves for 4 GiB each, made
 * when a segment first needs them; so the low 32 bits, which the processor cuts off for free, are
 * the offset in the leaf. The root of the class bytes does not hold the leaf's address but its
 * distance from `page_map_no_class`, an all-zero leaf in the library's own image that is never
 * written: a root of zeros then already sends every address to class 0, "not a small object", and
 * there is nothing to initialise and no NULL to test for. Reading that leaf maps the system's one
 * zero page: it costs no memory.
 *
 * Cost: 1 + 8 bytes for every page in use, 9 MiB of address space per 4 GiB touched. The part in
 * the library's image stays below 2 MiB, so that no huge page can be made of it.
 *
 * Readers take no lock: what the map says of memory that the program was given was written before
 * it was given, stays until it is freed, and is ordered before any reader by whatever handed the
 * pointer from thread to thread. For a wild pointer any answer is checked again under the lock of
 * what it claims to be.
 */
#ifndef SNUG_META_PAGE_MAP_H
#define SNUG_META_PAGE_MAP_H

#include "base/common.h"

struct span;

enum {
    PAGE_MAP_ROOT_BITS = 16,
    PAGE_MAP_ROOT = 1 << PAGE_MAP_ROOT_BITS,
    PAGE_MAP_LEAF = 1 << (32 - PAGE_SHIFT), /* pages in a leaf */
    PAGE_MAP_CLASSES = 128,
    PAGE_MAP_CELL = 65, /* the class byte of pages with cells; small classes are below */
    /* Those of small objects and of cells of any heap but malloc's. What class they are of, and of
     * which heap, their span says: thread caches have no magazine for these bytes, so malloc's fast
     * path needs no test to leave them alone. */
    PAGE_MAP_OTHER = 66,
    PAGE_MAP_OTHER_CELL = 67,
    PAGE_MAP_BYTES_PER_PAGE = 1 + 8
};

/* What every free reads, in a few cache lines beside each other. */
struct page_map {
    /* The home: the 4 GiB in which the first segment lies, and with it nearly every small heap.
     * Where its leaf is does not depend on the pointer that is looked up, so the processor need not
     * wait for one load before it begins the other; and that it is an address, not a distance,
     * leaves nothing between the pointer and the load of its class but a shift. Written once, by
     * page_map_settle, when the library is loaded, before the program has a second thread. Until
     * then it is the lowest 4 GiB, of which nothing is known. */
    uintptr_t home;                /* address >> 32 */
    const uint8_t *home_classes;   /* its leaf; at first `page_map_no_class` */
    const uintptr_t *home_entries; /* the slower map's; NULL before page_map_settle */
    /* A secret, the same for the whole process; see object_key(). */
    uint64_t key;
    /* For each class, 2^32 / size rounded up: the slab layer's, kept here because free needs all of
     * these and one base address then serves for them. */
    uint32_t reciprocal[PAGE_MAP_CLASSES];
} __attribute__((aligned(64)));

extern struct page_map page_map;

extern size_t page_map_class_root[PAGE_MAP_ROOT]; /* leaf - page_map_no_class, wrapping */
extern uint8_t page_map_no_class[PAGE_MAP_LEAF];

static ALWAYS_INLINE bool page_map_covers(uintptr_t address)
{
    return address >> 32 < PAGE_MAP_ROOT;
}

/* Where the class byte of the page that `address` is in stands. `address` must be covered. */
static ALWAYS_INLINE uint8_t *page_map_class_byte(uintptr_t address)
{
    size_t distance = page_map_class_root[address >> 32] + ((uint32_t)address >> PAGE_SHIFT);
    /* Added as numbers: the sum points into page_map_no_class or into another leaf. */
    return (uint8_t *)((uintptr_t)page_map_no_class + distance);
}

/* The class of the page that `address` is in. Plain loads, which the compiler can fold into what
 * uses them, two instructions less than with atomic ones; see "Readers take no lock" above for why
 * nobody writes what they read. */
static ALWAYS_INLINE size_t page_map_class(uintptr_t address)
{
    return *page_map_class_byte(address);
}

/* Whether the page that `address` is in has cells, of whatever heap. */
static ALWAYS_INLINE bool page_map_is_cell(uintptr_t address)
{
    _Static_assert((PAGE_MAP_CELL | 2) == PAGE_MAP_OTHER_CELL, "the two bytes differ in one bit");
    return (page_map_class(address) | 2) == PAGE_MAP_OTHER_CELL;
}

static ALWAYS_INLINE bool page_map_is_home(uintptr_t address)
{
    return address >> 32 == page_map.home;
}

/* As page_map_class, of an address for which page_map_is_home. */
static ALWAYS_INLINE size_t page_map_home_class(uintptr_t address)
{
    return page_map.home_classes[(uint32_t)address >> PAGE_SHIFT];
}

/* Makes the 4 GiB around `address`, whose leaf is there, the home. */
void page_map_settle(const void *address);

/* An entry of the slower map is NULL, the span that the page belongs to, or an odd word: the page
 * lies within free memory, and an object of entry >> 1 bytes that began in it was freed.
 *
 * Addresses of descriptors leave the upper bits free. They hold the size class of pages with small
 * objects of heaps other than malloc's, whose class byte cannot say it: so the magazine that such
 * an object goes to is found without a look at its span. */
enum { ENTRY_CLASS_SHIFT = 56 };

uintptr_t page_map_entry(uintptr_t address); /* without the class */

/* The root of the slower map, leaves of entries by the upper half of an address; NULL at first. For
 * the statistics, which read it from outside as well. */
extern uintptr_t **page_map_spans;

static inline size_t entry_class(uintptr_t tagged)
{
    return tagged >> ENTRY_CLASS_SHIFT;
}

static inline uintptr_t entry_untagged(uintptr_t tagged)
{
    return tagged & (((uintptr_t)1 << ENTRY_CLASS_SHIFT) - 1);
}

static inline uintptr_t entry_tagged(const struct span *span, size_t class)
{
    return (uintptr_t)span | (uintptr_t)class << ENTRY_CLASS_SHIFT;
}

/* The entry, with the class, for an address in the home; 0 for all others. */
static ALWAYS_INLINE uintptr_t page_map_home_entry(uintptr_t address)
{
    const uintptr_t *entries = page_map.home_entries;
    if (UNLIKELY(!page_map_is_home(address) || entries == NULL))
        return 0;
    /* relaxed: see above on readers */
    return __atomic_load_n(&entries[(uint32_t)address >> PAGE_SHIFT], __ATOMIC_RELAXED);
}

static inline bool entry_is_span(uintptr_t entry)
{
    return entry != 0 && (entry & 1) == 0;
}

static inline uintptr_t entry_freed(size_t bytes)
{
    return (uintptr_t)bytes << 1 | 1;
}

/* Ranges that have a map of their own instead of leaves, for heaps that may take nothing from the
 * system: `entries`, one zero word per page, lies where the heap has memory. Their pages have class
 * byte 0. False: there are too many. The heap that has a range removes it before its memory goes.
 */
bool page_map_add_range(const void *start, size_t pages, uintptr_t *entries);
void page_map_remove_range(const void *start);

/* Makes the leaves for a range; from then on setting entries in it cannot fail. */
bool page_map_reserve(const void *start, size_t bytes);

void page_map_set_entry(const void *page, uintptr_t value);
void page_map_fill_entries(const void *start, size_t pages, uintptr_t value);
void page_map_fill_classes(const void *start, size_t pages, size_t class);

#endif
