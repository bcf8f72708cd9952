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

#include "process.h"
#include "region.h"

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

/* The next ticket; see above for when. */
uint64_t stream_ticket(void);

/* Each does nothing in a process that is not recorded, and leaves errno alone. */
void stream_malloc(enum event_kind kind, const void *block, size_t size);
void stream_aligned(const void *block, size_t size, size_t alignment);
void stream_free(uint64_t ticket, const void *block);
void stream_realloc(uint64_t ticket, const void *old, const void *block, size_t size);

#endif
