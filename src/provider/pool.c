/*
 * Extents and the ranges handed out of them. See pool.h.
 */
#include "provider/pool.h"

#include <string.h>

#include "base/bits.h"
#include "platform/check.h"
#include "platform/memory.h"
#include "provider/limit.h"
#include "provider/names.h"

static size_t bit_words(const struct extent *extent)
{
    return (extent->pages + 63) / 64;
}

/* An extent's structure and both of its maps, in one mapping. */
static size_t extent_bytes(size_t pages)
{
    return align_up(sizeof(struct extent) + 2 * ((pages + 63) / 64) * sizeof(uint64_t),
                    os_page_size());
}

/* ---- Extents; the lock must be held, but for making and ending a pool ---- */

bool pool_add(struct pool *pool, char *start, size_t bytes)
{
    size_t pages = bytes >> PAGE_SHIFT;
    struct extent *extent = os_map(extent_bytes(pages), OS_PAGES_SMALL | OS_PAGES_UNRESERVED);
    if (extent == NULL)
        return false;
    mapping_name(extent, extent_bytes(pages), "snug metadata");
    extent->start = start;
    extent->pages = pages;
    extent->taken = (uint64_t *)(extent + 1);
    extent->used = extent->taken + bit_words(extent);
    extent->copy = -1;
    extent->next = pool->extents;
    pool->extents = extent;
    pool->bytes += bytes;
    return true;
}

static bool extent_drop(struct pool *pool, struct extent *extent)
{
    if (!os_unmap(extent->start, extent->pages << PAGE_SHIFT))
        return false;
    struct extent **link = &pool->extents;
    while (*link != extent)
        link = &(*link)->next;
    *link = extent->next;
    if (pool->limited)
        limit_give(extent->pages << PAGE_SHIFT);
    pool->bytes -= extent->pages << PAGE_SHIFT;
    os_unmap(extent, extent_bytes(extent->pages));
    return true;
}

static struct extent *extent_around(const struct pool *pool, const char *start)
{
    for (struct extent *extent = pool->extents; extent != NULL; extent = extent->next)
        if ((uintptr_t)(start - extent->start) < extent->pages << PAGE_SHIFT)
            return extent;
    return NULL;
}

/* ---- Ranges ---- */

/* The first bit that is not set at or after `from`; `pages` if there is none. */
static size_t next_free(const struct extent *extent, size_t from)
{
    for (size_t word = from / 64; word < bit_words(extent); word++) {
        uint64_t bits = ~extent->taken[word];
        if (word == from / 64)
            bits &= ~(uint64_t)0 << (from % 64);
        if (bits != 0)
            return size_min(word * 64 + bit_lowest(bits), extent->pages);
    }
    return extent->pages;
}

/* Where in an extent `pages` free pages lie at a multiple of `alignment`; SIZE_MAX: nowhere. */
static size_t room_find(const struct extent *extent, size_t pages, size_t alignment)
{
    for (size_t at = 0;;) {
        at = next_free(extent, at);
        uintptr_t start = align_up((uintptr_t)extent->start + (at << PAGE_SHIFT), alignment);
        at = (start - (uintptr_t)extent->start) >> PAGE_SHIFT;
        if (at + pages > extent->pages)
            return SIZE_MAX;
        size_t taken = bitmap_next(extent->taken, bit_words(extent), at);
        if (taken >= at + pages)
            return at;
        at = taken;
    }
}

static char *extent_take(struct extent *extent, size_t at, size_t pages)
{
    char *start = extent->start + (at << PAGE_SHIFT);
    for (size_t page = at; page < at + pages; page++) {
        bitmap_set(extent->taken, page);
        if (bitmap_get(extent->used, page))
            memset(extent->start + (page << PAGE_SHIFT), 0, PAGE_BYTES);
        bitmap_set(extent->used, page);
    }
    extent->taken_pages += pages;
    return start;
}

/* The lock must be held. */
static char *pool_find(struct pool *pool, size_t pages, size_t alignment)
{
    for (struct extent *extent = pool->extents; extent != NULL; extent = extent->next) {
        size_t at = extent->pages - extent->taken_pages < pages
                        ? SIZE_MAX
                        : room_find(extent, pages, alignment);
        if (at != SIZE_MAX)
            return extent_take(extent, at, pages);
    }
    return NULL;
}

