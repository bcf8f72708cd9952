/*
 * Signals that the program itself does nothing about.
 */
#ifndef SNUG_PLATFORM_SIGNAL_H
#define SNUG_PLATFORM_SIGNAL_H

#include "base/common.h"

/* Has `act` called, in the thread that gets it, when a signal is about to end the process that the
 * program left at its default; then the process ends by it all the same, core dump included. What
 * the program handles or ignores is left alone. `interrupt`: SIGINT; otherwise all others. The
 * interpreters of some languages handle SIGINT only if they find its default, so call that one when
 * the program has had time to say what it wants. */
void os_catch_fatal(void (*act)(const char *signal), bool interrupt);

/* Has `act` called for SIGUSR2, whatever the program did about it before. */
void os_catch_request(void (*act)(void));

/* Leaves a signal to its default, which mostly ends the process. */
void os_signal_default(int number);

/* Sends the calling thread a signal. */
void os_signal_send(int number);

/* Between the two the calling thread gets no signals, and a write that fails leaves no SIGPIPE
 * behind. os_signals_release wants what os_signals_hold has filled in. */
struct os_signals {
    uint64_t held;    /* by the program */
    uint64_t pending; /* already */
};

void os_signals_hold(struct os_signals *signals);
void os_signals_release(const struct os_signals *signals);

/* The same where nothing is written: what comes meanwhile comes afterwards, SIGPIPE too. */
void os_signals_block(struct os_signals *signals);
void os_signals_unblock(const struct os_signals *signals);

#endif
