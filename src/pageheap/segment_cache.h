/*
 * The cache of empty segments, which is asked before the system is.
 *
 * The idea: segments that became empty wait in a list, the last used first. Each says since when it
 * waits, how many of its pages still occupy memory, and whether all of it is zero. A segment that
 * comes out again costs no system call; one whose pages are still there costs no page faults
 * either. The list is bounded in segments, bytes and age; what leaves it leaves at its old end.
 *
 * Only the list is here. Which segments are made to leave, and whose pages go back to the system
 * meanwhile, is decided in page_heap_purge.h.
 *
 * Cost: putting in O(1); taking out a walk over at most SNUG_CACHE_SEGMENTS entries, once for a
 * whole segment. Not thread-safe: under the page heap's lock.
 */
#ifndef SNUG_PAGEHEAP_SEGMENT_CACHE_H
#define SNUG_PAGEHEAP_SEGMENT_CACHE_H

#include "base/peek.h"
#include "pageheap/segment.h"

struct segment_cache {
    struct list list;   /* the newest first */
    size_t count;       /* == length of the list */
    size_t pages;       /* == sum of segment->pages */
    size_t dirty_pages; /* == sum of segment->dirty_pages */
};

/* What may wait: at most so many segments, pages, and nanoseconds. */
struct segment_cache_bounds {
    size_t count;
    size_t pages;
    uint64_t age;
};

void segment_cache_init(struct segment_cache *cache);

/* Puts an empty segment, which is in no list, in front. The caller has filled in what the segment
 * says of its pages. */
void segment_cache_put(struct segment_cache *cache, struct segment *segment, uint64_t now);

void segment_cache_remove(struct segment_cache *cache, struct segment *segment);

/* Puts one that was removed back to where it belongs by its age. */
void segment_cache_put_back(struct segment_cache *cache, struct segment *segment);

/* Takes out a segment in which a run of `pages` pages fits; NULL if there is none. Of those with
 * dirty pages, or else of all unless `dirty_only`, the smallest. With that also one that is long
 * enough, if at least half of the request is dirty in it: all of it is free, so the caller can join
 * what is dirty and what is clean. */
struct segment *segment_cache_take(struct segment_cache *cache, size_t pages, bool dirty_only);

/* Takes out a whole segment of `least` to `most` pages that begins at a multiple of `alignment`:
 * one with dirty pages if there is one, of those the newest; NULL if there is none. */
struct segment *segment_cache_take_whole(struct segment_cache *cache, size_t least, size_t most,
                                         size_t alignment);

/* The segment that the bounds make leave next; NULL if all may stay. */
struct segment *segment_cache_surplus(const struct segment_cache *cache,
                                      const struct segment_cache_bounds *bounds, uint64_t now);

/* The oldest one; the oldest with dirty pages; NULL if there is none. */
struct segment *segment_cache_oldest(const struct segment_cache *cache);
struct segment *segment_cache_oldest_dirty(const struct segment_cache *cache);

/* NULL if the counts are those of the list, otherwise what is wrong. */
const char *segment_cache_check(const struct segment_cache *cache);

#endif
