/*
 * The page map's slow side: growing it and writing to it. See page_map.h.
 */
#include "meta/page_map.h"

#include <string.h>

#include "meta/meta.h"
#include "platform/check.h"
#include "platform/lock.h"

/* Layout: no address has bit 63. */
#define NOWHERE ((uintptr_t)1 << 63)

struct page_map page_map = {.home = NOWHERE, .form_home = NOWHERE};

void page_map_replace_forms(void)
{
    page_map.forms_replaced = true;
    page_map.form_home = NOWHERE;
    page_map.form_sizes = 0;
}
BULKY struct page_map_node *page_map_nodes[PAGE_MAP_NODES];

/* Layout: what the parts of the map cover. */
#define HOME_BYTES ((uintptr_t)1 << PAGE_MAP_HOME_BITS)
#define LEAF_BYTES ((uintptr_t)1 << 32)
#define CHUNK_BYTES ((uintptr_t)1 << PAGE_MAP_CHUNK_BITS)
#define ADDRESS_END ((uintptr_t)PAGE_MAP_ROOT << 32)

/* Bytes (machine): this much of the home lies below the first segment, as most systems map
 * downwards. */
#define HOME_BELOW (HOME_BYTES / 4 * 3)

/* ---- Ranges with maps of their own ---- */

/* A range may lie in a block of another heap, say malloc's, to which the map leads. While the range
 * is in this table the map leads nowhere there, and afterwards to the block again; all pages of the
 * range then have the same entry and class. */
BULKY static struct range {
    uintptr_t start; /* 0: not in use */
    size_t pages;
    uintptr_t *entries;
    uintptr_t under;    /* the entry of each page, if it led to a span, and */
    size_t under_class; /* their class byte, before the range was there */
} ranges[PAGE_MAP_RANGES];

static unsigned range_limit; /* all that are in use are below it */

/* Whoever asks about an address in a range uses the heap that the range is of, which therefore
 * stays. Whoever asks about another address only finds that it is in no range. */
static struct range *range_around(uintptr_t address)
{
    unsigned limit = __atomic_load_n(&range_limit, __ATOMIC_ACQUIRE);
    struct range *found = NULL;
    size_t least = SIZE_MAX; /* a buffer may lie in a block of a heap in a buffer: the innermost */
    for (unsigned i = 0; i < limit; i++) {
        /* acquire: pairs with the release in page_map_add_range */
        uintptr_t start = __atomic_load_n(&ranges[i].start, __ATOMIC_ACQUIRE);
        /* acquire: the start is read again behind it, and is another if this is another range's */
        size_t pages = __atomic_load_n(&ranges[i].pages, __ATOMIC_ACQUIRE);
        if (start != __atomic_load_n(&ranges[i].start, __ATOMIC_RELAXED))
            continue; /* one that ends, or begins: the address is not in it */
        if (start != 0 && (address - start) >> PAGE_SHIFT < pages && pages < least) {
            found = &ranges[i];
            least = pages;
        }
    }
    return found;
}

/* ---- Chunks of entries ---- */

/* Chunks that are mapped and not yet in use. How many are mapped at a time grows with those in use.
 * The lock of metadata guards this table, and all that makes the map grow below. */
static struct {
    uintptr_t (*next)[PAGE_MAP_CHUNK];
    size_t count;
    size_t used;
} spare_chunks;

/* Maps chunks when none are left: the `count` that are needed now, or a share of those in use if
 * that is more, so that system calls are few. */
static bool chunks_provide(size_t count)
{
    count = size_max(count, spare_chunks.used / SLACK_SHARE);
    spare_chunks.next = meta_map(count * sizeof(*spare_chunks.next));
    spare_chunks.count = spare_chunks.next != NULL ? count : 0;
    return spare_chunks.count != 0;
}

static struct page_map_node *node_of(uintptr_t address)
{
    /* acquire: pairs with the release in node_new */
    return __atomic_load_n(&page_map_nodes[address >> PAGE_MAP_NODE_BITS], __ATOMIC_ACQUIRE);
}

/* The chunk for an address, or NULL. */
static uintptr_t *chunk_of(uintptr_t address)
{
    struct page_map_node *node = node_of(address);
    /* acquire: pairs with the release in chunk_new */
    return node == NULL
               ? NULL
               : __atomic_load_n(&node->chunks[page_map_in_node(address)], __ATOMIC_ACQUIRE);
}

/* Takes the lock of meta itself, which must not be held. */
static bool node_new(uintptr_t address)
{
    struct page_map_node *node = meta_alloc(sizeof(*node));
    if (node == NULL)
        return false;
    memset(node, 0, sizeof(*node));
    lock_acquire(&meta_system.lock);
    struct page_map_node **place = &page_map_nodes[address >> PAGE_MAP_NODE_BITS];
    bool first = *place == NULL;
    if (first) /* release: a reader that finds the node finds it empty */
        __atomic_store_n(place, node, __ATOMIC_RELEASE);
    lock_release(&meta_system.lock);
    if (!first)
        meta_free(node, sizeof(*node));
    return true;
}

