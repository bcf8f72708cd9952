/*
 * Planted faults: the tests are built a second time with some functions of the allocator replaced
 * by these (the linker's --wrap), which now and then do something wrong. PLANTED in the environment
 * says what; the test then has to fail, in the right words. Without it, they do nothing.
 *
 * Counters and the like are atomic, since threads come here too.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/common.h"
#include "heap/heap.h"
#include "platform/process.h"
#include "snug/snug.h"

/* A fault happens at every so many calls. */
enum { SELDOM = 100 };

#define WRAP(result, name, ...) \
    result __real_##name(__VA_ARGS__); \
    result __wrap_##name(__VA_ARGS__); \
    result __wrap_##name(__VA_ARGS__)

/* Whether this fault is the planted one. */
static bool planted(const char *fault)
{
    const char *value = getenv("PLANTED");
    return value != NULL && strcmp(value, fault) == 0;
}

static bool now_and_then(size_t calls_between)
{
    static atomic_size_t calls;
    return atomic_fetch_add(&calls, 1) % calls_between == calls_between - 1;
}

static bool now(void)
{
    return now_and_then(SELDOM);
}

static bool once(void)
{
    static atomic_size_t calls;
    return atomic_fetch_add(&calls, 1) == SELDOM;
}

/* The newest block of some size, which is most likely live. */
static _Atomic(unsigned char *) newest;

static void *remember(void *block, size_t size)
{
    if (size >= 256)
        atomic_store(&newest, block);
    return block;
}

/* A block that a thread has just got, and another is to be given once more. */
static _Atomic(unsigned char *) victim;
static atomic_size_t victim_size;
static atomic_uintptr_t victim_owner;

/* The blocks that were given twice. They are never freed: else the allocator itself would find out,
 * before the test has a chance to. */
enum { DOUBLED = 256 };
static _Atomic(unsigned char *) doubled[DOUBLED];
static atomic_size_t doubled_count;

static bool is_doubled(const void *block)
{
    for (size_t i = 0; i < DOUBLED && atomic_load(&doubled_count) != 0; i++)
        if (atomic_load(&doubled[i]) == block)
            return block != NULL;
    return false;
}

/* A block of 192 bytes or more that one thread has is given to another one for any request from 64
 * bytes up to its own: of a smaller one there might be none in all of a short run. */
static void *twice(void *block, size_t size)
{
    uintptr_t self = (uintptr_t)&thread_self;
    if (size < 64 || size > 256 || atomic_load(&doubled_count) >= DOUBLED)
        return block;
    if (size >= 192 && now_and_then(SELDOM / 10)) { /* the one before may be its owner's for ever */
        atomic_store(&victim_owner, self);
        atomic_store(&victim_size, size);
        atomic_store(&victim, block);
        return block;
    }
    if (atomic_load(&victim_owner) == self || atomic_load(&victim_size) < size)
        return block;
    unsigned char *other = atomic_exchange(&victim, NULL);
    if (other == NULL)
        return block;
    atomic_store(&doubled[atomic_fetch_add(&doubled_count, 1) % DOUBLED], other);
    return other;
}

/* The block goes or moves: both must be live when they are used. */
static void forget(void *block)
{
    unsigned char *expected = block;
    atomic_compare_exchange_strong(&victim, &expected, NULL);
    expected = block;
    atomic_compare_exchange_strong(&newest, &expected, NULL);
}

WRAP(void *, snug_malloc, size_t size)
{
    unsigned char *live = atomic_load(&newest);
    if (planted("overlap") && size <= 64 && live != NULL && now())
        return live + 128;
    if (planted("twice_here") && size <= 64 && live != NULL && now())
        return live;
    if (planted("short") && size > 1000 && now())
        return __real_snug_malloc(size / 4);
    void *block = remember(__real_snug_malloc(size), size);
    return planted("twice") ? twice(block, size) : block;
}

WRAP(void *, snug_calloc, size_t count, size_t size)
{
    unsigned char *block = __real_snug_calloc(count, size);
    if (planted("dirty_calloc") && count * size > 0 && now())
        block[count * size - 1] = 1;
    return block;
}

