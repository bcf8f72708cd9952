/*
 * The tallies and events themselves. See stats.h and event.h.
 */
#include "stats/stats.h"

#include "base/bits.h"
#include "stats/event.h"

BULKY struct tally tallies[TALLIES];
__thread struct tally *tally_own __attribute__((tls_model("initial-exec")));
struct events events = {.wanted = {.ticking = 1}};
void (*events_handler)(void);
void (*events_purge_handler)(void);

_Static_assert(TALLIES == 64, "a bit for each tally");

/* Bit i: tallies[i] is a thread's own, or shared. */
static uint64_t tallies_used = 1;

static uint64_t tally_bit(const struct tally *tally)
{
    return (uint64_t)1 << (tally - tallies);
}

void tally_begin(void)
{
    /* relaxed: a wrong guess is noticed by the exchange */
    uint64_t used = __atomic_load_n(&tallies_used, __ATOMIC_RELAXED);
    while (tally_own == NULL && used != UINT64_MAX) {
        unsigned lowest = bit_lowest(~used);
        /* acquire: what the thread before added to it is there, and is added to */
        if (__atomic_compare_exchange_n(&tallies_used, &used, used | (uint64_t)1 << lowest, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            tally_own = &tallies[lowest];
    }
}

void tally_end(void)
{
    struct tally *own = tally_own;
    if (own == NULL)
        return;
    tally_own = NULL;
    /* release: pairs with tally_begin */
    __atomic_fetch_and(&tallies_used, ~tally_bit(own), __ATOMIC_RELEASE);
}

void tally_keep_own(void)
{
    uint64_t kept = tally_own == NULL ? 1 : 1 | tally_bit(tally_own);
    /* relaxed: there is no other thread */
    __atomic_store_n(&tallies_used, kept, __ATOMIC_RELAXED);
}

uint64_t tallies_sum(struct peek *peek, const struct tally *all, size_t offset)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < TALLIES; i++)
        sum += PEEK(peek, *(const uint64_t *)((const char *)&all[i] + offset));
    return sum;
}

struct counters counters_read(struct peek *peek, const struct tally *all)
{
    struct counters read;
    for (size_t at = 0; at < sizeof(read); at += sizeof(uint64_t))
        *(uint64_t *)((char *)&read + at) =
            tallies_sum(peek, all, offsetof(struct tally, counters) + at);
    return read;
}

void events_run(void)
{
    if (__atomic_load_n(&events.purge, __ATOMIC_RELAXED) && events_purge_handler != NULL) {
        __atomic_store_n(&events.purge, false, __ATOMIC_RELAXED);
        events_purge_handler();
    }
    void (*handler)(void) = __atomic_load_n(&events_handler, __ATOMIC_ACQUIRE);
    /* acquire and release: the next one finds all of what the handler keeps at rest */
    if (handler == NULL || __atomic_exchange_n(&events.busy, true, __ATOMIC_ACQUIRE))
        return;
    handler();
    __atomic_store_n(&events.busy, false, __ATOMIC_RELEASE);
}

void events_fork_in_child(void)
{
    __atomic_store_n(&events.busy, false, __ATOMIC_RELAXED);
}
