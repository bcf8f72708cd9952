/*
 * The page map: from any address to what snug has there.
 *
 * Two questions are answered, at two speeds. "Of which size class is this small object?" is asked
 * by every free: one byte per 4 KiB page, found by two loads and no comparison. "Which span is
 * this?" is asked on slow paths: one word per page.
 *
 * The idea: nearly every pointer that is freed lies in the *home*, 2 GiB around the first segment,
 * of which there is one table of class bytes. Where that is does not depend on the pointer, and it
 * is kept as the place that address 0 would have in it: nothing but a shift is between a pointer
 * and the load of its class. Everything else is *far*: 48 address bits split into a root of 65,536
 * entries and leaves for 4 GiB each, made when a segment first needs them. The root does not hold a
 * leaf's address but its distance from an all-zero leaf behind it; so a root of zeros already sends
 * every address to class 0, "not a small object", and there is no NULL to test for. Reading that
 * leaf maps the system's one zero page: it costs no memory. A program whose heap stays at home has
 * no such root.
 *
 * Entries lie in chunks for 64 MiB, made when a segment first needs them, under two levels of
 * pointers.
 *
 * Cost: 1 + 8 bytes for every page in use; of address space, which mlockall and RLIMIT_AS count,
 * 512 KiB for the home, 128 KiB for each 64 MiB of heap in chunks, and far away from home 1.5 MiB
 * once and 1 MiB per 4 GiB.
 *
 * Readers take no lock: what the map says of memory that the program was given was written before
 * it was given, stays until it is freed, and is ordered before any reader by whatever handed the
 * pointer from thread to thread. For a wild pointer any answer is checked again under the lock of
 * what it claims to be.
 */
#ifndef SNUG_META_PAGE_MAP_H
#define SNUG_META_PAGE_MAP_H

#include "platform/tags.h"

struct span;

/* Layout: of the map, for addresses of 48 bits. */
enum {
    PAGE_MAP_ROOT_BITS = 16,
    PAGE_MAP_ROOT = 1 << PAGE_MAP_ROOT_BITS,
    PAGE_MAP_LEAF = 1 << (32 - PAGE_SHIFT), /* pages in a leaf of class bytes */
    PAGE_MAP_HOME_BITS = 31,
    PAGE_MAP_HOME = 1 << (PAGE_MAP_HOME_BITS - PAGE_SHIFT), /* pages in the home */
    PAGE_MAP_CHUNK_BITS = 26,
    PAGE_MAP_CHUNK = 1 << (PAGE_MAP_CHUNK_BITS - PAGE_SHIFT), /* entries in a chunk */
    PAGE_MAP_NODE_BITS = 35,
    PAGE_MAP_NODE = 1 << (PAGE_MAP_NODE_BITS - PAGE_MAP_CHUNK_BITS), /* chunks in a node */
    PAGE_MAP_NODES = 1 << (48 - PAGE_MAP_NODE_BITS),
    PAGE_MAP_CLASSES = 128, /* small classes are below, and above 0 */
    PAGE_MAP_CELL = 128,    /* the class byte of pages with cells */
    /* Those of hardened blocks of any heap, and those of small objects and of cells of any heap but
     * malloc's. What class they are of, and of which heap, their span says. */
    PAGE_MAP_HARDENED = 129,
    PAGE_MAP_OTHER_CELL = 130,
    PAGE_MAP_OTHER = 131,
    PAGE_MAP_BYTES_PER_PAGE = 1 + 8
};

/* What every free reads, in a few cache lines beside each other. */
struct page_map {
    /* Where the home begins, a multiple of what a chunk covers. Written once, when the first
     * segment is reserved: when the library is loaded, before the program has a second thread.
     * Until then no address lies there. */
    uintptr_t home;
    uint8_t *home_classes; /* its class bytes */
    size_t far_limit;      /* PAGE_MAP_ROOT if there is a root of far leaves, or 0 */
    size_t *far_root;      /* distances of leaves from far_root + PAGE_MAP_ROOT, wrapping */
    /* A secret, the same for the whole process; see object_key(). */
    uint64_t key;
    /* How many sizes, from 0 on, magazines may serve, and how many more above them quick lists:
     * what the layers above say. Both are 0 while every request is counted (profile.h); the third
     * then says how many sizes magazines and quick lists may serve once a request is counted. If
     * all are 0 every request goes the long way. They are here because malloc reads the key beside
     * them; see size_is_below. */
    size_t small_sizes, cell_sizes, counted_sizes;
    /* For each class, 2^32 / size rounded up: the slab layer's, kept here because free needs all of
     * these and one base address then serves for them. */
    uint32_t reciprocal[PAGE_MAP_CLASSES];
    uint64_t seal; /* what half of the key makes; see span_seal() */
    /* `home` and `small_sizes` once more, for forms of operator new and delete that stand for
     * others. If the program has others of its own (api/operators.h), form_home is where no address
     * is, and form_sizes is 0. */
    uintptr_t form_home;
    size_t form_sizes;
    bool forms_replaced; /* written before the program's own code runs */
    /* The chunks of entries of the home; NULL where there is none yet. */
    uintptr_t *home_chunks[PAGE_MAP_HOME / PAGE_MAP_CHUNK];
} __attribute__((aligned(64)));

