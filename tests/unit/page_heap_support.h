/*
 * A set of spans on a provider of its own, for the tests of what is made of spans.
 */
#ifndef SNUG_TESTS_UNIT_PAGE_HEAP_SUPPORT_H
#define SNUG_TESTS_UNIT_PAGE_HEAP_SUPPORT_H

#include "fake_provider.h"
#include "heap/heap.h" /* all headers, before names of ours that parameters in them have too */
#include "pageheap/large_recent.h"
#include "support.h"

/* Segments are 4 MiB at least, but for those of a heap that is smaller: its first has so many
 * pages. */
#define FIRST_SEGMENT_PAGES ((size_t)1024)
#define SMALL_SEGMENT_PAGES ((size_t)320)

extern struct fake_provider fake;
extern struct page_heap page_heap;

/* The time on the clock of `spans`, in nanoseconds; it stands still unless a test moves it. */
#define FAKE_SECOND ((uint64_t)1000000000)
extern uint64_t fake_now;

/* The exact clock goes on by so many nanoseconds each time that somebody reads it. */
extern uint64_t fake_exact_step;

/* Begins anew, on a provider, with the clocks above: the processor's own run on while another
 * process has the processor. */
void page_heap_begin_on(const struct provider *provider);

/* Setup: fresh spans on a fresh provider, and the default options. */
int page_heap_begin(void **state);

/* The border to huge blocks in these spans: low, for the fake provider's memory is small. */
#define BORDER MIB

/* Teardown: fails if the provider was given something that it did not hand out. */
int page_heap_end(void **state);

/* A span with a descriptor of its own, or NULL. */
struct span *span_new(enum span_kind kind, size_t pages, size_t alignment);

/* One that must be had, at any page. */
struct span *span_get(size_t pages);

static inline void span_put(struct span *span)
{
    span_free(&page_heap, span, 0);
}

/* Purges what is kept above the bound. */
static inline void bound_keep(void)
{
    lock_acquire(&page_heap.lock);
    page_heap_keep_bound(&page_heap);
    lock_release(&page_heap.lock);
}

/* A large block, written in full, and its end; both look whether the heap is sound. */
char *large_get(size_t bytes);
void large_put(char *start);

/* How many runs stand in the bins. */
size_t runs_count(const struct runs *runs);

static inline size_t span_bytes_of(const struct span *span)
{
    return (size_t)span->pages << PAGE_SHIFT;
}

/* Fails unless all invariants hold. */
void assert_page_heap_sound(void);

/* Everything was given back: fails unless the invariants hold, nothing is in use, and the provider
 * has it all back after a purge. */
void assert_page_heap_empty(void);

#endif
