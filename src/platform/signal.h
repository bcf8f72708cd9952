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

/* Between the two, no write can end the process by SIGPIPE. For the calling thread;
 * os_pipe_signal_release wants what os_pipe_signal_hold returned. */
uint64_t os_pipe_signal_hold(void);
void os_pipe_signal_release(uint64_t held);

#endif
