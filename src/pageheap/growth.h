/*
 * How fast a heap fills clean memory, and whether that is fast enough for huge pages.
 *
 * The idea: of a huge page that is bought ahead a part may stay unused, so memory is paid for time.
 * Both are weighed as shares: what it saves, of the time in which as many pages were filled last,
 * against what it may waste, of the memory that is filled. A program that does hardly anything but
 * fill has huge pages from a few MiB on; one that grows by a page now and then has none, as it
 * would not become faster.
 *
 * Cost: the clock is read once for GROWTH_PAGES. Times are nanoseconds and handed in. Not
 * thread-safe: under the page heap's lock.
 */
#ifndef SNUG_PAGEHEAP_GROWTH_H
#define SNUG_PAGEHEAP_GROWTH_H

#include "platform/memory.h"

/* Pages: the time is taken for so many, which a huge page has. */
#define GROWTH_PAGES (OS_HUGE_PAGE >> PAGE_SHIFT)

/* Times: of what a huge page saves, as a share of the time, so much is to be more than what it may
 * waste, as a share of the memory. On the average it wastes half of that. */
enum { TIME_FOR_MEMORY = 2 };

struct growth {
    uint64_t begun;   /* when the present GROWTH_PAGES began; 0: nothing was filled yet */
    uint64_t elapsed; /* for as many before them; 0: not known */
    size_t pages;     /* of the present ones so far */
};

/* Notes that so many clean pages were taken, to be filled. */
static inline void growth_note(struct growth *growth, size_t pages, uint64_t (*now)(void))
{
    growth->pages += pages;
    if (growth->begun != 0 && growth->pages < GROWTH_PAGES)
        return;
    uint64_t time = now();
    if (growth->begun != 0)
        growth->elapsed = (time - growth->begun) * GROWTH_PAGES / growth->pages;
    growth->begun = time;
    growth->pages = 0;
}

/* Whether to save `saving` nanoseconds for GROWTH_PAGES is worth that `waste` pages more may be
 * present, where `filled` are. */
static inline bool growth_pays(const struct growth *growth, uint64_t saving, size_t waste,
                               size_t filled)
{
    /* What was bought took no faults, and so less time than was saved. */
    uint64_t time = growth->elapsed > saving ? growth->elapsed : saving;
    return growth->elapsed != 0 && filled * saving >= TIME_FOR_MEMORY * waste * time;
}

#endif
