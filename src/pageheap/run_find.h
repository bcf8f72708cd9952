/*
 * In which run a span is to lie: dirty memory first, for it is paid for; the newest of the cache's
 * segments; a dirty part that can be made long enough. Then clean memory, and a segment more.
 *
 * Cost: O(1), but for a walk over the cache of segments. The page heap's lock must be held.
 */
#ifndef SNUG_PAGEHEAP_RUN_FIND_H
#define SNUG_PAGEHEAP_RUN_FIND_H

#include "pageheap/run.h"

struct found run_find(struct page_heap *page_heap, size_t pages, size_t alignment);

/* Only one that memory is paid for already: a dirty one, or one in the cache, or one with a dirty
 * part. */
struct found run_find_kept(struct page_heap *page_heap, size_t pages, size_t alignment);

#endif