/* Makes a spare chunk, of which there must be one, that of `address`. */
static void chunk_new(uintptr_t address)
{
    uintptr_t *chunk = *spare_chunks.next++;
    spare_chunks.count--;
    spare_chunks.used++;
    /* release, both: a reader that finds the chunk finds it zero */
    __atomic_store_n(&node_of(address)->chunks[page_map_in_node(address)], chunk, __ATOMIC_RELEASE);
    if (page_map_is_home(address))
        __atomic_store_n(&page_map.home_chunks[(address - page_map.home) >> PAGE_MAP_CHUNK_BITS],
                         chunk, __ATOMIC_RELEASE);
}

/* How many chunks a range lacks. */
static size_t chunks_missing(uintptr_t first, uintptr_t last)
{
    size_t missing = 0;
    for (uintptr_t at = align_down(first, CHUNK_BYTES); at <= last; at += CHUNK_BYTES)
        missing += chunk_of(at) == NULL;
    return missing;
}

static COLD bool chunks_reserve(uintptr_t first, uintptr_t last)
{
    for (uintptr_t at = first; at >> PAGE_MAP_NODE_BITS <= last >> PAGE_MAP_NODE_BITS;
         at += (uintptr_t)1 << PAGE_MAP_NODE_BITS)
        if (node_of(at) == NULL && !node_new(at))
            return false;
    lock_acquire(&meta_system.lock);
    bool done = true;
    size_t missing = chunks_missing(first, last);
    for (uintptr_t at = align_down(first, CHUNK_BYTES); missing != 0; at += CHUNK_BYTES) {
        if (chunk_of(at) != NULL)
            continue;
        done = spare_chunks.count != 0 || chunks_provide(missing);
        if (!done)
            break;
        chunk_new(at);
        missing--;
    }
    lock_release(&meta_system.lock);
    return done;
}

/* ---- Class bytes ---- */

/* Makes the 2 GiB around `address` the home, with one mapping for its class bytes and for the first
 * chunk of entries. The lock must be held. */
static bool home_new(uintptr_t address)
{
    char *table = meta_map(PAGE_MAP_HOME + sizeof(*spare_chunks.next));
    if (table == NULL)
        return false;
    uintptr_t chunk = align_down(address, CHUNK_BYTES);
    uintptr_t home = chunk - size_min(chunk, HOME_BELOW);
    home = size_min(home, ADDRESS_END - HOME_BYTES);
    spare_chunks.next = (void *)(table + PAGE_MAP_HOME);
    spare_chunks.count = 1;
    page_map.home_classes = (uint8_t *)table;
    page_map.home = home;
    if (!page_map.forms_replaced)
        page_map.form_home = home;
    return true;
}

/* The root of the far map and the leaf of zeros behind it. The lock must be held. */
static bool far_new(void)
{
    size_t *root = meta_map(PAGE_MAP_ROOT * sizeof(*root) + PAGE_MAP_LEAF);
    if (root == NULL)
        return false;
    page_map.far_root = root;
    /* release: a reader that finds the limit finds the root, and finds it zero */
    __atomic_store_n(&page_map.far_limit, PAGE_MAP_ROOT, __ATOMIC_RELEASE);
    return true;
}

/* The leaf for a root entry, if it is not there. The lock must be held. */
static bool leaf_provide(size_t region)
{
    if (page_map.far_limit == 0 && !far_new())
        return false;
    size_t *root = page_map.far_root;
    if (root[region] != 0)
        return true;
    uint8_t *leaf = meta_map(PAGE_MAP_LEAF);
    if (leaf == NULL)
        return false;
    root[region] = (size_t)((uintptr_t)leaf - (uintptr_t)(root + PAGE_MAP_ROOT));
    return true;
}

static COLD bool classes_reserve(uintptr_t first, uintptr_t last)
{
    lock_acquire(&meta_system.lock);
    bool done = page_map.home != NOWHERE || home_new(first);
    for (size_t region = first >> 32; done && region <= last >> 32; region++) {
        uintptr_t start = (uintptr_t)region << 32;
        bool home = page_map_is_home(size_max(first, start)) &&
                    page_map_is_home(size_min(last, start + LEAF_BYTES - 1));
        done = home || leaf_provide(region);
    }
    lock_release(&meta_system.lock);
    return done;
}

bool page_map_reserve(const void *start, size_t bytes)
{
    uintptr_t first = (uintptr_t)start;
    uintptr_t last = first + bytes - 1;
    if (!page_map_covers(last))
        return false;
    if (range_around(first) != NULL)
        return true;
    return classes_reserve(first, last) && chunks_reserve(first, last);
}

/* Where the class byte of an address stands, whose page must have been reserved. */
static uint8_t *class_at(uintptr_t address)
{
    return page_map_is_home(address)
               ? &page_map.home_classes[(address - page_map.home) >> PAGE_SHIFT]
               : page_map_far_byte(address);
}