extern INTERNAL struct page_map page_map;

/* Sets the secrets, before there is a heap. Bits 62 and 63 make the key of any address no address,
 * no small number and no text. */
static inline void page_map_set_key(uint64_t random)
{
    page_map.key = (random & ~((uint64_t)3 << 62)) | (uint64_t)1 << 62;
    uint64_t half = (page_map.key * 0x9e3779b97f4a7c15u) >> 32;
    page_map.seal = half << 32 | half;
}

/* Whether `size` < *limit, a word that other threads may write. A comparison with memory, as a
 * relaxed load and a comparison are one instruction more in what compilers make of them. */
static ALWAYS_INLINE bool size_is_below(size_t size, const size_t *limit)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    bool below;
    __asm__("cmpq %[limit], %[size]" : "=@ccb"(below) : [size] "r"(size), [limit] "m"(*limit));
    return below;
#else
    return size < __atomic_load_n(limit, __ATOMIC_RELAXED);
#endif
}

/* Whether a class byte is that of small objects of malloc's heap: by one test of its sign. */
static ALWAYS_INLINE bool class_byte_is_small(size_t byte)
{
    return (int8_t)byte > 0;
}

static ALWAYS_INLINE bool page_map_covers(uintptr_t address)
{
    return address >> 32 < PAGE_MAP_ROOT;
}

static ALWAYS_INLINE bool page_map_is_home(uintptr_t address)
{
    return address - page_map.home < (uintptr_t)1 << PAGE_MAP_HOME_BITS;
}

/* The same for what a form that stands for another is given; never if the program has its own. */
static ALWAYS_INLINE bool page_map_is_form_home(uintptr_t address)
{
    return address - page_map.form_home < (uintptr_t)1 << PAGE_MAP_HOME_BITS;
}

/* From now on such forms are not served on the fast path. */
void page_map_replace_forms(void);

/* The class of the page of an address that is at home. Plain loads, here and below, which the
 * compiler can fold into what uses them, two instructions less than with atomic ones; see "Readers
 * take no lock" above for why nobody writes what they read. */
static ALWAYS_INLINE size_t page_map_home_class(uintptr_t address)
{
    return page_map.home_classes[(address - page_map.home) >> PAGE_SHIFT];
}

/* The same after page_map_is_form_home: the difference is there already. */
static ALWAYS_INLINE size_t page_map_form_class(uintptr_t address)
{
    return page_map.home_classes[(address - page_map.form_home) >> PAGE_SHIFT];
}

/* Where the class byte stands for an address in the far map. */
static ALWAYS_INLINE uint8_t *page_map_far_byte(uintptr_t address)
{
    const size_t *root = page_map.far_root;
    size_t distance = root[address >> 32] + ((uint32_t)address >> PAGE_SHIFT);
    /* Added as numbers: the sum points into the leaf behind the root or into another. */
    return (uint8_t *)((uintptr_t)(root + PAGE_MAP_ROOT) + distance);
}

/* The class of the page of an address with a tag in its top byte: PAGE_MAP_HARDENED, or 0, since
 * only hardened blocks have tags. Functions that do not ask for a class first cannot be given such
 * an address. */
size_t page_map_tagged_class(uintptr_t address);

/* The class of the page of any address that is not at home. */
static ALWAYS_INLINE size_t page_map_far_class(uintptr_t address)
{
    /* acquire: pairs with far_new in page_map.c */
    if (address >> 32 >= __atomic_load_n(&page_map.far_limit, __ATOMIC_ACQUIRE))
        return tags_are_on() ? page_map_tagged_class(address) : 0;
    return *page_map_far_byte(address);
}

/* The class of the page that any address is in; the second as a function, for code that is made
 * small. */
