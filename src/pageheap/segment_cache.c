/*
 * The list of empty segments. See segment_cache.h.
 */
#include "pageheap/segment_cache.h"

#include "platform/check.h"

static struct segment *segment_of(struct list *node)
{
    return CONTAINER_OF(node, struct segment, link);
}

void segment_cache_init(struct segment_cache *cache)
{
    *cache = (struct segment_cache){.count = 0};
    list_init(&cache->list);
}

static void count_in(struct segment_cache *cache, const struct segment *segment)
{
    CHECK(segment->used_pages == 0 && segment->dirty_pages <= segment->pages);
    cache->count++;
    GAUGE_ADD(cache->pages, segment->pages);
    GAUGE_ADD(cache->dirty_pages, segment->dirty_pages);
}

void segment_cache_put(struct segment_cache *cache, struct segment *segment, uint64_t now)
{
    segment->emptied = now;
    list_push(&cache->list, &segment->link);
    count_in(cache, segment);
}

void segment_cache_put_back(struct segment_cache *cache, struct segment *segment)
{
    struct list *node = cache->list.prev;
    while (node != &cache->list && segment_of(node)->emptied < segment->emptied)
        node = node->prev;
    list_push(node, &segment->link); /* behind the first that is no older */
    count_in(cache, segment);
}

void segment_cache_remove(struct segment_cache *cache, struct segment *segment)
{
    CHECK(cache->count > 0);
    list_remove(&segment->link);
    cache->count--;
    GAUGE_ADD(cache->pages, -segment->pages);
    GAUGE_ADD(cache->dirty_pages, -(size_t)segment->dirty_pages);
}

/* Whether `a` serves a request better than `b`, which may be NULL: dirty ones first, of those the
 * smallest, of equals the newest, which is met first. */
static NOINLINE bool is_better(const struct segment *a, const struct segment *b)
{
    if (b == NULL)
        return true;
    bool a_dirty = a->dirty_pages != 0, b_dirty = b->dirty_pages != 0;
    return a_dirty != b_dirty ? a_dirty : a->pages < b->pages;
}

static struct segment *take_out(struct segment_cache *cache, struct segment *segment)
{
    if (segment != NULL)
        segment_cache_remove(cache, segment);
    return segment;
}

/* One part in: of a request must be dirty, for a segment to serve it by runs that are joined. Of a
 * longer one, which may hardly be written to, a shorter one might need the pages. */
enum { JOINED_PART = 2 };

static bool has_room(const struct segment *segment, size_t pages, bool dirty_only)
{
    size_t dirty = segment->dirty_pages;
    if (!dirty_only)
        dirty = 0;
    else if (dirty == 0)
        return false;
    return (dirty * JOINED_PART >= pages ? segment->pages : segment->longest) >= pages;
}

struct segment *segment_cache_take(struct segment_cache *cache, size_t pages, bool dirty_only)
{
    struct segment *best = NULL;
    LIST_EACH(node, &cache->list) {
        struct segment *segment = segment_of(node);
        if (has_room(segment, pages, dirty_only) && is_better(segment, best))
            best = segment;
    }
    return take_out(cache, best);
}

struct segment *segment_cache_take_whole(struct segment_cache *cache, size_t least, size_t most,
                                         size_t alignment)
{
    struct segment *best = NULL;
    LIST_EACH(node, &cache->list) {
        struct segment *segment = segment_of(node);
        if (segment->pages >= least && segment->pages <= most &&
            ((uintptr_t)segment->start & (alignment - 1)) == 0 && is_better(segment, best))
            best = segment;
    }
    return take_out(cache, best);
}

struct segment *segment_cache_oldest(const struct segment_cache *cache)
{
    return list_empty(&cache->list) ? NULL : segment_of(cache->list.prev);
}

struct segment *segment_cache_oldest_dirty(const struct segment_cache *cache)
{
    if (cache->dirty_pages == 0)
        return NULL;
    struct list *node = cache->list.prev;
    while (segment_of(node)->dirty_pages == 0)
        node = node->prev;
    return segment_of(node);
}

struct segment *segment_cache_surplus(const struct segment_cache *cache,
                                      const struct segment_cache_bounds *bounds, uint64_t now)
{
    struct segment *oldest = segment_cache_oldest(cache);
    if (oldest == NULL)
        return NULL;
    bool too_old = now > oldest->emptied && now - oldest->emptied > bounds->age;
    bool too_many = cache->count > bounds->count || cache->pages > bounds->pages;
    return too_old || too_many ? oldest : NULL;
}

const char *segment_cache_check(const struct segment_cache *cache)
{
    struct segment_cache seen = {.count = 0};
    const char *wrong = NULL;
    uint64_t newer = UINT64_MAX;
    LIST_EACH(node, &cache->list) {
        const struct segment *segment = segment_of(node);
        seen.count++;
        seen.pages += segment->pages;
        seen.dirty_pages += segment->dirty_pages;
        if (segment->used_pages != 0)
            wrong = "a segment in the cache is in use";
        else if (segment->emptied > newer)
            wrong = "the cache of segments is out of order";
        newer = segment->emptied;
    }
    if (wrong == NULL && (seen.count != cache->count || seen.pages != cache->pages ||
                          seen.dirty_pages != cache->dirty_pages))
        wrong = "the counts of the cache of segments are wrong";
    return wrong;
}
