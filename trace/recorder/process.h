/*
 * process.h - which process this is in the recording.
 *
 * A forked child has all of its parent's memory, also the slot that the parent's thread is writing
 * to. So the number of the process stands in a page that the kernel clears in a child
 * (MADV_WIPEONFORK, Linux 4.14; where there is none, a handler of pthread_atfork does it): each
 * event compares it with the number that its thread knows, and a child is found out whatever way it
 * was forked.
 */
#ifndef SNUG_TRACE_PROCESS_H
#define SNUG_TRACE_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { PROCESS_UNKNOWN = 0 };                   /* before the start, or just forked */
static const uint32_t PROCESS_OFF = UINT32_MAX; /* not recorded, or not any more */

extern _Atomic uint32_t *process_word;

/* The number of this process, or one of the above. */
static inline uint32_t process_number(void)
{
    /* relaxed: it guards nothing; a thread that sees an old number for a while records on */
    return atomic_load_explicit(process_word, memory_order_relaxed);
}

/* The number of a child, whose only thread asks for the first time. */
uint32_t process_after_fork(void);

void process_stop(void);

#endif
