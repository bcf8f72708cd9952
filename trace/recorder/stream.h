/*
 * stream.h - the events of one thread, written into its slot.
 *
 * An event is a tag byte and LEB128 numbers:
 *
 *     tag        bits 0-2 kind, bit 3: a ticket follows, bit 4: a time follows
 *     ticket     difference to the thread's event before, if it is not that of its kind: 1 for
 *                FREE and REALLOC, 0 for the others
 *     time       if the recording has times: ns since the event before, or since the slot's time
 *     MALLOC     size, address
 *     CALLOC     size, address
 *     ALIGNED    log2 of the alignment (one byte), size, address
 *     FREE       address
 *     REALLOC    old address, size, new address, second ticket - first ticket
 *
 * An address is in units of 8 bytes, as no two blocks of any malloc begin in the same 8 bytes, and
 * written as the difference to the address before it in the slot, zigzag-coded. The first event of
 * a slot counts from the slot's ticket and from address 0, so each slot can be read without the
 * others.
 *
 * Tickets put the events of all threads in one order. There is one counter for each process. A free
 * draws the next ticket before free is called; a block gets the last ticket that was drawn, read
 * after malloc has returned, and comes after the free that drew it. So:
 *   - a free comes after its malloc: the address went from one to the other, so the draw comes
 * after the reading, and gives more than what was read;
 *   - a malloc that reuses an address comes after the free that made it possible: draw, free,
 *     malloc, reading, which sees that draw or a later one.
 * What happens to an address is malloc and free in turn, so one of two that follow each other
 * always draws. Blocks of different threads that got the same ticket are at different addresses,
 * and their order does not matter.
 *
 * A realloc is both: it draws before the call for the old block, and reads after it for the new
 * one. With one ticket it would be wrong either way, as other threads may take the old address, or
 * give back the new one, around the call. A draw costs 5 ns with one thread, a reading nothing; the
 * time-stamp counter would be cheaper between cores, but neither its order between cores nor its
 * place between other instructions is promised everywhere.
 */
#ifndef SNUG_TRACE_STREAM_H
#define SNUG_TRACE_STREAM_H

#include "next.h"
#include "process.h"
#include "region.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>

enum event_kind {
    EVENT_MALLOC = 1,
    EVENT_CALLOC = 2,
    EVENT_ALIGNED = 3,
    EVENT_FREE = 4,
    EVENT_REALLOC = 5,
};

enum {
    EVENT_TICKET_FOLLOWS = 1 << 3,
    EVENT_TIME_FOLLOWS = 1 << 4,
    EVENT_LIMIT = 64, /* no event is longer, in bytes */
};

/* Prepares for threads; false if the system has no more keys. */
bool stream_start(void);

/* In a child: its threads are numbered anew. */
void stream_forget_threads(void);

/* CLOCK_MONOTONIC in ns. */
uint64_t stream_time(void);

/* What a thread writes with. */
struct stream {
    uint8_t *at;         /* where the next event begins */
    uint8_t *limit;      /* end of the slot */
    uint8_t *fast_limit; /* the same; NULL: each event goes the slow way */
    struct region_slot *slot;
    uint64_t ticket;   /* of the last event */
    uintptr_t address; /* the last one written */
    uint32_t process;  /* that the slot and the number of the thread belong to */
    uint32_t thread;
    uint32_t to_skip; /* events that are lost without another look for a slot */
    bool busy;        /* in here already: what pthread_setspecific allocates is not recorded */
    bool ended;       /* the thread's keys are being destroyed */
    uint64_t time;    /* of the last event, if events have times */
};

extern _Thread_local struct stream stream;

/* Alone in its lines: each draw takes them away from the other processors, which would miss
 * whatever else is in them at each event. Bytes: processors fetch lines in pairs. */
enum { LINES_APART = 128 };
struct tickets {
    alignas(LINES_APART) _Atomic uint64_t drawn;
    char rest[LINES_APART - sizeof(uint64_t)];
};

extern struct tickets tickets;

/* Draws the next ticket; see above for when. Without a lock in a process of one thread: the lock
 * was most of what recording costs a loop that allocates. */
static inline uint64_t stream_ticket(void)
{
    if (*next_single_threaded != 0) {
        uint64_t ticket = atomic_load_explicit(&tickets.drawn, memory_order_relaxed) + 1;
        atomic_store_explicit(&tickets.drawn, ticket, memory_order_relaxed);
        return ticket;
    }
    /* relaxed: all draws from one counter have one order, which agrees with happens-before */
    return atomic_fetch_add_explicit(&tickets.drawn, 1, memory_order_relaxed) + 1;
}

