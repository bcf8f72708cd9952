/*
 * The page heap: spans of pages out of segments, taken and freed.
 *
 * The idea: free pages are runs, in bins by length (runs.h), joined with their neighbours (run.h).
 * A request takes a dirty run as long as one fits: memory that is paid for is used before new
 * memory is touched. A long request that fits none takes a dirty run and the clean pages beside it
 * (run_find.h). Segments come from the provider and wait in a cache when they are empty
 * (segments.h). page_heap_purge.h decides how much of all that is kept, and what goes back to the
 * system; the functions here ask it after each change, and none of the parts does.
 *
 * The page map leads from each page of a slab or of a span of cells to that span. When the span is
 * freed its pages hold the size of the objects that were there. Large blocks are found by their
 * address in a table (large_table.h), unless the heap is compact.
 *
 * Cost: O(1), but for entries of the page map, one per page of slabs and of spans of cells.
 *
 * Thread-safe; takes RANK_PAGE_HEAP, and RANK_META inside.
 */
#ifndef SNUG_PAGEHEAP_PAGE_HEAP_H
#define SNUG_PAGEHEAP_PAGE_HEAP_H

#include "pageheap/page_heap_purge.h"
#include "pageheap/page_heap_state.h"

/* Bytes: from here on a block takes whole pages, of which it wastes 3 % at most. A huge one that
 * becomes shorter moves, as the system has room for some ten thousand mappings. */
#define LARGE_LEAST (128 * KIB)

/* Bytes: a larger block has a mapping of its own, so it can grow without being copied. The pages of
 * all that are not larger serve each other. */
#define LARGE_MOST (128 * MIB)

void page_heap_init(struct page_heap *page_heap, const struct provider *provider);

/* Makes the first segment, if there is memory for it yet. */
void page_heap_prepare(struct page_heap *page_heap);

/* Makes a segment of memory that no provider gave, at page boundaries. False: no memory for its
 * descriptors. */
bool page_heap_adopt(struct page_heap *page_heap, char *start, size_t bytes);

/* Takes `pages` pages at a multiple of `alignment` bytes (a power of two, at least PAGE_BYTES).
 * `span`, which the caller brings with `units` filled in, and with `requested` for a large block,
 * becomes their descriptor, and every page leads to it. False: no memory, and nothing has changed.
 */
bool span_alloc(struct page_heap *page_heap, struct span *span, enum span_kind kind, size_t pages,
                size_t alignment);

/* The same for a span of which every page will be touched, one soon after the other: it may be made
 * of huge pages. See huge_pages.h. */
bool span_alloc_packed(struct page_heap *page_heap, struct span *span, enum span_kind kind,
                       size_t pages, size_t alignment);

/* The same of a large block, for a caller that holds the lock. `kept`: only of memory that is kept,
 * so false if what is dirty does not fit. */
bool span_alloc_large(struct page_heap *page_heap, struct span *span, size_t pages,
                      size_t alignment, bool kept);

/* Frees a span that span_alloc gave; the descriptor goes with it. `object_bytes` is the size of the
 * objects that were in it, for messages about later misuse. The pages' class bytes must be 0. */
void span_free(struct page_heap *page_heap, struct span *span, size_t object_bytes);

/* The same for a caller that holds the lock, and says whether the pages are dirty or clean. */
void span_free_locked(struct page_heap *page_heap, struct span *span, enum span_kind kind,
                      size_t object_bytes);

/* The span in a segment that an address is in, found by walking; NULL if none is. The lock must be
 * held. */
struct span *span_around(const struct page_heap *page_heap, uintptr_t address);

/* Makes a span longer in place, if what follows it is free. */
bool span_extend(struct page_heap *page_heap, struct span *span, size_t pages);

/* Makes a span shorter and frees the rest. False: no memory for a descriptor; as before. */
bool span_shrink(struct page_heap *page_heap, struct span *span, size_t pages);

/* Frees every span at once, huge ones included. With `keep`, as much memory stays as if they had
 * been freed one by one; without, all of it goes back. Slabs and cells that lay in it must be
 * forgotten too. (page_heap_clear.c) */
void page_heap_clear(struct page_heap *page_heap, bool keep);

/* Walks all of it. NULL if every invariant holds, otherwise what does not. (page_heap_check.c) */
const char *page_heap_check(struct page_heap *page_heap);

#endif
