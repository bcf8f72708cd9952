/*
 * Counters: they are only written here, and printed by the report layer.
 *
 * The idea: a thread with a cache has a tally of its own, which it adds to by plain stores; a
 * reader sums all tallies. An atomic addition would wait for all stores before it, also for those
 * to memory that nobody has touched yet, and a slow path counts up to eight times. Threads without
 * a tally, because they have just begun, have ended, or are more than there are tallies, share a
 * few by atomics; a hash of the thread says which. (With one for all of them, two busy
 * threads beside a hundred spent a third of their time on taking its lines from each other.) A
 * tally keeps its counts when its thread ends, and the next thread goes on with it: nothing is ever
 * moved from one tally to another, so a reader misses nothing.
 *
 * Cost: one load and one addition for a count; 1.8 KiB of zero pages for each thread at a time.
 * Nothing is decided by a counter.
 */
#ifndef SNUG_STATS_STATS_H
#define SNUG_STATS_STATS_H

#include "base/peek.h"

#define COUNTER(name, text) uint64_t name;
struct counters {
#include "stats/counters.def"
};
#undef COUNTER

/* What programs ask for, by small class: every request that meets an empty magazine is noted, which
 * is one of up to a hundred. `bytes` over `requests` is what a block of the class is asked for on
 * the average, as far as such a sample tells. */
enum { SAMPLE_CLASSES = 65 };

struct sample {
    uint64_t requests, bytes;
};

/* Layout: a thread's tally shares no cache line with another's. */
struct tally {
    struct counters counters;
    struct sample samples[SAMPLE_CLASSES];
} __attribute__((aligned(64)));

/* Layout: of the tallies. */
enum {
    TALLIES = 128, /* threads that sleep keep theirs, so more than processors */
    TALLIES_SHARED_LOG = 4,
    TALLIES_SHARED = 1 << TALLIES_SHARED_LOG /* for all who have none of their own */
};

struct tallies {
    uint64_t used[TALLIES / 64]; /* bit i % 64 of [i / 64]: own[i] is a thread's */
    uint64_t end;                /* of `own` none from here on was ever used */
    struct tally own[TALLIES];   /* the first of them first: a program of one thread touches it */
    struct tally shared[TALLIES_SHARED];
};

extern struct tallies tallies;

/* The thread's own; NULL: it has none. */
extern INTERNAL __thread struct tally *tally_own __attribute__((tls_model("initial-exec")));

/* Gives the calling thread a tally if there is one left; takes it back at the thread's end. */
void tally_begin(void);
void tally_end(void);

/* In a child of fork: the tallies of threads that it does not have are free. */
void tally_keep_own(void);

/* Bytes from the first shared tally to the one that the calling thread shares with others. */
extern INTERNAL __thread size_t tally_apart __attribute__((tls_model("initial-exec")));

/* Chooses that, by a hash of the thread: until then it is the first. */
void tally_spread(void);

static ALWAYS_INLINE struct tally *tally_shared(void)
{
    return (struct tally *)((char *)tallies.shared + tally_apart);
}

/* Adds to the word at `offset` there. */
static ALWAYS_INLINE void tally_add_to_shared(size_t offset, uint64_t amount)
{
    /* relaxed: a total that nothing is decided by */
    __atomic_fetch_add((uint64_t *)((char *)tally_shared() + offset), amount, __ATOMIC_RELAXED);
}

/* The same as a function, for code that is made small. */
void tally_add_shared(size_t offset, uint64_t amount);

/* Adds to the word at `offset` in a thread's own tally, or, if `own` is NULL, in a shared one. */
static ALWAYS_INLINE void tally_add(struct tally *own, size_t offset, uint64_t amount)
{
    if (LIKELY(own != NULL))
        GAUGE_ADD(*(uint64_t *)((char *)own + offset), amount);
    else
#ifdef __OPTIMIZE_SIZE__
        tally_add_shared(offset, amount);
#else
        tally_add_to_shared(offset, amount);
#endif
}

/* Counts in a tally that the caller has looked up, to count several things. */
#define COUNT_IN(own, name, amount) \
    tally_add((own), offsetof(struct tally, counters.name), (uint64_t)(amount))

#define COUNT(name, amount) COUNT_IN(tally_own, name, amount)

static ALWAYS_INLINE void sample_request_in(struct tally *own, size_t class, size_t bytes)
{
    size_t at = offsetof(struct tally, samples) + class * sizeof(struct sample);
    tally_add(own, at + offsetof(struct sample, requests), 1);
    tally_add(own, at + offsetof(struct sample, bytes), bytes);
}

/* Both words are added to in one branch, as everywhere where several things are counted. */
static ALWAYS_INLINE void sample_request(size_t class, size_t bytes)
{
    struct tally *own = tally_own;
    if (LIKELY(own != NULL))
        sample_request_in(own, class, bytes);
    else
        sample_request_in(NULL, class, bytes);
}

/* The sum over the tallies of `from`, which may be another process's, of the word at `offset`. */
uint64_t tallies_sum(struct peek *peek, const struct tallies *from, size_t offset);

#define COUNTED(name) tallies_sum(NULL, &tallies, offsetof(struct tally, counters.name))

/* All counters at once. */
struct counters counters_read(struct peek *peek, const struct tallies *from);

#endif
