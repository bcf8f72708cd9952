/*
 * The page map's slow side: growing it and writing to it. See page_map.h.
 */
#include "meta/page_map.h"

#include "meta/meta.h"
#include "platform/check.h"
#include "platform/lock.h"

struct page_map page_map;

/* The leaves of the slower map, in a table of PAGE_MAP_ROOT; NULL until the first is made. */
static uintptr_t **span_root;

/* Both leaves of a root entry, in one mapping. */
#define LEAF_BYTES (PAGE_MAP_LEAF * (sizeof(uintptr_t) + sizeof(uint8_t)))

/* The lock of meta must be held. */
static bool leaf_new(size_t root)
{
    if (span_root == NULL) {
        uintptr_t **table = meta_map(PAGE_MAP_ROOT * sizeof(*table));
        if (table == NULL)
            return false;
        /* release: a reader that finds the table finds it zero */
        __atomic_store_n(&span_root, table, __ATOMIC_RELEASE);
    }
    uintptr_t *spans = meta_map(LEAF_BYTES);
    if (spans == NULL)
        return false;
    uint8_t *classes = (uint8_t *)(spans + PAGE_MAP_LEAF);
    size_t distance = (size_t)((uintptr_t)classes - (uintptr_t)page_map.no_class);
    page_map.class_root[root] = distance;
    /* release: a reader that finds the leaf finds it zero */
    __atomic_store_n(&span_root[root], spans, __ATOMIC_RELEASE);
    return true;
}

/* The leaf for a root entry, or NULL. */
static uintptr_t *leaf_of(size_t root)
{
    /* acquire, both: pair with the releases in leaf_new */
    uintptr_t **table = __atomic_load_n(&span_root, __ATOMIC_ACQUIRE);
    return table == NULL ? NULL : __atomic_load_n(&table[root], __ATOMIC_ACQUIRE);
}

bool page_map_reserve(const void *start, size_t bytes)
{
    uintptr_t first = (uintptr_t)start;
    uintptr_t last = first + bytes - 1;
    if (!page_map_covers(last))
        return false;
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
    uintptr_t *leaf = leaf_of(address >> 32);
    return leaf == NULL ? NULL : &leaf[(uint32_t)address >> PAGE_SHIFT];
}

uintptr_t page_map_entry(uintptr_t address)
{
    if (!page_map_covers(address))
        return 0;
    uintptr_t *entry = entry_at(address);
    /* relaxed: see page_map.h on readers */
    return entry == NULL ? 0 : __atomic_load_n(entry, __ATOMIC_RELAXED);
}

void page_map_set_entry(const void *page, uintptr_t value)
{
    uintptr_t *entry = entry_at((uintptr_t)page);
    CHECK(entry != NULL);
    __atomic_store_n(entry, value, __ATOMIC_RELAXED);
}

void page_map_fill_entries(const void *start, size_t pages, uintptr_t value)
{
    for (size_t i = 0; i < pages; i++)
        page_map_set_entry((const char *)start + (i << PAGE_SHIFT), value);
}

void page_map_fill_classes(const void *start, size_t pages, size_t class)
{
    for (size_t i = 0; i < pages; i++)
        *page_map_class_byte((uintptr_t)start + (i << PAGE_SHIFT)) = (uint8_t)class;
}

void page_map_settle(const void *address)
{
    uintptr_t region = (uintptr_t)address >> 32;
    page_map.home_distance = page_map.class_root[region];
    page_map.home = region;
}