static void *resize_without(void *block, size_t size, bool copy)
{
    char *moved = __real_snug_malloc(size);
    if (copy)
        memcpy(moved, block, size_min(size, snug_malloc_usable_size(block)));
    return moved;
}

WRAP(void *, snug_realloc, void *block, size_t size)
{
    forget(block);
    if (is_doubled(block))
        return resize_without(block, size, true);
    if (!planted("no_copy") || block == NULL || size == 0 || !now())
        return remember(__real_snug_realloc(block, size), size);
    void *moved = resize_without(block, size, false);
    __real_snug_realloc(block, 0);
    return moved;
}

WRAP(void *, snug_aligned_alloc, size_t alignment, size_t size)
{
    char *block = __real_snug_aligned_alloc(alignment, size);
    /* Few calls ask for that. */
    if (planted("misaligned") && alignment > 16 && now_and_then(SELDOM / 10))
        return block + 16;
    return block;
}

/* Whether the block is to be lost instead of freed. */
static bool lose(const void *block)
{
    size_t class = page_map_class((uintptr_t)block);
    if (class == 0)
        return planted("leak_large") && now();
    if (class == PAGE_MAP_CELL)
        return planted("leak_cell") && now();
    return (planted("leak_small") && now()) || (planted("leak_once") && once());
}

WRAP(void, snug_free, void *block)
{
    forget(block);
    unsigned char *live = atomic_load(&newest);
    if (planted("scribble") && live != NULL && now())
        live[100] ^= 1;
    if (planted("miscount") && now())
        heap_default.page_heap.used_pages++;
    if (is_doubled(block) || lose(block) || (planted("leak_any") && now_and_then(10)))
        return;
    __real_snug_free(block);
}

/* These call snug_free inside of the library, where nothing is replaced. */
WRAP(void, snug_free_sized, void *block, size_t size)
{
    (void)size;
    __wrap_snug_free(block);
}

WRAP(void, snug_free_aligned_sized, void *block, size_t alignment, size_t size)
{
    (void)alignment, (void)size;
    __wrap_snug_free(block);
}

/* A thread that ends keeps what is in its magazines. */
WRAP(void, cache_free, struct cache *cache)
{
    if (!planted("thread_leak"))
        __real_cache_free(cache);
}

/* Half of each range is not looked at. */
WRAP(bool, os_pagemap_resident, int pagemap, uintptr_t start, size_t bytes, uint64_t *resident)
{
    size_t hidden = planted("hidden") ? bytes / 2 & ~(size_t)65535 : 0;
    return __real_os_pagemap_resident(pagemap, start, bytes - hidden, resident);
}

/* A lock that a thread held which the child does not have. */
WRAP(void, heap_fork_in_child, void)
{
    __real_heap_fork_in_child();
    if (planted("fork_lock"))
        heap_default.page_heap.lock.held = 1;
}

/* ---- A child of fork, and what waits for threads that it does not have ---- */

WRAP(void, arenas_end_orphans, struct arenas *arenas)
{
    if (!planted("orphans_left"))
        __real_arenas_end_orphans(arenas);
}

/* Called by this name for other heaps than malloc's. */
WRAP(void, cache_end_orphan, struct cache *cache, bool give)
{
    if (!planted("orphans_there"))
        __real_cache_end_orphan(cache, give);
}

/* What is below the top as well, which others have had since. */
WRAP(struct magazine_part, magazine_above, uintptr_t *top)
{
    struct magazine_part part = __real_magazine_above(top);
    bool all = planted("orphans_below") || planted("orphans_any");
    if (all && part.magazine != NULL) {
        part.objects = magazine_begin(part.magazine);
        part.count = magazine_capacity(part.magazine->log);
    }
    return part;
}

/* Without a look at the key. */
WRAP(bool, object_waits, const struct page_heap *page_heap, size_t class, uintptr_t address)
{
    if (planted("orphans_any"))
        return page_map_covers(address) && page_map_class(address) == class_byte(page_heap, class);
    return __real_object_waits(page_heap, class, address);
}
