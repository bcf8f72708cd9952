/*
 * Pages that become metadata.
 *
 * The idea: where the system has no more, not even for metadata, free pages would lie idle, as no
 * part of a run can be taken without a descriptor for it, nor a large block have a place in a table
 * that is full. So some pages become metadata for good, or a larger table. They begin with their
 * own descriptor.
 *
 * Cost: O(1), when a request was refused. These pages are never given back, nor is the segment that
 * they lie in.
 */
#ifndef SNUG_PAGEHEAP_META_PAGES_H
#define SNUG_PAGEHEAP_META_PAGES_H

#include "pageheap/page_heap_state.h"

/* Makes free pages metadata, or a larger table of large blocks, if the system refused memory for
 * that. Only of a heap that nobody ends. False: it refused none, or nothing is free. Takes
 * the lock. */
bool page_heap_feed_meta(struct page_heap *page_heap);

#endif
