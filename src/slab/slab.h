/*
 * Slabs: spans cut into objects of one size class, and bins: the slabs of one class in one arena.
 *
 * The idea: which objects are free stands in a bitmap outside of the slab, so an overflow in user
 * memory cannot forge a free list, and freeing what is free is seen. Objects that were never handed
 * out are not in the bitmap but behind a border, `fresh`, so that a new slab needs no
 * initialisation and its pages are touched one after the other. The lowest free object is handed
 * out first, and of the slabs those with the fewest free objects: so the others empty, and their
 * pages can serve other classes.
 *
 * Cost: O(1) for each object; one lock for a whole batch of them.
 * Source: J. Bonwick, "The Slab Allocator" (1994).
 *
 * Every free object below the border carries object_key() in its first word, written when it was
 * freed, or, for one that is handed out for the first time, when it goes to a magazine. malloc()
 * looks for it: an object that was freed twice is not handed out twice.
 */
#ifndef SNUG_SLAB_SLAB_H
#define SNUG_SLAB_SLAB_H

#include "meta/extent.h"
#include "meta/misuse.h"
#include "pageheap/page_heap.h"
#include "slab/size_class.h"

/* Layout: 8 KiB of 16 bytes. */
enum { SLAB_OBJECTS_MOST = 512 };

/* Lists (table): of slabs, by how full they are, so that the fullest is found without a search. */
enum { BIN_LEVELS = 4 };

struct slab {
    struct span span;     /* span.owner is the bin, span.link stands in one of its lists */
    uint16_t capacity;    /* objects; those at grid numbers first .. first + capacity - 1 */
    uint16_t first;       /* the grid number of the first */
    uint16_t fresh;       /* objects from here on were never handed out; <= capacity */
    uint16_t free_count;  /* == bits set + capacity - fresh */
    uint16_t settle_at;   /* free_count from which on it belongs elsewhere: see slab_settle_at */
    uint64_t free_bits[]; /* slab_words; one bit per object below fresh: it is here, free */
};
/* Each slab, over the whole process:
 * free_count + objects in magazines and depots + live objects == capacity. */

struct bin {
    struct lock lock;
    uint32_t class;
    uint32_t slab_count;
    struct page_heap *page_heap; /* NULL until first used */
    struct slab *current;        /* objects are taken from it until it has none; it is in no list */
    size_t free_objects;         /* == sum of free_count over all slabs */
    size_t total_objects;        /* == sum of capacity */
    struct list level[BIN_LEVELS]; /* the other slabs with free objects: in level[l] those with
                                      free_count * BIN_LEVELS / capacity == l (the last: or 4) */
};

/* The words of a slab's bitmap. */
static inline size_t slab_words(const struct slab *slab)
{
    return (slab->capacity + 63u) / 64;
}

/* The address of a slab's object. */
static inline uintptr_t slab_object(const struct slab *slab, unsigned index)
{
    uintptr_t block = align_down((uintptr_t)slab->span.start, GRID_BYTES);
    return block + (slab->first + index) * class_bytes(slab->span.class);
}

/* free_count * BIN_LEVELS / capacity, or the last level. */
static inline unsigned slab_level(const struct slab *slab)
{
    unsigned parts = slab->free_count * (unsigned)BIN_LEVELS, level = 0;
    for (unsigned i = 1; i < BIN_LEVELS; i++)
        level += parts >= i * slab->capacity;
    return level;
}

/* The count of free objects from which on a slab of the lists is in the wrong one, or empty. Kept
 * in the slab: so an object that is freed alone asks one thing, whether there is more to do. */
static inline unsigned slab_settle_at(const struct slab *slab)
{
    unsigned next = (slab_level(slab) + 1) * slab->capacity;
    return (next + BIN_LEVELS - 1) / BIN_LEVELS;
}

void bin_init(struct bin *bin, struct page_heap *page_heap, size_t class);

/* Takes up to `count` objects into `objects`, lowest addresses first within each slab, and returns
 * how many. Makes a new slab only if `may_grow` and there is no other object. */
size_t bin_alloc(struct bin *bin, uintptr_t *objects, size_t count, bool may_grow);

/* How many free objects the bin has, read without its lock: a hint. */
static inline size_t bin_free_objects(const struct bin *bin)
{
    return __atomic_load_n(&bin->free_objects, __ATOMIC_RELAXED);
}

/* Gives objects of one class back to their slabs, of whatever bins, each of which is locked once.
 * The array is written to: those of other bins than the first wait in front. Those that are wrong
 * are left out and reported as misuse of `call` when no lock is held; NULL: left out only. */
void slabs_free(uintptr_t *objects, size_t count, const char *call);

/* Gives the bin's empty slabs back. */
void bin_trim(struct bin *bin);

/* Gives back one object that was handed out, and writes its key before anybody else can have it. If
 * something is wrong, nothing is written, and the answer says what. */
struct misuse slab_free_one(uintptr_t address);

/* What is wrong with an address whose page is in a slab: MISUSE_NONE for an object that was handed
 * out, or waits in a magazine. */
struct misuse slab_misuse(uintptr_t address);

/* A report of an object of `bytes` whose key is gone, with the word that was found in its place. */
static inline struct misuse misuse_of_object(enum misuse_kind kind, uintptr_t object, size_t bytes)
{
    return (struct misuse){.kind = kind,
                           .has_found = true,
                           .address = object,
                           .bytes = bytes,
                           .found = *object_key_word(object)};
}

/* The object around an address whose page is in a slab, and has this class byte. False: there is
 * none. (slab_extent.c) */
bool slab_extent(uintptr_t address, size_t byte, struct block_extent *extent);

/* Calls `visit` with every live object of a slab until it returns false; false if it did. `keys`:
 * free objects carry theirs. Nobody else may use the heap meanwhile. (slab_visit.c) */
bool slab_visit(const struct slab *slab, bool keys,
                bool (*visit)(void *context, void *block, size_t bytes), void *context);

/* Whether to move what is at an address would help to empty its slab; false for what is in none.
 * (slab_move.c) */
bool object_should_move(uintptr_t address);

/* A free object of the bin that a live object is of, from the slab whose turn it is; 0: there is
 * none. */
uintptr_t bin_alloc_beside(uintptr_t address);

/* Forgets all slabs; for a heap that is cleared, whose spans go by other means. */
void bin_clear(struct bin *bin);

/* Looks whether free objects still carry their keys, at `most` of them or a few more, and says what
 * is wrong with one; returns how many it looked at. (slab_inspect.c) */
size_t bin_inspect(struct bin *bin, size_t most, struct misuse *misuse);

/* this and below: slab_check.c */
const char *bin_check(struct bin *bin);

/* What is wrong with objects of a class that wait, free, in a magazine of the caller's. */
const char *objects_check(const struct page_heap *page_heap, size_t class, const uintptr_t *objects,
                          size_t count);

/* Whether `address` is an object of a class and free, as its key says; any address will do. */
bool object_waits(const struct page_heap *page_heap, size_t class, uintptr_t address);

/* How many pages a slab of the class has, in a compact heap or another. */
static inline size_t class_slab_pages(bool compact, size_t class)
{
    size_t pages = size_classes[class].slab_pages;
    /* Large objects get two pages: in one page, whose ends lie on no grid, one object of four is
     * lost. */
    return !compact ? pages : class_bytes(class) <= 256 ? 1 : 2;
}

/* The byte that the page map has for pages with objects of `class`. */
static inline size_t class_byte(const struct page_heap *page_heap, size_t class)
{
    return page_heap->other ? PAGE_MAP_OTHER : class;
}

#endif
