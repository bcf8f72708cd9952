/*
 * Bins: the free objects of one hardened class that are in their slabs.
 *
 * Objects are taken in random order: from the first slab that has some, from a random one on, and
 * then shuffled. Of the classes that threads keep no magazines of (HARD_KEPT and above), the object
 * that came back last is taken first: it was cleared not long ago, so the look whether it is still
 * zero finds it in the processor's caches. Objects come back through a quarantine only (wait.h), so
 * that nobody can tell when. A slab of which all objects are back is purged if such slabs have more
 * bytes than SNUG_DIRTY says, and than a share of those in use. Before that its objects are looked
 * at for what was written to them meanwhile.
 *
 * Cost: O(1) for each object, but for the search of a bit in a slab of up to 256. Thread-safe;
 * takes RANK_HARD_BIN, and those of zone.h inside.
 */
#ifndef SNUG_HARDENED_BIN_H
#define SNUG_HARDENED_BIN_H

#include "hardened/zone.h"

/* An object that is not in its slab: its address above its class, and the place of its state. */
struct hard_entry {
    uint64_t word;
    uint16_t *state;
};

/* Layout: of a class; addresses of the page map have no more bits than are left. */
enum { ENTRY_CLASS_BITS = 16 };

static ALWAYS_INLINE uintptr_t entry_object(const struct hard_entry *entry)
{
    return entry->word >> ENTRY_CLASS_BITS;
}

static ALWAYS_INLINE size_t entry_hard_class(const struct hard_entry *entry)
{
    return (uint16_t)entry->word;
}

static ALWAYS_INLINE struct hard_entry hard_entry_of(uintptr_t object, size_t class,
                                                     uint16_t *state)
{
    return (struct hard_entry){object << ENTRY_CLASS_BITS | class, state};
}

struct hard_bin {
    struct lock lock;
    uint32_t class;
    struct list open; /* slabs that have free objects */
    struct hard_zone *zones;
    size_t zone_bytes; /* of the next zone */
    size_t total;      /* objects of open slabs */
    size_t in_slabs;   /* of them, in their slabs */
    uint64_t random;
};

void hard_bin_init(struct hard_bin *bin, size_t class, uint64_t random);

/* Takes up to `count` objects. 0: there is no memory. */
size_t hard_bin_take(struct hard_bin *bin, struct hard_zones *zones, struct hard_entry *entries,
                     size_t count);

/* Puts objects back that are not in use. Returns 0, or the address of an object that was written to
 * while it was free: its slab was to be purged, and is not. */
uintptr_t hard_bin_put(struct hard_bin *bin, struct hard_zones *zones,
                       const struct hard_entry *entries, size_t count);

/* Reports a write into a free object of a class. */
void hard_report_written(uintptr_t address, size_t class);

/* Purges all slabs of which every object is back. Returns the bytes. */
size_t hard_bin_trim(struct hard_bin *bin, struct hard_zones *zones);

/* Waits until a check by another thread, which holds the lock of the bin, has looked at all of it.
 */
void hard_bin_await(struct hard_bin *bin);

/* Changes the state of an object of the bin from `made` to `next`. False: somebody else has changed
 * it. */
static ALWAYS_INLINE bool state_change(struct hard_bin *bin, uint16_t *state, uint16_t made,
                                       uint16_t next)
{
    if (lock_is_alone()) {
        __atomic_store_n(state, next, __ATOMIC_RELAXED);
        return true;
    }
    uint16_t found = made;
    /* acquire: what the others did to the object before they gave it away */
    while (UNLIKELY(!__atomic_compare_exchange_n(state, &found, next, false, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_RELAXED))) {
        if (found != (made | STATE_LOOKED))
            return false;
        hard_bin_await(bin);
        found = made;
    }
    return true;
}

/* In a child of fork: clears and puts back an object from the cache of a thread that the child does
 * not have. Does nothing if the entry is not whole, or if what it says of the object is no longer
 * true: that thread may have been in the middle of anything. */
void hard_bin_adopt(struct hard_bin *bin, struct hard_zones *zones, const struct hard_entry *entry);

#endif
