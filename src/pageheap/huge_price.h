/*
 * Whether huge pages are had cheaply now.
 *
 * The idea: a huge page is bought, one at a time, and the price is looked at. What 4 KiB cost in a
 * huge page is compared with what they cost singly, both measured here and now: on a machine with
 * fresh memory a huge page costs a third, on one whose memory is in pieces the kernel has to move
 * others first, and it costs several times as much. When it was dear, occasions pass unused, as
 * base/backoff.h says. Where some are cheap and some are dear the mean decides: what a dear one
 * cost too much is a debt, and only when cheap ones have paid it back is every occasion used again.
 *
 * Cost: where huge pages are dear one of every BACKOFF_MOST is bought in the end; a measurement of
 * small pages, which are used afterwards, at every HUGE_PRICE_AGE occasions.
 *
 * Times are nanoseconds and handed in. Not thread-safe: under the page heap's lock.
 */
#ifndef SNUG_PAGEHEAP_HUGE_PRICE_H
#define SNUG_PAGEHEAP_HUGE_PRICE_H

#include "base/backoff.h"

/* Occasions: after so many small pages are measured again, since the kernel's state changes. */
enum { HUGE_PRICE_AGE = 64 };

struct huge_price {
    uint32_t small_ns; /* for 4 KiB made present in small pages; 0: not known */
    uint32_t age;      /* occasions since that was measured */
    uint64_t debt_ns;  /* for 4 KiB: what dear ones cost too much, less what cheap ones saved */
    struct backoff backoff;
};

/* Whether the price of small pages should be measured first. */
bool huge_price_is_stale(const struct huge_price *price);

/* Notes that `pages` small pages were made present in so many nanoseconds. */
void huge_price_note_small(struct huge_price *price, size_t pages, uint64_t elapsed);

/* Whether to use an occasion to buy a huge page. */
bool huge_price_try(struct huge_price *price);

/* Notes that a huge page, in which `pages` pages lie, was bought in so many nanoseconds. True: that
 * was cheap. */
bool huge_price_note_huge(struct huge_price *price, size_t pages, uint64_t elapsed);

#endif