/* ---- Reading and writing ---- */

static uintptr_t *entry_at(uintptr_t address)
{
    const struct range *range = range_around(address);
    if (UNLIKELY(range != NULL))
        return &__atomic_load_n(&range->entries,
                                __ATOMIC_RELAXED)[(address - range->start) >> PAGE_SHIFT];
    uintptr_t *chunk = chunk_of(address);
    return chunk == NULL ? NULL : &chunk[page_map_in_chunk(address)];
}

size_t page_map_class_call(uintptr_t address)
{
    return page_map_class(address);
}

#if HAS_TAGS
COLD size_t page_map_tagged_class(uintptr_t address)
{
    uintptr_t stripped = tags_strip(address);
    size_t class = stripped != address ? page_map_class_call(stripped) : 0;
    return class == PAGE_MAP_HARDENED ? class : 0;
}
#endif

uintptr_t page_map_entry(uintptr_t address)
{
    address = tags_strip(address);
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

void page_map_fill_entries(const void *start, size_t pages, uintptr_t value)
{
    uintptr_t address = (uintptr_t)start;
    while (pages != 0) {
        size_t count = size_min(pages, PAGE_MAP_CHUNK - page_map_in_chunk(address));
        uintptr_t *entries = entry_at(address);
        CHECK(entries != NULL);
        for (size_t i = 0; i < count; i++)
            __atomic_store_n(&entries[i], value, __ATOMIC_RELAXED);
        pages -= count;
        address += count << PAGE_SHIFT;
    }
}

/* Where the table with the class of `address` ends: at the end of the home or of a leaf, or where
 * the home begins that lies in this leaf. */
static uintptr_t classes_end(uintptr_t address)
{
    if (page_map_is_home(address))
        return page_map.home + HOME_BYTES;
    uintptr_t end = align_down(address, LEAF_BYTES) + LEAF_BYTES;
    return address < page_map.home ? size_min(end, page_map.home) : end;
}

void page_map_fill_classes(const void *start, size_t pages, size_t class)
{
    uintptr_t address = (uintptr_t)start;
    if (range_around(address) != NULL)
        return;
    while (pages != 0) {
        size_t count = size_min(pages, (classes_end(address) - address) >> PAGE_SHIFT);
        memset(class_at(address), (int)class, count);
        pages -= count;
        address += count << PAGE_SHIFT;
    }
}

/* ---- Ranges ---- */

/* Sets what the map says of a range's pages while the range is not in the table. Pages that the map
 * has no entries for stay without. */
static void range_under(const struct range *range, uintptr_t page, uintptr_t entry, size_t class)
{
    for (size_t i = 0; i < range->pages; i++, page += PAGE_BYTES) {
        uintptr_t *at = entry_at(page);
        if (at != NULL)
            __atomic_store_n(at, entry, __ATOMIC_RELAXED);
        if (range->under_class != 0)
            *class_at(page) = (uint8_t)class;
    }
}

static void range_hide(struct range *range, uintptr_t start)
{
    const uintptr_t *entry = entry_at(start);
    /* relaxed, here and above: see page_map.h on readers */
    uintptr_t under = entry == NULL ? 0 : __atomic_load_n(entry, __ATOMIC_RELAXED);
    range->under = entry_is_span(under) ? under : 0;
    range->under_class = page_map_class_call(start);
    range_under(range, start, 0, 0);
}

COLD bool page_map_add_range(const void *start, size_t pages, uintptr_t *entries)
{
    lock_acquire(&meta_system.lock);
    unsigned i = 0;
    while (i < PAGE_MAP_RANGES && ranges[i].start != 0)
        i++;
    if (i < PAGE_MAP_RANGES) {
        /* release: whoever finds these pages finds that the range before is gone */
        __atomic_store_n(&ranges[i].pages, pages, __ATOMIC_RELEASE);
        __atomic_store_n(&ranges[i].entries, entries, __ATOMIC_RELAXED);
        range_hide(&ranges[i], (uintptr_t)start);
        __atomic_store_n(&ranges[i].start, (uintptr_t)start, __ATOMIC_RELEASE);
        if (i >= range_limit)
            __atomic_store_n(&range_limit, i + 1, __ATOMIC_RELEASE);
    }
    lock_release(&meta_system.lock);
    return i < PAGE_MAP_RANGES;
}

COLD void page_map_remove_range(const void *start)
{
    lock_acquire(&meta_system.lock);
    for (unsigned i = 0; i < range_limit; i++) {
        if (ranges[i].start != (uintptr_t)start)
            continue;
        __atomic_store_n(&ranges[i].start, 0, __ATOMIC_RELEASE);
        range_under(&ranges[i], (uintptr_t)start, ranges[i].under, ranges[i].under_class);
    }
    lock_release(&meta_system.lock);
}