static void *take(const struct provider *provider, size_t bytes, size_t alignment)
{
    struct pool *pool = pool_of(provider);
    size_t pages = bytes >> PAGE_SHIFT;
    size_t slack = alignment > os_page_size() ? alignment : 0;
    lock_acquire(&pool->lock.lock);
    char *start = pool_find(pool, pages, alignment);
    if (start == NULL && pool->grow(pool, bytes + slack))
        start = pool_find(pool, pages, alignment);
    lock_release(&pool->lock.lock);
    if (start == NULL && pool->fallback != NULL)
        return pool->fallback->take(pool->fallback, bytes, alignment);
    return start;
}

static bool give(const struct provider *provider, void *start, size_t bytes)
{
    struct pool *pool = pool_of(provider);
    lock_acquire(&pool->lock.lock);
    struct extent *extent = extent_around(pool, start);
    if (extent != NULL) {
        size_t at = (size_t)((char *)start - extent->start) >> PAGE_SHIFT;
        for (size_t page = at; page < at + (bytes >> PAGE_SHIFT); page++)
            bitmap_clear(extent->taken, page);
        extent->taken_pages -= bytes >> PAGE_SHIFT;
        if (extent->taken_pages == 0 && pool->gives_back)
            extent_drop(pool, extent);
    }
    lock_release(&pool->lock.lock);
    if (extent == NULL)
        return pool->fallback != NULL && pool->fallback->give(pool->fallback, start, bytes);
    return true;
}

/* Whether an address lies in memory that the fallback served. */
static bool is_of_fallback(struct pool *pool, const char *start)
{
    if (pool->fallback == NULL)
        return false;
    lock_acquire(&pool->lock.lock);
    bool ours = extent_around(pool, start) != NULL;
    lock_release(&pool->lock.lock);
    return !ours;
}

/* Memory that was taken ahead stays: to give pages back would lose them, or the blocks on disk. */
static bool purge(const struct provider *provider, void *start, size_t bytes)
{
    struct pool *pool = pool_of(provider);
    return is_of_fallback(pool, start) && pool->fallback->purge(pool->fallback, start, bytes);
}

/* Shortens a range, or lengthens it if what follows is free. Nothing is moved: the caller may
 * copy. */
static bool resize_in_place(struct pool *pool, char *start, size_t old_pages, size_t pages)
{
    struct extent *extent = extent_around(pool, start);
    if (extent == NULL)
        return false;
    size_t at = (size_t)(start - extent->start) >> PAGE_SHIFT;
    for (size_t page = at + pages; page < at + old_pages; page++)
        bitmap_clear(extent->taken, page);
    if (pages <= old_pages) {
        extent->taken_pages -= old_pages - pages;
        return true;
    }
    if (at + pages > extent->pages ||
        bitmap_next(extent->taken, bit_words(extent), at + old_pages) < at + pages)
        return false;
    extent_take(extent, at + old_pages, pages - old_pages);
    return true;
}

static void *resize(const struct provider *provider, void *start, size_t old_bytes,
                    size_t new_bytes, bool may_move)
{
    struct pool *pool = pool_of(provider);
    if (is_of_fallback(pool, start))
        return pool->fallback->resize(pool->fallback, start, old_bytes, new_bytes, may_move);
    lock_acquire(&pool->lock.lock);
    bool done = resize_in_place(pool, start, old_bytes >> PAGE_SHIFT, new_bytes >> PAGE_SHIFT);
    lock_release(&pool->lock.lock);
    return done ? start : NULL;
}

/* ---- Begin and end ---- */

void pool_init(struct pool *pool, enum provider_kind kind,
               bool (*grow)(struct pool *pool, size_t bytes))
{
    memset(pool, 0, sizeof(*pool));
    pool->provider = (struct provider){
        .kind = (uint8_t)kind, .take = take, .give = give, .purge = purge, .resize = resize};
    pool->grow = grow;
    provider_lock_init(&pool->lock);
}

void pool_end(struct pool *pool)
{
    provider_lock_end(&pool->lock);
    while (pool->extents != NULL)
        if (!extent_drop(pool, pool->extents))
            return;
}
