/*
 * Learning how much to keep. See demand.h.
 */
#include "span/demand.h"

#include "options/options.h"

/* Freed pages that come back at less than this rate may as well be faulted in again. A fault and
 * the purge before it were measured at 0.08 (bare metal) to 0.4 ns a byte (a virtual machine), so
 * this bounds what purging can cost at about one to three percent of a program's time. */
#define BYTES_WORTH_KEEPING_PER_SECOND (64 * MIB)

#define SECOND ((uint64_t)1000000000)
#define MILLISECOND ((uint64_t)1000000)

/* For how long so many pages are worth keeping. */
static uint64_t window(size_t pages)
{
    uint64_t most = options_nanoseconds(options.purge_delay);
    uint64_t page = SECOND / (BYTES_WORTH_KEEPING_PER_SECOND >> PAGE_SHIFT);
    uint64_t worth = size_min(pages, UINT32_MAX) * page;
    return worth < most ? worth : most;
}

/* The clock is coarse: two readings may be the same, or from two processors a little apart. */
static uint64_t since(uint64_t then, uint64_t now)
{
    return now > then ? now - then : 0;
}

size_t demand_bound(const struct demand *demand, size_t base, size_t in_use)
{
    if (options.purge_delay == DELAY_NEVER)
        return SIZE_MAX;
    if (options.purge_delay == 0)
        return 0;
    size_t high = demand->high + demand->high / 8;
    size_t room = high > in_use ? high - in_use : 0;
    return size_max(base, size_min(base + demand->wanted, room));
}

void demand_purged(struct demand *demand, size_t pages, uint64_t now)
{
    if (now > demand->ghosts_until)
        demand->ghosts = 0;
    demand->ghosts += pages;
    demand->ghosts_until = now + window(demand->ghosts);
}

void demand_missed(struct demand *demand, size_t pages, uint64_t now)
{
    if (now > demand->ghosts_until)
        demand->ghosts = 0;
    size_t missed = size_min(pages, demand->ghosts);
    if (missed == 0)
        return;
    demand->ghosts -= missed;
    /* An eighth more: what is kept never fits exactly, and the next peak is not just as high. */
    GAUGE_SET(demand->wanted, size_min(demand->wanted + missed + missed / 8, demand->high));
    /* What was learned is not to be forgotten before it could be of use: a new epoch begins. */
    demand->epoch = now;
    demand->low = SIZE_MAX;
}

/* An epoch is never shorter than this: a tick is a look at all that is kept. */
#define EPOCH_LEAST (20 * MILLISECOND)

/* It is as long for what is wanted and in use right now: a peak that is half way up must not look
 * as if the other half were not needed. */
static uint64_t epoch_length(const struct demand *demand, size_t kept, size_t base)
{
    uint64_t length = window(size_max(kept > base ? kept - base : 0, demand->wanted));
    return length > EPOCH_LEAST ? length : EPOCH_LEAST;
}

uint64_t demand_due(const struct demand *demand, size_t kept, size_t base)
{
    return demand->epoch + epoch_length(demand, kept, base);
}

bool demand_tick(struct demand *demand, size_t kept, size_t base, size_t in_use, uint64_t now)
{
    if (since(demand->epoch, now) < epoch_length(demand, kept, base))
        return false;
    size_t idle = demand->low > base ? demand->low - base : 0;
    GAUGE_SET(demand->wanted, demand->wanted - size_min(demand->wanted, idle));
    demand->high = size_max(demand->epoch_high, in_use);
    demand->epoch_high = in_use;
    demand->low = kept;
    demand->epoch = now;
    return true;
}
