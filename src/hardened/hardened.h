/*
 * Hardened heaps: SNUG_PRESET=hardened, and snug_heap_config's SNUG_HEAP_HARDENED for one heap.
 *
 * The idea: while a block is in use, canaries stand around it (canary.h). Once it is freed it is
 * cleared, waits in a quarantine (wait.h), and must still be zero when it is handed out again. Each
 * free is judged completely when it is called, by what is known of the object outside of it
 * (zone.h): there is one word for each, which goes from in use to free only once.
 *
 *   alloc:  the thread's magazine of the class; still zero? the canary; the state
 *   free:   the page map's zone; an object's beginning, in use? canaries; clear; the thread's
 *           quarantine, and from there back into a magazine, or to the bin
 *
 * Larger objects, and those of threads that have no cache, go to the bins and to the shared
 * quarantine, under a lock of each. Blocks above HARD_MOST have mappings of their own between
 * guards (hard_large.h).
 *
 * A hardened heap has nothing in common with slabs and cells. malloc's fast path finds no class
 * that it may serve, and leaves for here without an instruction more.
 *
 * Thread-safe; takes RANK_HARD_WAIT, RANK_HARD_BIN, RANK_HARD_ZONE, RANK_META, one at a time but
 * for what zone.h says. Reports misuse with no lock held.
 */
#ifndef SNUG_HARDENED_HARDENED_H
#define SNUG_HARDENED_HARDENED_H

#include "hardened/hard_cache.h"
#include "meta/extent.h"
#include "meta/misuse.h"

/* What a hardened heap is made with. */
struct hard_settings {
    const struct provider *provider;
    void *owner; /* its page heap */
    size_t wait_bytes;
    size_t wait_count;
    size_t dirty;     /* bytes: of slabs that are all free, but not purged */
    size_t held_most; /* bytes: that a thread's cache may hold */
    uint32_t guards;
};

/* Makes a hardened heap's state in zero memory, or in that of one that has ended. False: no
 * memory. */
bool hardened_init(struct hardened *hardened, const struct hard_settings *settings);

/* Gives everything back: the heap ends, or `goes_on`, for which hardened_init is called again.
 * Nobody else may use the heap. */
void hardened_end(struct hardened *hardened, bool goes_on);

/* A block of `bytes` at a multiple of `alignment` (a power of two), all zero; NULL: no memory.
 * `cache` may be NULL. */
void *hard_alloc(struct hardened *hardened, struct hard_cache *cache, size_t alignment,
                 size_t bytes);

/* Frees what is at an address in a hardened zone, of which the program has `said` something.
 * `cache` may be NULL. False: it is not freed, and `*misuse` says what is wrong. */
bool hard_free(struct hardened *hardened, struct hard_cache *cache, struct hard_zone *zone,
               uintptr_t address, struct said said, struct misuse *misuse);

/* Notes who made the block at an address, which nobody else has yet. Until then malloc did.
 * (hard_maker.c) */
void hard_set_maker(struct hardened *hardened, uintptr_t address, enum maker maker);

/* Whether nothing was written just before an object: to the end of the object before it (its
 * canary, or zeros if it is free), or to the end of a slab. To be called only while no other thread
 * could use the object before. Otherwise the damage is found when that object is freed or handed
 * out, or by a check. */
bool hard_front_is_sound(const struct hard_zone *zone, struct hard_place place, uintptr_t object);

/* Fills in the bytes that the program asked for, or returns what is wrong with the address. Who
 * made the block stands in what is returned as well. */
struct misuse hard_usable(uintptr_t address, size_t *bytes);

/* The block of a class around an address; false: none is there, or it is a large one.
 * (hard_check.c) */
bool hard_extent(uintptr_t address, struct block_extent *extent);

/* Resizes the block at an address to `bytes` where it is. False: it cannot be, and the block is as
 * before. There must be a block in use at the address. */
bool hard_resize(struct hardened *hardened, uintptr_t address, size_t bytes);

/* ---- The whole ---- */

/* Empties the shared quarantine, and gives free memory back. Returns the bytes. */
size_t hard_trim(struct hardened *hardened);

/* NULL, or what is wrong. If that is a canary, or a free block that was written to, `*misuse` says
 * where; otherwise it is MISUSE_NONE. (hard_check.c) */
const char *hard_check(struct hardened *hardened, struct misuse *misuse);

/* Whether nothing was written to the objects that wait: in the caller's own cache, which may be
 * NULL, and in the quarantine of all threads; otherwise `*misuse` says where. hard_check leaves
 * these out while there are other threads. (hard_check.c) */
bool hard_check_waiting(struct hardened *hardened, const struct hard_cache *own,
                        struct misuse *misuse);

/* Calls `visit` with each block until it returns false; false if it did. (hard_check.c) */
bool hard_visit(struct hardened *hardened, bool (*visit)(void *context, void *block, size_t bytes),
                void *context);

/* Bytes, but for `live_count`; mapped == live + waiting + cached + free + rest. */
struct hard_totals {
    size_t mapped;
    size_t live, live_count; /* objects and large blocks, whole */
    size_t waiting;          /* in quarantines, but for large blocks: two pages each at most */
    size_t cached;           /* in magazines */
    size_t free;             /* of opened slabs, in them */
    size_t rest;             /* never used, guards, ends of slabs, large blocks that wait */
};

/* (hard_totals.c) */
struct hard_totals hard_totals_of(struct peek *peek, const struct hardened *hardened);

/* Every lock of one rank; for fork. */
void hard_each_lock_of(struct hardened *hardened, enum lock_rank rank,
                       void (*act)(struct lock *lock));

#endif