/* The last ticket that was drawn, before anything that this thread knows of. */
static inline uint64_t stream_ticket_read(void)
{
    /* relaxed: a draw that happens before this is seen, one that happens after gives more */
    return atomic_load_explicit(&tickets.drawn, memory_order_relaxed);
}

struct stream_event {
    enum event_kind kind;
    uint64_t ticket;
    uintptr_t block;    /* of a realloc the old one */
    size_t size;        /* not of a free */
    uint8_t alignment;  /* its logarithm, of an aligned block */
    uintptr_t moved_to; /* of a realloc */
    uint64_t second;    /* ticket, of a realloc */
};

/* Of two to four bytes, without a branch that depends on how many: with sizes and addresses that
 * vary it would be mispredicted at each number. Writes four bytes. */
static inline uint8_t *stream_put_four(uint8_t *at, uint32_t number)
{
    uint32_t bytes = ((38u - (uint32_t)__builtin_clz(number | 1)) * 37) >> 8; /* of 7 bits each */
    uint32_t spread = (number & 0x3fff) | (number & 0xfffc000) << 2;
    spread = (spread & 0x7f007f) | (spread & 0x3f803f80) << 1;
    spread |= 0x80808080u & ((1u << (8 * bytes - 8)) - 1); /* all but the last go on */
    for (int i = 0; i < 4; i++)                            /* one store: gcc and clang see it */
        at[i] = (uint8_t)(spread >> 8 * i);
    return at + bytes;
}

uint8_t *stream_put_long(uint8_t *at, uint64_t number);

static inline uint8_t *stream_put_number(uint8_t *at, uint64_t number)
{
    if (number < 0x80) {
        *at = (uint8_t)number;
        return at + 1;
    }
    if (__builtin_expect(number < UINT64_C(1) << 28, true))
        return stream_put_four(at, (uint32_t)number);
    return stream_put_long(at, number);
}

static inline uint8_t *stream_put_address(uint8_t *at, uintptr_t block)
{
    uintptr_t address = block >> 3;
    int64_t step = (int64_t)(address - stream.address);
    stream.address = address;
    return stream_put_number(at, (uint64_t)step << 1 ^ (uint64_t)(step >> 63));
}

/* There is room. Of constant kinds most of this is nothing. */
static inline __attribute__((always_inline)) void stream_write(struct stream_event event,
                                                               bool timed, uint64_t time)
{
    bool draws = event.kind == EVENT_FREE || event.kind == EVENT_REALLOC;
    uint8_t *at = stream.at, *tag = at++;
    uint64_t step = event.ticket - stream.ticket;
    stream.ticket = event.ticket;
    *tag = (uint8_t)event.kind;
    if (step != draws) {
        *tag |= EVENT_TICKET_FOLLOWS;
        at = stream_put_number(at, step);
    }
    if (timed) {
        *tag |= EVENT_TIME_FOLLOWS;
        at = stream_put_number(at, time - stream.time);
        stream.time = time;
    }
    if (event.kind == EVENT_ALIGNED)
        *at++ = event.alignment;
    if (event.kind == EVENT_REALLOC)
        at = stream_put_address(at, event.block);
    if (event.kind != EVENT_FREE)
        at = stream_put_number(at, event.size);
    at = stream_put_address(at, event.kind == EVENT_REALLOC ? event.moved_to : event.block);
    if (event.kind == EVENT_REALLOC) {
        at = stream_put_number(at, event.second - event.ticket);
        stream.ticket = event.second;
    }
    stream.at = at;
    /* release: the bytes are there for whoever reads up to `used` */
    atomic_store_explicit(&stream.slot->used, (uint32_t)(at - stream.slot->data),
                          memory_order_release);
}

/* Where there is no room, where events have times, in a thread that ends, after a fork. The members
 * of an event one by one, in registers: as a whole it would stand in memory each time. */
void stream_write_slowly(uint32_t kind_and_alignment, uint64_t ticket, uintptr_t block, size_t size,
                         uintptr_t moved_to, uint64_t second);

/* Does nothing in a process that is not recorded, and leaves errno alone. Calls nothing where there
 * is room, so that no registers are saved for it. */
static inline __attribute__((always_inline)) void stream_record(struct stream_event event)
{
    if (__builtin_expect(stream.process == process_number() &&
                             stream.fast_limit - stream.at >= EVENT_LIMIT,
                         true))
        stream_write(event, false, 0);
    else
        stream_write_slowly(event.kind | (uint32_t)event.alignment << 8, event.ticket, event.block,
                            event.size, event.moved_to, event.second);
}

#endif
