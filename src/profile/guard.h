/*
 * Guarded blocks: a few, chosen by chance, of which every wrong touch is a fault.
 *
 *     +-------+------ slot ------+-------+------ slot ------+-------+
 *     | guard |  shut    | block | guard | block |   shut   | guard |
 *     +-------+----------+-------+-------+-------+----------+-------+
 *
 * The idea: a block lies in a slot of its own, against the guard behind it or, by chance, against
 * the one before it, so that the first byte past that end cannot be touched. Once the block is
 * freed none of it can, until its slot is needed again; the slots that have been free longest are
 * used first. So a wrong access stops at the instruction that makes it, in production, for the
 * price of one allocation in some thousands: with enough programs, or enough time, every fault that
 * is repeated is met. What alignment leaves between the block and its guard, and all else of its
 * pages, holds a pattern, which is looked at when the block is freed. Source: Electric Fence (B.
 * Perens, 1987), and GWP-ASan (K. Serebryany et al., "GWP-ASan: Sampling-Based Detection of
 * Memory-Safety Bugs in Production", 2023), for the chance.
 *
 * The slots' pages have a class byte of the page map for which no magazine has room, as those of
 * other heaps' blocks, and no entry. So free finds them on its slow path, and needs no test for
 * them on the fast one.
 *
 * Cost: off none. On a few ns for each allocation, as for a profile; for a guarded block some us:
 * two stacks, five system calls each at its allocation and its free, a page fault. Memory:
 * guard.most blocks of at most GUARD_BYTES; addresses: GUARD_SLOTS_PER_BLOCK times as many slots.
 * Thread-safe; takes RANK_PROFILE, and RANK_META inside. While a thread is in here it gets no
 * signals, so handlers may allocate and free.
 */
#ifndef SNUG_PROFILE_GUARD_H
#define SNUG_PROFILE_GUARD_H

#include "meta/misuse.h"
#include "platform/lock.h"
#include "profile/sampler.h"

/* Bytes: of a block at most, and of its slot: of blocks that are longer few are allocated, and
 * their ends are those of pages anyway. */
#define GUARD_BYTES (16 * KIB)

/* Slots: for each block that there may be at a time; so many blocks later a freed one's slot is
 * used again. It costs addresses, no memory. */
enum { GUARD_SLOTS_PER_BLOCK = 16 };

enum guard_state { GUARD_UNUSED, GUARD_LIVE, GUARD_FREED };

/* The last block of a slot. */
struct guard_block {
    uintptr_t start; /* of the block */
    size_t bytes;
    uint32_t state; /* enum guard_state; written with release, after all else here */
    uint32_t next;  /* number of the next free slot, plus 1; 0: none */
    uint32_t taken_stack, freed_stack; /* of profile.stacks; 0: there was no room */
    uint32_t taken_thread, freed_thread;
    bool reported; /* a fault was, and no other will be */
};

struct guard {
    struct sampler_rate rate; /* requests between two guarded blocks; the most until it begins */
    uint64_t random;
    struct lock lock;
    uintptr_t start, bytes; /* of all slots and guards; 0 until there are some */
    size_t page, slot;      /* bytes: of a guard, and of a slot */
    struct guard_block *blocks;
    uint32_t slots, fresh; /* how many there are, and how many were never used */
    uint32_t first_free, last_free;
    uint32_t live, most;                /* live + free + fresh == slots; live <= most */
    uint64_t live_bytes, taken, missed; /* missed: there was no room */
    uint64_t reports;
};

extern INTERNAL struct guard guard;

/* Begins. To be called once, before any request is counted: it does not end. There are at most
 * `most` blocks at a time, one of `every` allocations on average. False: no memory. */
bool guard_begin(size_t every, size_t most, uint64_t seed);

/* A guarded block, all zero. NULL: it does not fit, or there are too many. */
void *guard_alloc(size_t bytes, size_t alignment);

/* Whether an address is in a slot or a guard. */
static inline bool guard_has(uintptr_t address)
{
    /* relaxed: written once, before anybody had an address of these */
    return address - __atomic_load_n(&guard.start, __ATOMIC_RELAXED) <
           __atomic_load_n(&guard.bytes, __ATOMIC_RELAXED);
}

/* The bytes of the block at an address for which guard_has, or what is wrong with it. */
struct misuse guard_usable(uintptr_t address, size_t *bytes);

/* Frees the block at an address for which guard_has; reports what is wrong, as found by `call`. */
void guard_free(uintptr_t address, const char *call);

/* NULL, or what is wrong. */
const char *guard_check(void);

/* In a child of fork: other threads that were about to report are not in it. */
void guard_fork_in_child(void);

/* ---- What guard_report.c tells of a block ---- */

enum guard_fault {
    GUARD_SOUND,
    GUARD_OVERFLOW,
    GUARD_UNDERFLOW,
    GUARD_USE_AFTER_FREE,
    GUARD_DOUBLE_FREE
};

struct guard_finding {
    enum guard_fault fault;
    uintptr_t address;   /* that was touched, or written to */
    size_t distance;     /* bytes from the end that was passed to `address`, its byte included */
    bool at_free;        /* found when the block was freed, not when it happened */
    const void *context; /* ucontext_t of the thread at that moment; NULL: it is here */
};

void guard_report(const struct guard_block *block, const struct guard_finding *finding);

#endif
