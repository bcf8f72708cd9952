/*
 * The tallies and events themselves. See stats.h and event.h.
 */
#include "stats/stats.h"

#include "base/bits.h"
#include "stats/event.h"

BULKY_BUT_BEGUN struct tallies tallies;
__thread struct tally *tally_own __attribute__((tls_model("initial-exec")));
__thread size_t tally_apart __attribute__((tls_model("initial-exec")));
struct events events = {.wanted = {.ticking = 1}};
void (*events_handler)(void);

_Static_assert(TALLIES % 64 == 0, "words of bits");

/* relaxed: it only says where readers may stop */
static void end_raise(uint64_t end)
{
    uint64_t was = __atomic_load_n(&tallies.end, __ATOMIC_RELAXED);
    while (was < end && !__atomic_compare_exchange_n(&tallies.end, &was, end, false,
                                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

/* Takes one of those of a word of `used`. False: there is none left. */
static bool tally_take(size_t word)
{
    /* relaxed: a wrong guess is noticed by the exchange */
    uint64_t used = __atomic_load_n(&tallies.used[word], __ATOMIC_RELAXED);
    while (~used != 0) {
        unsigned lowest = bit_lowest(~used);
        /* acquire: what the thread before added to it is there, and is added to */
        if (__atomic_compare_exchange_n(&tallies.used[word], &used, used | (uint64_t)1 << lowest,
                                        false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            tally_own = &tallies.own[word * 64 + lowest];
            end_raise(word * 64 + lowest + 1);
            return true;
        }
    }
    return false;
}

void tally_spread(void)
{
    tally_apart = bits_spread((uintptr_t)&tally_own, TALLIES_SHARED_LOG) * sizeof(struct tally);
}

void tally_begin(void)
{
    for (size_t word = 0; tally_own == NULL && word < TALLIES / 64; word++)
        if (tally_take(word))
            return;
}

void tally_end(void)
{
    struct tally *own = tally_own;
    if (own == NULL)
        return;
    tally_own = NULL;
    size_t index = (size_t)(own - tallies.own);
    /* release: pairs with tally_take */
    __atomic_fetch_and(&tallies.used[index / 64], ~((uint64_t)1 << index % 64), __ATOMIC_RELEASE);
}

void tally_keep_own(void)
{
    size_t index = tally_own == NULL ? TALLIES : (size_t)(tally_own - tallies.own);
    /* relaxed: there is no other thread */
    for (size_t word = 0; word < TALLIES / 64; word++)
        __atomic_store_n(&tallies.used[word], index / 64 == word ? (uint64_t)1 << index % 64 : 0,
                         __ATOMIC_RELAXED);
}

void tally_add_shared(size_t offset, uint64_t amount)
{
    tally_add_to_shared(offset, amount);
}

static NOINLINE uint64_t sum_of(struct peek *peek, const struct tally *from, size_t count,
                                size_t offset)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += PEEK(peek, *(const uint64_t *)((const char *)&from[i] + offset));
    return sum;
}

uint64_t tallies_sum(struct peek *peek, const struct tallies *from, size_t offset)
{
    size_t end = size_min(PEEK(peek, from->end), TALLIES);
    return sum_of(peek, from->own, end, offset) +
           sum_of(peek, from->shared, TALLIES_SHARED, offset);
}

struct counters counters_read(struct peek *peek, const struct tallies *from)
{
    struct counters read;
    for (size_t at = 0; at < sizeof(read); at += sizeof(uint64_t))
        *(uint64_t *)((char *)&read + at) =
            tallies_sum(peek, from, offsetof(struct tally, counters) + at);
    return read;
}

void events_run(void)
{
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
