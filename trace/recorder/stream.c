/*
 * stream.c - writes the events of each thread; see stream.h.
 */
#include "stream.h"

#include "slots.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

enum { SKIPPED_WITHOUT_SLOT = 10000 };

_Thread_local struct stream stream;
struct tickets tickets = {.drawn = 1};

static _Atomic uint32_t threads;
static pthread_key_t thread_end;

uint64_t stream_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void stream_forget_threads(void)
{
    atomic_store_explicit(&threads, 0, memory_order_relaxed);
}

static void submit(void)
{
    slots_submit(stream.slot);
    stream.slot = NULL;
    stream.at = stream.limit = stream.fast_limit = NULL;
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
    stream.address = 0;
    stream.at = slot->data;
    stream.limit = (uint8_t *)slot + slots_region->slot_size;
    stream.fast_limit = slots_region->times != 0 || stream.ended ? NULL : stream.limit;
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

/* Of any length, byte by byte. */
__attribute__((noinline, cold)) uint8_t *stream_put_long(uint8_t *at, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *at++ = (uint8_t)(number | 0x80);
    *at++ = (uint8_t)number;
    return at;
}

/* Whether there is room, or can be made. */
static bool has_room(uint64_t ticket)
{
    return (stream.process == process_number() && stream.limit - stream.at >= EVENT_LIMIT) ||
           make_room_once(ticket);
}

void stream_write_slowly(uint32_t kind_and_alignment, uint64_t ticket, uintptr_t block, size_t size,
                         uintptr_t moved_to, uint64_t second)
{
    struct stream_event event = {.kind = (enum event_kind)(kind_and_alignment & 0xff),
                                 .alignment = (uint8_t)(kind_and_alignment >> 8),
                                 .ticket = ticket,
                                 .block = block,
                                 .size = size,
                                 .moved_to = moved_to,
                                 .second = second};
    if (!has_room(ticket))
        return;
    bool timed = slots_region->times != 0;
    uint64_t time = timed ? stream_time() : 0;
    stream_write(event, timed, time);
    if (stream.ended) {
        int error = errno;
        submit();
        errno = error;
    }
}
