/*
 * Snug's own memory. See meta.h.
 */
#include "meta/meta.h"

#include "base/backoff.h"
#include "base/bits.h"
#include "base/peek.h"
#include "platform/check.h"
#include "platform/lock.h"
#include "platform/memory.h"
#include "provider/names.h"

/* Bytes (table): a small program needs no more than this, which stands in the library's own zero
 * pages. */
#define FIRST_CHUNK (64 * KIB)

/* Bytes: the least that is mapped at once afterwards, so that metadata is in few mappings. */
#define CHUNK (512 * KIB)

struct meta_block {
    struct meta_block *next;
};

struct meta meta_system = {.lock = LOCK_INIT(RANK_META), .grows = true};

/* One page more than a chunk, since a chunk begins at a page. An attribute for the alignment would
 * be that of all zero pages of the library, which would then not begin in its last page of data. */
BULKY static char first_room[FIRST_CHUNK + PAGE_BYTES];

static char *first_chunk(void)
{
    return (char *)align_up((uintptr_t)first_room, PAGE_BYTES);
}

static unsigned size_index(size_t bytes)
{
    return bytes <= META_LEAST ? 0 : bit_highest(bytes - 1) - 5;
}

/* Notes a chunk or a table. The lock need not be held. */
static void range_add(struct meta *meta, const char *start, size_t bytes)
{
    gauge_change(&meta->mapped, bytes);
    if (start != first_chunk()) /* that is part of the library's own image */
        mapping_name(start, bytes, "snug metadata");
    size_t index = __atomic_fetch_add(&meta->range_count, 1, __ATOMIC_RELAXED);
    if (index >= META_RANGES)
        return;
    /* relaxed: who reads it too early finds no bytes */
    __atomic_store_n(&meta->ranges[index].start, (uintptr_t)start, __ATOMIC_RELAXED);
    __atomic_store_n(&meta->ranges[index].bytes, bytes, __ATOMIC_RELAXED);
}

void meta_init(struct meta *meta, void *start, size_t bytes)
{
    *meta = (struct meta){.chunk = start, .chunk_end = (char *)start + bytes, .mapped = bytes};
    lock_init(&meta->lock, RANK_META);
}

/* Takes a new chunk, with room for a block of `least` bytes. */
static bool chunk_new(struct meta *meta, size_t least)
{
    if (!meta->grows)
        return false;
    bool first = meta->chunk == NULL;
    /* relaxed: tables are counted without the lock */
    size_t mapped = __atomic_load_n(&meta->mapped, __ATOMIC_RELAXED);
    /* A share of the metadata there is, so that the number of chunks grows with its logarithm. */
    size_t bytes = first ? FIRST_CHUNK : size_max(CHUNK, align_down(mapped / SLACK_SHARE, CHUNK));
    char *chunk = first ? first_chunk() : os_map(bytes, OS_PAGES_SMALL | OS_PAGES_UNRESERVED);
    if (chunk == NULL) {
        bytes = align_up(least, os_page_size()); /* a limit may be near, and this may still fit */
        chunk = os_map(bytes, OS_PAGES_SMALL | OS_PAGES_UNRESERVED);
    }
    /* relaxed: see meta_lacks */
    __atomic_store_n(&meta->lacks, chunk == NULL ? least : 0, __ATOMIC_RELAXED);
    if (chunk == NULL)
        return false;
    meta->chunk = chunk;
    meta->chunk_end = chunk + bytes;
    range_add(meta, chunk, bytes);
    return true;
}

/* Puts the rest of the chunk up to `end` into the lists, so that aligning wastes nothing. */
static void chunk_skip_to(struct meta *meta, char *end)
{
    while (meta->chunk < end) {
        size_t bytes = (uintptr_t)meta->chunk & -(uintptr_t)meta->chunk;
        struct meta_block *block = (struct meta_block *)meta->chunk;
        unsigned index = size_index(size_min(bytes, META_MOST));
        block->next = meta->free[index];
        meta->free[index] = block;
        meta->chunk += META_LEAST << index;
    }
}

static void *chunk_cut(struct meta *meta, size_t bytes)
{
    for (;;) {
        char *start = (char *)align_up((uintptr_t)meta->chunk, bytes);
        if (meta->chunk != NULL && start + bytes <= meta->chunk_end) {
            chunk_skip_to(meta, start);
            meta->chunk = start + bytes;
            return start;
        }
        /* The rest, less than `bytes`, stays unused: at most 4 KiB of 512, never touched. */
        if (!chunk_new(meta, bytes))
            return NULL;
    }
}

/* Takes a larger free block and puts what is not needed of it into the lists. */
static void *block_split(struct meta *meta, unsigned index)
{
    unsigned larger = index + 1;
    while (larger < META_SIZES && meta->free[larger] == NULL)
        larger++;
    if (larger >= META_SIZES)
        return NULL;
    struct meta_block *block = meta->free[larger];
    meta->free[larger] = block->next;
    while (larger-- > index) {
        struct meta_block *half = (struct meta_block *)((char *)block + (META_LEAST << larger));
        half->next = meta->free[larger];
        meta->free[larger] = half;
    }
    return block;
}

void *meta_alloc_from(struct meta *meta, size_t bytes)
{
    CHECK(bytes <= META_MOST);
    unsigned index = size_index(bytes);
    lock_acquire(&meta->lock);
    void *block = meta->free[index];
    if (block != NULL)
        meta->free[index] = meta->free[index]->next;
    else
        block = chunk_cut(meta, META_LEAST << index);
    if (UNLIKELY(block == NULL))
        block = block_split(meta, index);
    if (block != NULL)
        GAUGE_ADD(meta->used, META_LEAST << index);
    lock_release(&meta->lock);
    return block;
}

void *meta_alloc_optional(size_t bytes)
{
    static struct backoff refusals;
    if (UNLIKELY(!backoff_try(&refusals)))
        return NULL;
    void *block = meta_alloc(bytes);
    backoff_note(&refusals, block != NULL);
    return block;
}

void meta_free_to(struct meta *meta, void *block, size_t bytes)
{
    unsigned index = size_index(bytes);
    struct meta_block *freed = block;
    lock_acquire(&meta->lock);
    freed->next = meta->free[index];
    meta->free[index] = freed;
    GAUGE_ADD(meta->used, -(META_LEAST << index));
    lock_release(&meta->lock);
}

void *meta_map(size_t bytes)
{
    bytes = align_up(bytes, os_page_size());
    void *table = os_map(bytes, OS_PAGES_SMALL | OS_PAGES_UNRESERVED);
    if (table != NULL)
        range_add(&meta_system, table, bytes);
    return table;
}
