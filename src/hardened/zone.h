/*
 * Address space for hardened objects.
 *
 *     realm   a range from the heap's provider, in 64 units. Zones take units at random places.
 *     zone    the slabs of one class. It is of that class for ever: what an old pointer leads to is
 *             an object of the same size at the same place, or nothing.
 *     slab    a few pages, opened one after the other at random places of the zone. With one in so
 *             many (SNUG_GUARDS) the place behind it becomes a guard: every access to it faults.
 *
 * What is known of the objects lies outside of them: for each a word with its state, and a bit that
 * says whether it is in its slab. So a free can be told from misuse, whatever was written where.
 *
 *     state 0        free, and zero since the system gave it
 *     state 1        free
 *     state n >= 2   in use; the program asked for n - 2 bytes less than the object has
 *     STATE_MAKER    two bits beside that: which function made the block (meta/maker.h)
 *     STATE_LOOKED   set beside that while a check of another thread looks at its canary: who frees
 *                    or resizes the object waits so long
 *     bit set        it is in its slab. Then its state is 0 or 1.
 *     neither in use nor in its slab: it waits in a quarantine or in a thread's magazine.
 *
 * Entropy: of a zone's place in its realm log2(units / zone's units), 6 bits in the first realm of
 * 4 MiB for small classes, beside the 28 bits of where the system maps it (x86-64); of a slab's in
 * its zone up to 6 bits, of an object's in its slab log2(objects), 2 to 8 bits for small ones.
 *
 * Cost: 2 bytes and a bit for each object, 32 bytes for each slab. An empty heap has one realm, of
 * which nothing is touched. Thread-safe; takes RANK_HARD_ZONE, and RANK_META inside.
 */
#ifndef SNUG_HARDENED_ZONE_H
#define SNUG_HARDENED_ZONE_H

#include <stddef.h>

#include "base/list.h"
#include "hardened/hard_class.h"
#include "meta/maker.h"
#include "pageheap/span.h"
#include "platform/lock.h"
#include "provider/provider.h"

/* Layout: states; see above. */
enum {
    STATE_NEW,
    STATE_FREE,
    STATE_LIVE,
    STATE_MAKER_SHIFT = 13,
    STATE_SIZE = (1 << STATE_MAKER_SHIFT) - 1, /* these bits are the state without the marks */
    STATE_LOOKED = 1 << 15
};

_Static_assert(STATE_LIVE + PAGE_BYTES + PAGE_BYTES / 2 < STATE_SIZE,
               "an object has a page and one step more than were asked for at most");

/* Layout: what a slab is. */
enum hard_slab_kind { SLAB_CLOSED, SLAB_OPEN, SLAB_GUARD };

struct hard_slab {
    struct list link; /* open, with objects in it: in its bin's list */
    struct hard_zone *zone;
    uint16_t number; /* in its zone */
    uint16_t free;   /* objects in it == bits set */
    uint8_t kind;
    bool purged;   /* whole, and without memory: new, purged, or its free did it (slab_keep) */
    uint16_t last; /* of classes from HARD_KEPT on: the number that came back last */
};

/* The descriptor of a zone, or of a large block (hard_large.h), which has class 0: the entries of
 * the page map lead to it. `span` says no more than where it lies and in which heap. */
struct hard_zone {
    struct span span;
    /* What a free of a small object reads, in one line of the processor's cache; much of it stands
     * elsewhere, too. In the zone of a large block all of it but `owner` and `row` is 0. */
    uintptr_t start;
    const void *owner;
    uint16_t *states;
    uint32_t bytes, per_slab, slab_rest, slab_shift, by_rest; /* as in `row` */
    uint32_t class;
    const struct hard_class *row; /* that of its class */
    uint32_t slabs_count;
    uint32_t opened; /* slabs that are closed no more */
    uint32_t metas;  /* bytes of all this, as meta_alloc or meta_map gave it */
    uint32_t words;  /* of bits, for each slab */
    bool follows;    /* before it in its realm is another zone, or zeros */
    bool tagged;     /* its blocks have tags (hard_tags.h) */
    uint64_t *bits;
    struct hard_slab *slabs;
    struct hard_zone *next; /* of its bin */
};

_Static_assert(offsetof(struct hard_zone, start) % 64 == 0 &&
                   offsetof(struct hard_zone, row) + sizeof(void *) <=
                       offsetof(struct hard_zone, start) + 64,
               "in one line: descriptors are aligned to their length");

/* Layout: a realm's units have a bit each in one word. */
enum { REALM_UNITS = 64 };

struct hard_realm {
    struct hard_realm *next;
    char *start;
    size_t bytes;
    size_t unit; /* bytes of a unit; a multiple of the system's page */
    uint64_t taken;
};

