/*
 * stream.c - writes the events of each thread; see stream.h.
 */
#include "stream.h"

#include "slots.h"

#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <time.h>

enum { SKIPPED_WITHOUT_SLOT = 10000 };

struct stream {
    uint8_t *at;    /* where the next event begins */
    uint8_t *limit; /* end of the slot */
    struct region_slot *slot;
    uint64_t ticket;   /* of the last event */
    uintptr_t address; /* the last one written */
    uint32_t process;  /* that the slot and the number of the thread belong to */
    uint32_t thread;
    uint32_t to_skip; /* events that are lost without another look for a slot */
    bool busy;        /* in here already: what pthread_setspecific allocates is not recorded */
    bool ended;       /* the thread's keys are being destroyed */
    bool timed;       /* each event has its time */
    uint64_t time;    /* of the last event, if so */
};

static _Thread_local struct stream stream;

/* Alone in its lines: each draw takes them away from the other processors, which would miss
 * whatever else is in them at each event. Bytes: processors fetch lines in pairs. */
enum { LINES_APART = 128 };
static struct {
    alignas(LINES_APART) _Atomic uint64_t drawn;
    char rest[LINES_APART - sizeof(uint64_t)];
} tickets = {.drawn = 1};

static _Atomic uint32_t threads;
static pthread_key_t thread_end;

uint64_t stream_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t stream_ticket(void)
{
    /* relaxed: all draws from one counter have one order, which agrees with happens-before */
    return atomic_fetch_add_explicit(&tickets.drawn, 1, memory_order_relaxed) + 1;
}

/* The last ticket that was drawn, before anything that this thread knows of. */
static uint64_t ticket_read(void)
{
    /* relaxed: a draw that happens before this is seen, one that happens after gives more */
    return atomic_load_explicit(&tickets.drawn, memory_order_relaxed);
}

void stream_forget_threads(void)
{
    atomic_store_explicit(&threads, 0, memory_order_relaxed);
}

static void submit(void)
{
    slots_submit(stream.slot);
    stream.slot = NULL;
    stream.at = stream.limit = NULL;
}

/* At the thread's end its slot goes to the tool. Events after this, from later destructors and from
 * libc itself, have a slot each. */
static void end_thread(void *unused)
{
    (void)unused;
    int error = errno;
    if (stream.slot != NULL && stream.process == process_number())
        submit();
    stream.ended = true;
    errno = error;
}

bool stream_start(void)
{
    return pthread_key_create(&thread_end, end_thread) == 0;
}

/* Gives the thread a number in the process, and sees to its end. */
static void introduce(uint32_t process)
{
    stream.process = process;
    stream.slot = NULL; /* that of the parent, in a child */
    stream.thread = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
    if (!stream.ended)
        pthread_setspecific(thread_end, &stream);
}

static bool take_slot(uint64_t first_ticket)
{
    switch (slots_take(&stream.slot)) {
    case SLOTS_TAKEN:
        break;
    case SLOTS_NONE:
        stream.slot = NULL;
        stream.to_skip = SKIPPED_WITHOUT_SLOT;
        return false;
    case SLOTS_CLOSED:
        stream.slot = NULL;
        process_stop();
        return false;
    }
    struct region_slot *slot = stream.slot;
    slot->process = stream.process;
    slot->thread = stream.thread;
    slot->kind = SLOT_EVENTS;
    slot->ticket = stream.ticket = first_ticket - 1;
    slot->time = stream.time = stream_time();
    stream.timed = slots_region->times != 0;
    stream.address = 0;
    stream.at = slot->data;
    stream.limit = (uint8_t *)slot + slots_region->slot_size;
    return true;
}

/* Makes room for an event; false if it cannot be recorded. */
static bool make_room(uint64_t ticket)
{
    uint32_t process = process_number();
    if (process == PROCESS_UNKNOWN)
        process = process_after_fork();
    if (process == PROCESS_OFF)
        return false;
    if (stream.process != process)
        introduce(process);
    else if (stream.slot != NULL)
        submit();
    if (stream.to_skip > 0) {
        stream.to_skip--;
        slots_count_lost();
        return false;
    }
    if (take_slot(ticket))
        return true;
    if (process_number() != PROCESS_OFF)
        slots_count_lost();
    return false;
}

static __attribute__((noinline)) bool make_room_once(uint64_t ticket)
{
    if (process_number() == PROCESS_OFF)
        return false;
    if (stream.busy) {
        slots_count_lost();
        return false;
    }
    int error = errno;
    stream.busy = true;
    bool room = make_room(ticket);
    stream.busy = false;
    errno = error;
    return room;
}

static inline bool has_room(uint64_t ticket)
{
    return __builtin_expect(stream.process == process_number() &&
                                stream.limit - stream.at >= EVENT_LIMIT,
                            true) ||
           make_room_once(ticket);
}

static inline uint8_t *put_number(uint8_t *at, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *at++ = (uint8_t)(number | 0x80);
    *at++ = (uint8_t)number;
    return at;
}

static inline uint8_t *put_address(uint8_t *at, const void *block)
{
    uintptr_t address = (uintptr_t)block >> 3;
    int64_t step = (int64_t)(address - stream.address);
    stream.address = address;
    return put_number(at, (uint64_t)step << 1 ^ (uint64_t)(step >> 63));
}

/* `usual`: the step of the ticket that is not written. */
static inline uint8_t *put_start(enum event_kind kind, uint64_t ticket, uint64_t usual)
{
    uint8_t *at = stream.at, *tag = at++;
    uint64_t step = ticket - stream.ticket;
    stream.ticket = ticket;
    *tag = (uint8_t)kind;
    if (step != usual) {
        *tag |= EVENT_TICKET_FOLLOWS;
        at = put_number(at, step);
    }
    if (__builtin_expect(stream.timed, false)) {
        uint64_t time = stream_time();
        *tag |= EVENT_TIME_FOLLOWS;
        at = put_number(at, time - stream.time);
        stream.time = time;
    }
    return at;
}

static inline void finish(uint8_t *at)
{
    stream.at = at;
    /* release: the bytes are there for whoever reads up to `used` */
    atomic_store_explicit(&stream.slot->used, (uint32_t)(at - stream.slot->data),
                          memory_order_release);
    if (__builtin_expect(stream.ended, false)) {
        int error = errno;
        submit();
        errno = error;
    }
}

void stream_malloc(enum event_kind kind, const void *block, size_t size)
{
    uint64_t ticket = ticket_read();
    if (!has_room(ticket))
        return;
    uint8_t *at = put_start(kind, ticket, 0);
    at = put_number(at, size);
    finish(put_address(at, block));
}

void stream_aligned(const void *block, size_t size, size_t alignment)
{
    uint64_t ticket = ticket_read();
    if (!has_room(ticket))
        return;
    uint8_t *at = put_start(EVENT_ALIGNED, ticket, 0);
    *at++ = (uint8_t)(alignment == 0 ? 0 : __builtin_ctzl(alignment));
    at = put_number(at, size);
    finish(put_address(at, block));
}

void stream_free(uint64_t ticket, const void *block)
{
    if (!has_room(ticket))
        return;
    uint8_t *at = put_start(EVENT_FREE, ticket, 1);
    finish(put_address(at, block));
}

void stream_realloc(uint64_t ticket, const void *old, const void *block, size_t size)
{
    if (!has_room(ticket))
        return;
    uint64_t second = ticket_read();
    uint8_t *at = put_start(EVENT_REALLOC, ticket, 1);
    at = put_address(at, old);
    at = put_number(at, size);
    at = put_address(at, block);
    finish(put_number(at, second - ticket));
    stream.ticket = second;
}
