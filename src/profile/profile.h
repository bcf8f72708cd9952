/*
 * The profile: which code holds the memory, by samples of what is allocated.
 *
 *     sampler   which allocations are looked at          unwind, cfi   the stack of one
 *     stacks    each stack once                          sites         what a stack's code holds
 *     table, index   the memory of all this              profile       these together
 *
 * The idea: while a profile is taken, malloc's fast path serves nobody: the largest size that it
 * serves is a number in memory (page_map.small_sizes), which is 0 then. So a second path, that
 * counts (magazine/counted.h), sees each request of every thread, from the next one on, and a
 * profile that is off costs nothing. A sample is placed where its free is a slow one as well
 * (heap/sampled.c), and stands in a table here by its address until it is freed.
 *
 * All results stay in tables that are read without a lock: by the tool, from outside, at any time,
 * also in the last moment of the process.
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
    uint64_t random;          /* a counter; each draw mixes its next value */
    struct lock lock;
    struct stacks stacks;
    struct table sites;
    struct site_totals totals;
    struct index blocks;
    uint32_t free_block;     /* entries of blocks that can be used again */
    uint64_t live;           /* blocks in `blocks`; read without the lock */
    struct scratch *scratch; /* buffers for stacks that nobody uses now */
    uint64_t lost;           /* samples for which there was no room, or that could not be taken */
};

extern struct profile profile;

/* Layout: who looks at requests (watch.h), as bits. */
enum profile_watcher { WATCH_PROFILE = 1, WATCH_GUARDS = 2 };

/* The sum of those who look: one word for malloc's slow path to read. */
extern INTERNAL uint32_t profile_watchers;

/* Turns looking on or off for one of them. All that it needs must be ready before it is turned
 * on. */
void profile_watch(enum profile_watcher who, bool on);

/* The stack of the calling thread, as a number of profile.stacks. 0: there was no room, or this is
 * a signal handler that has interrupted the profile in the same thread. No lock may be held. */
uint32_t profile_stack_here(void);

/* Sets what gaps are drawn from: `mean` bytes between two marks, 0 or 1: each allocation is a
 * sample; and a seed. Only the first call sets anything. To be called before requests are
 * counted. */
void profile_prepare(size_t mean, uint64_t seed);

/* Begins a profile, or goes on with it. */
void profile_begin(void);

/* Takes no more samples. Blocks that are samples stay so until they are freed. */
void profile_end(void);

/* 64 random bits, for a gap. */
uint64_t profile_draw(void);

/* Puts a block that is a sample into the profile, with the stack that the calling thread has. */
void profile_put(const void *block, size_t size);

/* Counts a sample as lost: there was no memory for its block. */
void profile_miss(void);

/* A block is about to be freed, or resized. True: it was a sample, and is none any more; `*sample`
 * is what it was. No lock may be held. */
bool profile_take(const void *block, struct profile_block *sample);

/* Puts a sample back as it was: it could not be resized. */
void profile_put_back(const void *block, const struct profile_block *sample);

/* Fills in where the block at an address was allocated, if it is a sample, or was one of those that
 * were freed last; `freed` stays empty. Reports of misuse call it (meta/misuse.h). */
void profile_tell(uintptr_t address, struct misuse_stack *allocated, struct misuse_stack *freed);

/* Whether any block is a sample. */
static inline bool profile_has_blocks(void)
{
    /* relaxed: who frees a block sees what was written before he got it */
    return UNLIKELY(__atomic_load_n(&profile.live, __ATOMIC_RELAXED) != 0);
}

#endif
