/*
 * Being told of accesses to memory that must not be touched, before the program's own handler is.
 *
 * The idea: sigaction stays libc's, and what the program does with SIGSEGV is its own business.
 * Whoever has reason to expect a fault looks whether the program has put a handler in place, and
 * puts one of ours before it, with the same flags and the same mask; that calls the program's as
 * the kernel would have: with the same arguments, on the same stack, with the same signals held.
 * Each of the program's handlers has an entry of its own before it, so a program that puts back
 * what it was given gets exactly what was there, and a chain of handlers stays the chain it was.
 *
 * What it costs the program: who asks for the handler that is in place is given ours; and between
 * its own sigaction and the next look it has the signal alone. What is ignored stays ignored.
 */
#ifndef SNUG_PLATFORM_FAULT_H
#define SNUG_PLATFORM_FAULT_H

#include "base/common.h"

/* Layout: handlers of the program that there can be entries for; a program has one, or two. With
 * more than these it has the signal alone. */
enum { FAULT_HANDLERS = 16 };

/* Has `act` called in the thread that touches memory that it may not, with the address and with
 * what the kernel kept of the thread (a ucontext_t). To be called again and again, with the same
 * `act` and no lock held: it looks whether the program has a new handler. Safe in signal handlers.
 */
void os_fault_watch(void (*act)(uintptr_t address, const void *context));

#endif
