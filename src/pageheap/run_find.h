/*
 * In which run a span is to lie: dirty memory first, for it is paid for; the newest of the cache's
 * segments; a dirty part that can be made long enough. Then clean memory, and a segment more.
 *
 * Cost: O(1), but for a walk over the cache of segments. The page heap's lock must be held.
 */
#ifndef SNUG_PAGEHEAP_RUN_FIND_H
#define SNUG_PAGEHEAP_RUN_FIND_H

#include "pageheap/run.h"

/* A run with room for so many pages, of memory that is kept if there is such; none: there is no
 * memory. */
struct found run_find(struct page_heap *page_heap, size_t pages, size_t alignment);

/* The same of memory that is kept alone: a dirty run, one in the cache, or one with a dirty part.
 */
struct found run_find_kept(struct page_heap *page_heap, size_t pages, size_t alignment);

/* A run with room that is dirty throughout; or NULL. */
struct span *run_find_dirty(struct page_heap *page_heap, size_t pages, size_t alignment);

#endif