struct hard_zones {
    struct lock lock;
    const struct provider *provider;
    void *owner;               /* the page heap, as in struct span */
    struct hard_realm *realms; /* the newest first */
    size_t mapped;             /* == sum of their bytes */
    size_t present;            /* bytes of slabs that are not purged, of all classes */
    size_t whole;              /* of them, of those that are whole */
    size_t whole_most;
    uint64_t random;
    uint32_t guards; /* one slab in so many has a guard behind it; 0: none */
};

/* A new zone of a class, all of whose slabs are closed, of about so many bytes, or of less; NULL:
 * no memory. */
struct hard_zone *zone_new(struct hard_zones *zones, size_t class, size_t bytes);

/* Bytes: of the first zone of a class; each later one has twice as much. */
#define ZONE_FIRST (64 * KIB)

/* Bytes: of the largest, whose descriptor is some pages then. */
#define ZONE_MOST (1 * MIB)

/* Opens a closed slab of a zone, at random, and perhaps makes a guard of what follows it; NULL: all
 * are open. The lock of the zone's bin must be held. */
struct hard_slab *zone_open_slab(struct hard_zones *zones, struct hard_zone *zone);

/* Forgets a zone's descriptor; its memory goes with the realms. */
void zone_forget(struct hard_zone *zone);

/* Gives all realms back: the heap ends, or `goes_on` without a block. What its provider does not
 * take it uses again then, but for memory of the system's, in which there are guards. */
void zones_end(struct hard_zones *zones, bool goes_on);

/* Where an address of a zone with a class is: in which slab and object, and how far in it. */
struct hard_place {
    uint32_t slab;
    uint32_t number; /* in its slab; may be per_slab, for what is left over at its end */
    uint32_t inside; /* bytes */
    uint32_t id;     /* in the zone */
};

static ALWAYS_INLINE struct hard_place zone_place(const struct hard_zone *zone, uintptr_t address)
{
    const struct hard_class *row = zone->row;
    size_t offset = address - (uintptr_t)zone->span.start;
    uint32_t slab = hard_divide(offset, row->by_slab);
    size_t rest = offset - (size_t)slab * row->slab_bytes;
    uint32_t number = hard_divide(rest, row->by_bytes);
    return (struct hard_place){slab, number, (uint32_t)(rest - (size_t)number * row->bytes),
                               slab * row->per_slab + number};
}

/* Where an object is in its slab, and in its zone. False: none begins at the address, or it is
 * larger than HARD_FAST_MOST.
 *
 * The zone is a whole number of such slabs. rest * r / 2^32 is the number, as in hard_divide; what
 * it leaves is below r if the address is at the beginning: rest = n * bytes leaves n * e with
 * e = r * bytes - 2^32 < bytes, so less than a slab has bytes; each byte more leaves r more. */
static ALWAYS_INLINE bool zone_place_fast(const struct hard_zone *zone, uintptr_t address,
                                          size_t *number, size_t *id)
{
    size_t offset = address - zone->start, slab = offset >> zone->slab_shift;
    uint64_t product = (offset & zone->slab_rest) * zone->by_rest;
    *number = product >> 32;
    if (UNLIKELY((uint32_t)product >= zone->by_rest) || UNLIKELY(*number >= zone->per_slab))
        return false;
    *id = slab * zone->per_slab + *number;
    return true;
}

/* An object's state and who made it, whoever looks at the object. relaxed: who asks has the object,
 * or is wrong whatever is found. */
static ALWAYS_INLINE uint16_t state_made(const uint16_t *state)
{
    return __atomic_load_n(state, __ATOMIC_RELAXED) & (uint16_t)~STATE_LOOKED;
}

/* The state alone. */
static ALWAYS_INLINE uint16_t state_of(const uint16_t *state)
{
    return __atomic_load_n(state, __ATOMIC_RELAXED) & STATE_SIZE;
}

static ALWAYS_INLINE enum maker state_maker(uint16_t made)
{
    return (enum maker)(made >> STATE_MAKER_SHIFT);
}

/* Whether a place is the beginning of an object, in use or not. */
static ALWAYS_INLINE bool place_is_object(const struct hard_zone *zone, struct hard_place place)
{
    return place.inside == 0 && place.number < zone->row->per_slab &&
           place.slab < zone->slabs_count;
}

static inline uintptr_t slab_start(const struct hard_slab *slab)
{
    return (uintptr_t)slab->zone->span.start +
           (size_t)slab->number * hard_classes[slab->zone->class].slab_bytes;
}

/* Makes pages unreachable, and drops what they hold. False: they are as before; that the system
 * refuses is said once in a process. Only memory from the system has guards: what was taken ahead
 * is to stay present, a file is copied when the process forks, and what a program provides goes
 * back to it. */
bool hard_guard(const struct provider *provider, char *start, size_t bytes);

/* Gives memory back. False: it cannot, and the addresses are lost. */
bool hard_give(const struct provider *provider, char *start, size_t bytes);

#endif
