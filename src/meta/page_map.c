/*
 * The page map's slow side: growing it and writing to it. See page_map.h.
 */
#include "meta/page_map.h"

#include <string.h>

#include "meta/meta.h"
#include "platform/check.h"
#include "platform/lock.h"

struct page_map page_map = {.home_classes = page_map_no_class};
size_t page_map_class_root[PAGE_MAP_ROOT];
uint8_t page_map_no_class[PAGE_MAP_LEAF];

/* The leaves of the slower map, in a table of PAGE_MAP_ROOT; NULL until the first is made. */
uintptr_t **page_map_spans;

/* Both leaves of a root entry, in one mapping. */
#define LEAF_BYTES (PAGE_MAP_LEAF * (sizeof(uintptr_t) + sizeof(uint8_t)))

/* ---- Ranges with maps of their own ---- */

enum { RANGES_MOST = 64 };

static struct range {
    uintptr_t start; /* 0: not in use */
    size_t pages;
    uintptr_t *entries;
} ranges[RANGES_MOST];

static unsigned range_limit; /* all that are in use are below it */

/* Whoever asks about an address in a range asks about the memory of a heap, and so while that is
 * there; about others it is only seen that they are not in it. */
static struct range *range_around(uintptr_t address)
{
    unsigned limit = __atomic_load_n(&range_limit, __ATOMIC_ACQUIRE);
    struct range *found = NULL;
    size_t least = SIZE_MAX; /* a buffer may lie in a block of a heap in a buffer: the innermost */
    for (unsigned i = 0; i < limit; i++) {
        /* acquire: pairs with the release in page_map_add_range */
        uintptr_t start = __atomic_load_n(&ranges[i].start, __ATOMIC_ACQUIRE);
        size_t pages = __atomic_load_n(&ranges[i].pages, __ATOMIC_RELAXED);
        if (start != 0 && (address - start) >> PAGE_SHIFT < pages && pages < least) {
            found = &ranges[i];
            least = pages;
        }
    }
    return found;
}

bool page_map_add_range(const void *start, size_t pages, uintptr_t *entries)
{
    lock_take(&meta_system.lock);
    unsigned i = 0;
    while (i < RANGES_MOST && ranges[i].start != 0)
        i++;
    if (i < RANGES_MOST) {
        __atomic_store_n(&ranges[i].pages, pages, __ATOMIC_RELAXED);
        __atomic_store_n(&ranges[i].entries, entries, __ATOMIC_RELAXED);
        __atomic_store_n(&ranges[i].start, (uintptr_t)start, __ATOMIC_RELEASE);
        if (i >= range_limit)
            __atomic_store_n(&range_limit, i + 1, __ATOMIC_RELEASE);
    }
    lock_release(&meta_system.lock);
    return i < RANGES_MOST;
}

void page_map_remove_range(const void *start)
{
    lock_take(&meta_system.lock);
    for (unsigned i = 0; i < range_limit; i++)
        if (ranges[i].start == (uintptr_t)start)
            __atomic_store_n(&ranges[i].start, 0, __ATOMIC_RELEASE);
    lock_release(&meta_system.lock);
}

/* ---- Leaves ---- */

/* The lock of meta must be held. */
static bool leaf_new(size_t root)
{
    if (page_map_spans == NULL) {
        uintptr_t **table = meta_map(PAGE_MAP_ROOT * sizeof(*table));
        if (table == NULL)
            return false;
        /* release: a reader that finds the table finds it zero */
        __atomic_store_n(&page_map_spans, table, __ATOMIC_RELEASE);
    }
    uintptr_t *spans = meta_map(LEAF_BYTES);
    if (spans == NULL)
        return false;
    uint8_t *classes = (uint8_t *)(spans + PAGE_MAP_LEAF);
    size_t distance = (size_t)((uintptr_t)classes - (uintptr_t)page_map_no_class);
    page_map_class_root[root] = distance;
    /* release: a reader that finds the leaf finds it zero */
    __atomic_store_n(&page_map_spans[root], spans, __ATOMIC_RELEASE);
    return true;
}

/* The leaf for a root entry, or NULL. */
static uintptr_t *leaf_of(size_t root)
{
    /* acquire, both: pair with the releases in leaf_new */
    uintptr_t **table = __atomic_load_n(&page_map_spans, __ATOMIC_ACQUIRE);
    return table == NULL ? NULL : __atomic_load_n(&table[root], __ATOMIC_ACQUIRE);
}

bool page_map_reserve(const void *start, size_t bytes)
{
    uintptr_t first = (uintptr_t)start;
    uintptr_t last = first + bytes - 1;
    if (!page_map_covers(last))
        return false;
    if (range_around(first) != NULL)
        return true;
    bool done = true;
    for (size_t root = first >> 32; done && root <= last >> 32; root++) {
        if (leaf_of(root) != NULL)
            continue;
        lock_take(&meta_system.lock);
        if (leaf_of(root) == NULL)
            done = leaf_new(root);
        lock_release(&meta_system.lock);
    }
    return done;
}

static uintptr_t *entry_at(uintptr_t address)
{
    const struct range *range = range_around(address);
    if (UNLIKELY(range != NULL))
        return &__atomic_load_n(&range->entries,
                                __ATOMIC_RELAXED)[(address - range->start) >> PAGE_SHIFT];
    uintptr_t *leaf = leaf_of(address >> 32);
    return leaf == NULL ? NULL : &leaf[(uint32_t)address >> PAGE_SHIFT];
}

uintptr_t page_map_entry(uintptr_t address)
{
    if (!page_map_covers(address))
        return 0;
    uintptr_t *entry = entry_at(address);
    /* relaxed: see page_map.h on readers */
    return entry == NULL ? 0 : entry_untagged(__atomic_load_n(entry, __ATOMIC_RELAXED));
}

void page_map_set_entry(const void *page, uintptr_t value)
{
    uintptr_t *entry = entry_at((uintptr_t)page);
    CHECK(entry != NULL);
    __atomic_store_n(entry, value, __ATOMIC_RELAXED);
}

/* How many of `pages` pages lie in the leaf in which the first does. */
static size_t pages_in_leaf(uintptr_t start, size_t pages)
{
    return size_min(pages, PAGE_MAP_LEAF - ((uint32_t)start >> PAGE_SHIFT));
}

void page_map_fill_entries(const void *start, size_t pages, uintptr_t value)
{
    uintptr_t address = (uintptr_t)start;
    while (pages != 0) {
        size_t count = pages_in_leaf(address, pages);
        uintptr_t *entries = entry_at(address);
        CHECK(entries != NULL);
        for (size_t i = 0; i < count; i++)
            __atomic_store_n(&entries[i], value, __ATOMIC_RELAXED);
        pages -= count;
        address += count << PAGE_SHIFT;
    }
}

void page_map_fill_classes(const void *start, size_t pages, size_t class)
{
    uintptr_t address = (uintptr_t)start;
    if (range_around(address) != NULL)
        return;
    while (pages != 0) {
        size_t count = pages_in_leaf(address, pages);
        memset(page_map_class_byte(address), (int)class, count);
        pages -= count;
        address += count << PAGE_SHIFT;
    }
}

void page_map_settle(const void *address)
{
    uintptr_t region = (uintptr_t)address >> 32;
    page_map.home_classes = page_map_class_byte(region << 32);
    page_map.home_entries = leaf_of(region);
    page_map.home = region;
}
