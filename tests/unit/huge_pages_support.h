/*
 * A provider whose memory has a price, and spans that are filled, for the tests of buying huge
 * pages. It notes what it is asked to make present, and says what that took; it makes nothing
 * present, for only the accounts matter here.
 */
#ifndef SNUG_TESTS_UNIT_HUGE_PAGES_SUPPORT_H
#define SNUG_TESTS_UNIT_HUGE_PAGES_SUPPORT_H

#include "pageheap/page_heap.h" /* before names of ours that parameters in it have too */

#include "cell_support.h"
#include "platform/memory.h"

#define HUGE_PAGES (OS_HUGE_PAGE >> PAGE_SHIFT)

/* So much must be in use by slabs and cells. */
#define SHARE_BYTES (16 * OS_HUGE_PAGE)

struct shop {
    uint64_t small_ns, huge_ns; /* for 4 KiB; 0: it cannot be had */
    size_t huge, small;         /* calls that succeeded */
    size_t refused;
    char *last; /* where the last call that succeeded was */
    size_t last_bytes;
    char *first_small_end;
    const char *wrong;       /* what was wrong with a call */
    void (*meanwhile)(void); /* what another thread does during a call; NULL: nothing */
};
extern struct shop shop;

/* Makes something present, as a provider does. */
uint64_t shop_populate(const struct provider *provider, void *start, size_t bytes, bool huge);

/* Segments are so long that most tests need one. */
#define SEGMENT (256 * MIB)

/* Setup: fresh cells and spans with such a provider, where huge pages are cheap; and teardown. */
int packed_begin(void **state);
int packed_end(void **state);

/* ---- Spans that are filled ---- */

enum { SPANS_MOST = 40000, PIECE = 8 };
#define PIECE_BYTES ((size_t)PIECE << PAGE_SHIFT)

extern struct span *taken[SPANS_MOST];
extern size_t taken_count;

/* Fails unless all invariants hold, and nothing was bought that should not have been. */
void assert_packed_sound(void);

typedef bool taker(struct page_heap *, struct span *, enum span_kind kind, size_t pages,
                   size_t alignment);

/* Takes a span, which must be had, by one of the functions for that. */
struct span *alloc_by(taker *take, enum span_kind kind, size_t pages, size_t alignment);

/* One that will be filled, of PIECE pages. */
struct span *piece_take(void);

void fill(size_t bytes);

/* Fills as much as it takes before anything is bought. */
void fill_share(void);

/* Takes pieces until a huge page is bought; returns the first in it. */
struct span *fill_to_huge(void);

/* Fills all that the segment has. */
void fill_rest(void);

/* Gives all back. */
void give_all(void);

/* The ranges of huge pages from an address to the end of the segment. */
size_t ranges_from(const char *start);

#endif
