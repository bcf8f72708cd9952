/*
 * How often to try what may not pay: after a try that did not, the next 8 occasions pass unused,
 * then 16, and so on up to 1,024; one that paid begins anew. So what never pays costs next to
 * nothing in the end, and what begins to pay is noticed.
 *
 * Any thread may use one, without a lock: a count that gets lost puts a try off by one.
 */
#ifndef SNUG_BASE_BACKOFF_H
#define SNUG_BASE_BACKOFF_H

#include "base/common.h"

/* Nanoseconds: what the system said or refused, a limit or a thread, may be another after so long,
 * and to ask once in it costs nothing. */
#define ASK_AGAIN ((uint64_t)1000000000)

/* Occasions: few enough that a bad start is soon made good, so many that a try is a per mille. */
enum { BACKOFF_LEAST = 8, BACKOFF_MOST = 1024 };

struct backoff {
    uint32_t wait;   /* occasions that still pass unused */
    uint32_t waited; /* how many did after the last try that did not pay; 0: it paid */
};

/* Whether the next occasion is to be used. */
static inline bool backoff_is_over(const struct backoff *backoff)
{
    /* relaxed, here and below: hints, of whichever thread was last */
    return __atomic_load_n(&backoff->wait, __ATOMIC_RELAXED) == 0;
}

/* Whether to use the occasion that there is. */
static inline bool backoff_try(struct backoff *backoff)
{
    uint32_t wait = __atomic_load_n(&backoff->wait, __ATOMIC_RELAXED);
    if (wait != 0)
        __atomic_store_n(&backoff->wait, wait - 1, __ATOMIC_RELAXED);
    return wait == 0;
}

/* Notes that an occasion was used, and whether that paid. */
static inline void backoff_note(struct backoff *backoff, bool paid)
{
    size_t waited = __atomic_load_n(&backoff->waited, __ATOMIC_RELAXED);
    waited = paid ? 0 : size_min(size_max(2 * waited, BACKOFF_LEAST), BACKOFF_MOST);
    __atomic_store_n(&backoff->waited, (uint32_t)waited, __ATOMIC_RELAXED);
    __atomic_store_n(&backoff->wait, (uint32_t)waited, __ATOMIC_RELAXED);
}

/* The same for one that paid, but no more than a part of what others cost: as many pass again. */
static inline void backoff_again(struct backoff *backoff)
{
    size_t waited = __atomic_load_n(&backoff->waited, __ATOMIC_RELAXED);
    __atomic_store_n(&backoff->wait, (uint32_t)waited, __ATOMIC_RELAXED);
}

#endif
