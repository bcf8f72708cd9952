/*
 * The profile: which code holds the memory, by samples of what is allocated.
 *
 *     sampler   which allocations are looked at          unwind, cfi   the stack of one
 *     stacks    each stack once                          sites         what a stack's code holds
 *     table, index   the memory of all this              profile       these together
 *
 * The idea: while a profile is taken, malloc's fast path serves nobody: the largest size that it
 * serves is a number in memory (page_map.small_sizes), which is 0 then. So a second path, that
 * counts (magazine/counted.h), sees each request of every thread, from the next one on, and off
 * costs nothing. What is a sample is placed where its free is a slow one as well (heap/sampled.c),
 * and stands in a table here by its address until then.
 *
 * Everything that was found stays in tables that are read without a lock: by the tool, from
 * outside, at any time, also in the last moment of the process.
 *
 * Cost: off none; on a few ns for each allocation, some us for each sample. Thread-safe; takes
 * RANK_PROFILE, and RANK_META inside.
 */
#ifndef SNUG_PROFILE_PROFILE_H
#define SNUG_PROFILE_PROFILE_H

#include "meta/misuse.h"
#include "platform/lock.h"
#include "profile/sampler.h"
#include "profile/sites.h"
#include "profile/stacks.h"

/* Layout: what may be asked of a process from outside (events.wanted.profile). */
enum profile_request { PROFILE_NOTHING, PROFILE_ON, PROFILE_OFF };

/* A sampled block that was not freed. */
struct profile_block {
    struct indexed block; /* key: its address */
    uint64_t size;        /* as asked for */
    float weight;
    uint32_t site;
};

struct profile {
    bool on;
    struct sampler_rate rate; /* its mean is 0 until it is prepared */
    uint64_t random;          /* a counter, of which each draw mixes its own bits */
    struct lock lock;
    struct stacks stacks;
    struct table sites;
    struct site_totals totals;
    struct index blocks;
    uint32_t free_block;     /* entries of blocks that can be used again */
    uint64_t live;           /* blocks in `blocks`; read without the lock */
    struct scratch *scratch; /* where stacks are taken, those that nobody is at */
    uint64_t lost;           /* samples for which there was no room, or that could not be taken */
};

extern struct profile profile;

/* Layout: who looks at requests (watch.h), as bits. */
enum profile_watcher { WATCH_PROFILE = 1, WATCH_GUARDS = 2 };

/* A sum of them: one word for malloc's slow path to look at. */
extern INTERNAL uint32_t profile_watchers;

/* Whoever makes it on has all ready. */
void profile_watch(enum profile_watcher who, bool on);

/* The stack that the calling thread has, as a number of profile.stacks; 0: there was no room, or
 * the thread is taking one already, and a signal came in between. No lock may be held. */
uint32_t profile_stack_here(void);

/* What gaps are drawn from: `mean` bytes between two marks, 0 or 1: each allocation; and a seed.
 * What a first call has set stays. To be called before requests are counted. */
void profile_prepare(size_t mean, uint64_t seed);

/* Begins, or goes on. */
void profile_begin(void);

/* No more samples. Blocks that are samples stay so until they are freed. */
void profile_end(void);

/* Bits for a gap. */
uint64_t profile_draw(void);

/* Puts a block that is a sample into the profile, with the stack that the calling thread has. */
void profile_put(const void *block, size_t size);

/* One was to be put there, and had no memory. */
void profile_miss(void);

/* A block is about to be freed, or resized. True: it was a sample, and is none any more; `*sample`
 * is what it was. No lock may be held. */
bool profile_take(const void *block, struct profile_block *sample);

/* Puts one back, as it was: it could not be resized. */
void profile_put_back(const void *block, const struct profile_block *sample);

/* Fills in where the block at an address was allocated, if it is a sample, or was one of those that
 * were freed last: what a report of misuse asks (meta/misuse.h). */
void profile_tell(uintptr_t address, struct misuse_stack *allocated, struct misuse_stack *freed);

/* Whether there is any. */
static inline bool profile_has_blocks(void)
{
    /* relaxed: who frees a block sees what was written before he got it */
    return UNLIKELY(__atomic_load_n(&profile.live, __ATOMIC_RELAXED) != 0);
}

#endif
