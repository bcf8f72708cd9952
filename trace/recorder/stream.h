/*
 * stream.h - the events of one thread, written into its slot.
 *
 * An event is a tag byte and LEB128 numbers:
 *
 *     tag        bits 0-2 kind, bit 3: a ticket follows
 *     ticket     difference to the thread's event before, if it is not 1
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
 * Tickets put the events of all threads in one order. There is one counter for each process. A
 * block's ticket is drawn after malloc has returned, and the ticket of a free before free is
 * called.
 * So:
 *   - a free comes after its malloc: the address went from one to the other, so the draws are
 *     ordered, and draws from one counter follow that order;
 *   - a malloc that reuses an address comes after the free that made it possible: draw, free,
 *     malloc, draw.
 * A realloc is both and draws twice: before the call for the old block, after it for the new one.
 * With one ticket it would be wrong either way, as other threads may take the old address, or give
 * back the new one, around the call. A counter in one cache line costs 6 ns with one thread; the
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
