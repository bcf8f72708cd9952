/*
 * Retention: how much of what is idle a client keeps, learned from what was wanted again.
 *
 * The idea: keep an idle unit only while having it again costs more than holding it. Two regrets
 * tell, each turned into a number.
 *   - Units were released, and soon after such units were asked for: they should have been kept.
 *     Released ones are counted as ghosts; asking for new ones while there are ghosts raises
 *     `wanted` by as many. So the first peak goes as it is freed, at once and without anybody's
 *     help later; from the second on, a program that goes up and down keeps what it needs.
 *   - Units were kept, and through a whole epoch nobody took them: they should have gone. `low` is
 *     the least that was kept at any moment of the epoch; what of it lies above the base was not
 *     needed, and `wanted` shrinks by it.
 * How long "soon" and an epoch are depends on how much it is about, and on the price of a unit: as
 * long as having the units again costs more than a few percent of the time that lies between: a
 * second for 64 MiB of pages, an eighth of one for 8 MiB, and SNUG_PURGE_DELAY at most.
 *
 * The bound: base + wanted + room, but no more than is free of a recent peak and its room; the base
 * at least. So what is in use and what is kept never make more together than that, or than what is
 * in use and the base. The room is for what is kept but does not fit what is asked for. It is an
 * eighth of the peak, with which blocks of 1 to 16 MiB in random order go to the system a tenth as
 * often, and what was learned: where units went because the room is so small (`cramped`), to want
 * more is no help, and what is missed of them raises `room`, by an eighth of it and a unit, so that
 * it stops where missing does not cost much any more. All of the room is three eighths of the peak
 * at most, and the base: of few long blocks most of what is kept fits nothing.
 *
 * A depot has a bound of its own for what it keeps. It asks here only what nobody took through an
 * epoch, and its clock goes by fresh memory, too (magazine/arena.c).
 *
 * Source: the low-water mark is that of working sets in J. Bonwick and J. Adams, "Magazines and
 * Vmem" (2001); ghosts are those of N. Megiddo and D. Modha, "ARC" (2003).
 *
 * Sizes are in units of the client's, times in nanoseconds of the heap's clock, which is handed in.
 * Not thread-safe: under a lock of the client's.
 */
#ifndef SNUG_RETENTION_RETENTION_H
#define SNUG_RETENTION_RETENTION_H

#include "base/peek.h"

struct retention {
    uint16_t price; /* nanoseconds that having a unit again costs, its release included */
    bool tight;     /* the bound was last as small as it was for want of room, */
    bool cramped;   /* and when units were last released */
    uint32_t room;  /* learned, besides an eighth of `high`: see limit_room */
    size_t wanted;  /* <= high; read without the lock, too: a hint */
    size_t ghosts;
    uint64_t ghosts_until; /* from then on nobody is missed any more */
    uint64_t epoch;        /* when the present one began */
    size_t low;            /* the least kept in this epoch */
    size_t high;           /* the most in use in this epoch and the last */
    size_t epoch_high;     /* in this one */
};

/* Bytes (machine): less is written in less time than the system needs to drop it. */
#define RETENTION_PURGE_LEAST (32 * KIB)

/* Nanoseconds (machine): being purged and faulted in again costs a page so much where it is dear.
 * Measured were 0.3 us (bare metal) to 1.7 (a virtual machine), and with the dearer one purging
 * never costs much. */
#define RETENTION_PAGE_PRICE 1525

/* Nanoseconds (machine): an object that goes back to its slab and is taken from it again costs so
 * much more than one that waits in a magazine: a part of a lock, and of a miss. */
#define RETENTION_OBJECT_PRICE 15

/* Nanoseconds: an epoch is never shorter, as a tick is a look at all that is kept. */
#define RETENTION_TICK ((uint64_t)20000000)

/* `retention` is zero. */
static inline void retention_init(struct retention *retention, uint16_t price)
{
    retention->price = price;
}

/* How many idle units may be kept; SIZE_MAX if all. What goes next goes for the same reason. */
size_t retention_bound(struct retention *retention, size_t base, size_t in_use);

/* Notes that so many units were released. */
void retention_released(struct retention *retention, size_t units, uint64_t now);

/* Notes that so many new units were taken, for which kept ones might have served. */
void retention_missed(struct retention *retention, size_t units, uint64_t now);

/* Call after every change of what is kept or in use. */
static inline void retention_see(struct retention *retention, size_t kept, size_t in_use)
{
    if (kept < retention->low)
        retention->low = kept;
    if (in_use > retention->epoch_high) {
        retention->epoch_high = in_use;
        retention->high = size_max(retention->high, in_use);
    }
}

/* Forgets what was missed: it says nothing of what comes next. */
static inline void retention_forget(struct retention *retention)
{
    GAUGE_SET(retention->wanted, 0);
    retention->room = 0;
}

/* When the present epoch ends if nothing changes until then. */
uint64_t retention_due(const struct retention *retention, size_t kept, size_t base);

/* Ends the epoch if it is over. True: it was; the bound may be lower now, and `*idle` is what was
 * kept above the base all through it. */
bool retention_tick(struct retention *retention, size_t kept, size_t base, size_t in_use,
                    uint64_t now, size_t *idle);

#endif
