/*
 * Runs in bins by length, under a bitmap, so that a fitting one is found without walking.
 *
 * A bin of more than one length is looked through for a few runs only; any run of a higher bin is
 * long enough. So what is found is mostly at most one bin step (an eighth) longer than the best
 * fit; where many runs that are a little too short stand in the request's own bin, it is what the
 * next bin in use has. Of the few that are looked at, the one in the fullest segment is taken, so
 * that the others empty.
 *
 * Cost: O(1). Source: two-level bins as in M. Masmano et al., "TLSF" (2004). Not thread-safe.
 */
#ifndef SNUG_PAGEHEAP_RUNS_H
#define SNUG_PAGEHEAP_RUNS_H

#include "base/peek.h"
#include "pageheap/span.h"

/* Layout: lengths 1 to 16 have a bin each, then every doubling has 8, up to 2^32 pages. */
enum { RUN_EXACT = 16, RUN_STEPS = 8, RUN_BINS = RUN_EXACT + 28 * RUN_STEPS };

/* Runs: looked at in one bin, of the longest, or on each side of one, so that no search takes more
 * than a few lines of cache. */
enum { RUNS_LOOKED_AT = 8 };

struct runs {
    uint64_t bitmap[(RUN_BINS + 63) / 64]; /* bit b == bins[b] is not empty */
    struct list bins[RUN_BINS];
    size_t pages;   /* sum over the bins */
    size_t count;   /* of runs */
    uint16_t frees; /* times that a run became free, modulo 2^16: their clock */
};

/* Whether so many pages fit in a run at a multiple of `alignment` bytes. */
static inline bool run_fits(const struct span *run, size_t pages, size_t alignment)
{
    uintptr_t start = align_up((uintptr_t)run->start, alignment);
    return start + (pages << PAGE_SHIFT) <= (uintptr_t)span_end(run);
}

void runs_init(struct runs *runs);
void runs_add(struct runs *runs, struct span *run);
void runs_remove(struct runs *runs, struct span *run);

/* A run in which `pages` pages fit at a multiple of `alignment` bytes; NULL if none is found. */
struct span *runs_find(const struct runs *runs, size_t pages, size_t alignment);

/* A long run of about `most` pages or less, and at least `least`, that `suits`, which is told
 * `most`, or any if that is NULL; NULL if none is found soon. */
typedef bool run_predicate(const struct span *run, size_t most);
struct span *runs_find_long(const struct runs *runs, size_t most, size_t least,
                            run_predicate *suits);

/* Of the runs of at least `least` pages that `suit` the one that nothing was freed into for the
 * longest time, as far as is seen: of each bin those at its end are looked at. NULL if none is
 * found. Cost: O(the bins in use). */
struct span *runs_find_oldest(const struct runs *runs, size_t least, run_predicate *suits);

#endif
