/*
 * Handlers of SIGSEGV in front of the program's own, which learn of accesses to memory that must
 * not be touched.
 *
 * The idea: sigaction stays libc's, and what the program does with SIGSEGV is its own business.
 * Whoever has reason to expect a fault looks whether the program has installed a handler, and
 * installs one of ours in its place, with the same flags and the same mask. Ours then calls the
 * program's as the kernel would have: with the same arguments, on the same stack, with the same
 * signals held. Each of the program's handlers has an entry of its own here. So a program that puts
 * back what sigaction gave it gets exactly what was there, and a chain of handlers stays the chain
 * it was.
 *
 * What it costs the program: if it asks for the handler that is in place, it is given ours; and
 * from its own sigaction to our next look, its handler gets the signal alone. If the program
 * ignores the signal, it stays ignored.
 */
#ifndef SNUG_PLATFORM_FAULT_H
#define SNUG_PLATFORM_FAULT_H

#include "base/common.h"

/* Layout: handlers of the program that there can be entries for; a program has one, or two. With
 * more than these it has the signal alone. */
enum { FAULT_HANDLERS = 16 };

/* Has `act` called in the thread that touches memory that it may not, with the address and with
 * what the kernel kept of the thread (a ucontext_t). To be called again and again, with the same
 * `act` and no lock held, since each call looks whether the program has a new handler. Safe in
 * signal handlers. */
void os_fault_watch(void (*act)(uintptr_t address, const void *context));

/* In a child of fork: the thread that was in there may not be in it. */
void os_fault_fork_in_child(void);

#endif
