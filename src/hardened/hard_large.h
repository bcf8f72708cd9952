/*
 * Hardened blocks above HARD_MOST: each in a mapping of its own, between two guards.
 *
 * A block that is freed is shut as a whole: every access to it faults, and its addresses wait among
 * the others of that kind, up to LARGE_WAIT of them. One that has waited for a while serves a
 * request of as many pages, or of somewhat fewer, at random: what is left over stays shut behind
 * it. What is too many goes back to the system.
 *
 * The idea: the call that shuts or opens pages costs less than the cutting of a mapping in three,
 * or its joining, and than the page faults afterwards. So a block that has waited once is a mapping
 * of its own for good. Of its pages the first, where programs begin to write, and the last, where
 * the canary is, are cleared and stay; the others go back at once.
 *
 * A block that grows moves, and has an eighth more of addresses behind it from then on, shut, into
 * which it grows further. So one that grows by a page at a time moves some times, not each time.
 *
 * The descriptor is a zone of class 0; the entry of the block's first page leads to it, also while
 * it waits.
 *
 * Cost: three short system calls for a block whose length is asked for again and again, otherwise
 * five, and its page faults. Thread-safe; takes RANK_HARD_ZONE, and RANK_META inside.
 */
#ifndef SNUG_HARDENED_HARD_LARGE_H
#define SNUG_HARDENED_HARD_LARGE_H

#include "base/list.h"
#include "hardened/hard_maker.h"
#include "hardened/zone.h"
#include "meta/misuse.h"

/* Blocks: that were freed and wait, so many mappings with two pages of memory each at most. */
enum { LARGE_WAIT = 64 };

/* Frees: of other large blocks, before an address is handed out again. */
enum { LARGE_WAIT_LEAST = LARGE_WAIT / 2 };

/* Blocks: that are a mapping of their own between two others at a time, of the 65,530 mappings that
 * a process may have. */
enum { LARGE_APART = 1024 };

/* What a block is. */
enum hard_block_state {
    BLOCK_LIVE,
    BLOCK_PURGED, /* it waits, and is zero: its provider's memory cannot be made unreachable */
    BLOCK_SHUT,   /* it waits, unreachable */
    BLOCK_GUARD   /* it waits, unreachable for good: to shut it was a mapping too many */
};

struct hard_block {
    struct hard_zone zone; /* its span has neither the guards nor what is left over behind it */
    struct list link;      /* in hard_large.blocks */
    char *start;           /* the mapping */
    size_t bytes;
    size_t room;    /* bytes that it may have, from the span's start on */
    size_t ballast; /* bytes behind it, which are opened and shut with it (hard_large.c) */
    size_t requested;
    uint64_t freed; /* hard_large.frees when it was */
    enum hard_block_state state;
    enum maker maker;
    bool apart; /* its guards are not joined with it (os_set_apart) */
};

struct hard_large {
    struct lock lock;
    const struct provider *provider;
    void *owner;
    struct list blocks; /* in use */
    bool refused; /* the provider had no memory when it was asked last: nothing waits, since others
                     may need the addresses, as for a thread's stack */
    struct hard_block *waiting[LARGE_WAIT];
    unsigned waits;
    uint64_t frees;
    uint64_t random;
    size_t grows;  /* bytes that a block was to have and had no room for: it is asked for next */
    size_t mapped; /* == sum of `bytes` of those in use and those that wait */
    size_t waiting_bytes;
    size_t count, requested; /* of those in use */
    unsigned apart;          /* blocks that are set apart */
};

void hard_large_init(struct hard_large *large, const struct provider *provider, void *owner,
                     uint64_t random);

/* As hard_alloc. */
void *hard_large_alloc(struct hard_large *large, size_t alignment, size_t bytes);

/* As hard_free, hard_usable and hard_resize; `zone` is what the page map has for the address. */
struct misuse hard_large_free(struct hard_large *large, struct hard_zone *zone, uintptr_t address,
                              struct said said);
struct misuse hard_large_usable(const struct hard_zone *zone, uintptr_t address, size_t *bytes);
bool hard_large_resize(struct hard_large *large, struct hard_zone *zone, size_t bytes);

/* As hard_set_maker. */
void hard_large_set_maker(struct hard_zone *zone, enum maker maker);

/* What is wrong with a live block's canary; MISUSE_NONE: nothing. */
struct misuse hard_large_damage(const struct hard_block *block);

/* Gives what waits back to the provider. `all`: what is in use as well. */
void hard_large_drop(struct hard_large *large, bool all);

#endif