static ALWAYS_INLINE size_t page_map_class(uintptr_t address)
{
    return LIKELY(page_map_is_home(address)) ? page_map_home_class(address)
                                             : page_map_far_class(address);
}

size_t page_map_class_call(uintptr_t address);

/* Whether the page that `address` is in has cells, of whatever heap. */
static inline bool page_map_is_cell(uintptr_t address)
{
    _Static_assert((PAGE_MAP_CELL | 2) == PAGE_MAP_OTHER_CELL, "the two bytes differ in one bit");
    return (page_map_class_call(address) | 2) == PAGE_MAP_OTHER_CELL;
}

/* Layout: an entry of the slower map is NULL, the span that the page belongs to, or an odd word:
 * the page lies within free memory, and an object of entry >> 1 bytes that began in it was freed.
 *
 * Addresses of descriptors leave the upper bits free. They hold the size class of pages with small
 * objects of heaps other than malloc's, whose class byte cannot say it: so the magazine that such
 * an object goes to is found without a look at its span. */
enum { ENTRY_CLASS_SHIFT = 56 };

uintptr_t page_map_entry(uintptr_t address); /* without the class */

/* The slower map: nodes of pointers to chunks of entries; NULL where there is nothing. For the
 * statistics, which read it from outside as well. */
struct page_map_node {
    uintptr_t *chunks[PAGE_MAP_NODE];
};

extern INTERNAL struct page_map_node *page_map_nodes[PAGE_MAP_NODES];

/* Where an address is found in a node and in a chunk. */
static inline size_t page_map_in_node(uintptr_t address)
{
    return address >> PAGE_MAP_CHUNK_BITS & (PAGE_MAP_NODE - 1);
}

static inline size_t page_map_in_chunk(uintptr_t address)
{
    return address >> PAGE_SHIFT & (PAGE_MAP_CHUNK - 1);
}

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
    if (UNLIKELY(!page_map_is_home(address)))
        return 0;
    /* relaxed, both: see above on readers */
    const uintptr_t *chunk = __atomic_load_n(
        &page_map.home_chunks[(address - page_map.home) >> PAGE_MAP_CHUNK_BITS], __ATOMIC_RELAXED);
    if (UNLIKELY(chunk == NULL))
        return 0;
    return __atomic_load_n(&chunk[page_map_in_chunk(address)], __ATOMIC_RELAXED);
}

/* The same for a page that is at home and has a class, so it has an entry. */
static ALWAYS_INLINE uintptr_t page_map_home_entry_of(uintptr_t address)
{
    const uintptr_t *chunk = __atomic_load_n(
        &page_map.home_chunks[(address - page_map.home) >> PAGE_MAP_CHUNK_BITS], __ATOMIC_RELAXED);
    return __atomic_load_n(&chunk[page_map_in_chunk(address)], __ATOMIC_RELAXED);
}

/* As page_map_entry, inlined for the home. */
static ALWAYS_INLINE uintptr_t page_map_entry_fast(uintptr_t address)
{
    uintptr_t tagged = page_map_home_entry(address);
    return LIKELY(tagged != 0) ? entry_untagged(tagged) : page_map_entry(address);
}

static inline bool entry_is_span(uintptr_t entry)
{
    return entry != 0 && (entry & 1) == 0;
}

static inline uintptr_t entry_freed(size_t bytes)
{
    return (uintptr_t)bytes << 1 | 1;
}

/* Layout: ranges at a time. The table of them is looked through from its start, so it is short. */
enum { PAGE_MAP_RANGES = 64 };

/* Ranges that have a map of their own instead of chunks and leaves, for heaps that may take nothing
 * from the system: `entries`, one zero word per page, lies where the heap has memory. The pages of
 * a range have class byte 0. False: there are too many ranges. The heap that has a range removes it
 * before its memory goes. The pages may lie in a block of another heap; nobody else then has
 * anything in that block. */
bool page_map_add_range(const void *start, size_t pages, uintptr_t *entries);
void page_map_remove_range(const void *start);

/* Makes the chunks and leaves that the map needs for a range; from then on setting entries in it
 * cannot fail. The first range of all makes the home around it. False: there is no memory, or an
 * address has more than 48 bits. */
bool page_map_reserve(const void *start, size_t bytes);

void page_map_set_entry(const void *page, uintptr_t value);
void page_map_fill_entries(const void *start, size_t pages, uintptr_t value);
void page_map_fill_classes(const void *start, size_t pages, size_t class);

#endif
