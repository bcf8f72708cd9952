/*
 * Catching signals that would end the process, and holding signals back.
 */
#ifndef SNUG_PLATFORM_SIGNAL_H
#define SNUG_PLATFORM_SIGNAL_H

#include "base/common.h"

/* Has `act` called when a signal is about to end the process that the program left at its default,
 * in the thread that gets the signal. The process then ends by it all the same, core dump included.
 * Signals that the program handles or ignores are left alone. `interrupt`: SIGINT is caught;
 * otherwise all others. The interpreters of some languages handle SIGINT only if they find it at
 * its default, so SIGINT is to be caught when the program has had time to say what it wants. */
void os_catch_fatal(void (*act)(const char *signal), bool interrupt);

/* Has `act` called for SIGUSR2, whatever the program did about it before. */
void os_catch_request(void (*act)(void));

/* Leaves a signal to its default, which mostly ends the process. */
void os_signal_default(int number);

/* Sends the calling thread a signal. */
void os_signal_send(int number);

/* Between os_signals_hold and os_signals_release the calling thread gets no signals, and a write
 * that fails leaves no SIGPIPE and no SIGXFSZ behind. The second takes what the first has filled
 * in. */
struct os_signals {
    uint64_t held;    /* those that the program holds back */
    uint64_t pending; /* those that were pending before */
};

void os_signals_hold(struct os_signals *signals);
void os_signals_release(const struct os_signals *signals);

/* The same where nothing is written: all signals that come meanwhile are delivered afterwards,
 * these two also. */
void os_signals_block(struct os_signals *signals);
void os_signals_unblock(const struct os_signals *signals);

#endif
