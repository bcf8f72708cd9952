/*
 * region.h - the memory that a recorded program shares with `snug record`.
 *
 * The idea: the tool makes one file in memory and reads it; the recorder maps it into the program.
 * It is cut into slots. A thread takes a free slot, appends its events, and hands it over when it
 * is full; the tool empties it and frees it again. What a program has written is in the tool's
 * hands at once, without any system call, so that nothing is lost when the program is killed, calls
 * _exit or becomes another one, and a program that closes all descriptors is recorded all the same.
 *
 *     FREE --recorder--> OWNED --recorder--> FULL --tool--> FREE
 *                          '--tool, once the owner has died--^
 *
 * `used` counts the bytes of whole events only, and is published after they are written; so an
 * OWNED slot can be read up to there at any time, also after its owner was killed in mid-event.
 * The slot with the lowest index is taken first, which keeps the memory as small as the backlog.
 *
 * The Rust side of this layout is tool/src/trace/region.rs; both check REGION_VERSION.
 */
#ifndef SNUG_TRACE_REGION_H
#define SNUG_TRACE_REGION_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* The variable of the environment that names the file. It does not begin with SNUG_, since the
 * library would take that for an option of its own. */
#define REGION_VARIABLE "LIBSNUGRECORD_REGION"

/* There if all processes are to be recorded: the name of the tool's pid namespace, what
 * /proc/self/ns/pid leads to. By it a process that finds no file knows whether the recording is
 * over, or is out of its reach. */
#define REGION_NAMESPACE_VARIABLE "LIBSNUGRECORD_NAMESPACE"

#define REGION_MAGIC UINT64_C(0x4e49474552475553)

enum {
    REGION_VERSION = 3,
    REGION_STATES = 4096, /* where the states begin, in bytes */
    SLOT_FREE = 0,
    SLOT_OWNED = 1,
    SLOT_FULL = 2,
    SLOT_START = 1,  /* kind: who the process is, see process.c */
    SLOT_EVENTS = 2, /* kind: events, see stream.h */
};

struct region_slot {
    uint32_t process; /* of the recording, from 1; another one after exec */
    uint32_t thread;  /* of the process, from 1 */
    uint32_t kind;
    _Atomic uint32_t used; /* bytes of data */
    uint64_t ticket;       /* the events' first ticket counts from here */
    uint64_t time;         /* when the slot was taken, CLOCK_MONOTONIC, in ns */
    uint64_t unused[4];
    uint8_t data[];
};

struct region {
    uint64_t magic;
    uint32_t version;
    uint32_t slot_size;  /* bytes, with the header */
    uint32_t slot_count; /* more threads than this cannot be recorded at once */
    uint32_t slots;      /* where the slots begin, in bytes */
    uint32_t children;   /* record every process, not only the first */
    _Atomic uint32_t first_pid;
    _Atomic uint32_t processes; /* numbers handed out */
    _Atomic uint32_t closed;    /* the recording is over */
    _Atomic uint32_t submitted; /* slots, ever; futex: the tool waits for it to change */
    _Atomic uint32_t freed;     /* of those; futex: the recorder waits for it to change */
    _Atomic uint32_t beat;      /* counts the tool's rounds: it is alive */
    uint32_t times;             /* each event is written with its time */
    _Atomic uint64_t lost;      /* events that found no slot */
};

static_assert(sizeof(struct region_slot) == 64, "the tool reads it");
static_assert(offsetof(struct region, lost) == 56, "the tool reads it");

static inline _Atomic uint32_t *region_state(struct region *region, uint32_t index)
{
    return (_Atomic uint32_t *)((char *)region + REGION_STATES) + index;
}

static inline struct region_slot *region_slot(struct region *region, uint32_t index)
{
    return (struct region_slot *)((char *)region + region->slots +
                                  (size_t)index * region->slot_size);
}

#endif
