/*
 * The calling thread's stack, as addresses of code: without traps, locks and memory, in programs
 * with and without frame pointers, from signal handlers and in the middle of dlopen.
 *
 * The idea: the loader says without a lock which object some code is in (platform/look.h), and the
 * object's own tables say where the caller's frame is (cfi.h). Code without tables, made at run
 * time, mostly keeps frame pointers, and is taken to. Memory is read only where it is known to be
 * there: in the page that the stack pointer is in, and for each further one the kernel is asked.
 *
 * Cost: about 0.1 us a frame, and a system call for each page of stack; 3 KiB of the stack.
 */
#ifndef SNUG_PROFILE_UNWIND_H
#define SNUG_PROFILE_UNWIND_H

#include "platform/look.h"
#include "profile/rows.h"

/* Frames (table): of deeper stacks the outermost are left out. Twice what people look at. */
enum { UNWIND_MOST = 256 };

/* Objects (table): that one stack passes through; what is in further ones has no object. */
enum { UNWIND_OBJECTS = 24 };

struct unwind_frame {
    uintptr_t code;  /* an address in the call, not behind it */
    uint32_t object; /* of `objects`, plus 1; 0: in none */
};

struct unwind_stack {
    unsigned count; /* of frames; the innermost is the first */
    unsigned object_count;
    bool is_cut; /* there are more */
    struct unwind_frame frames[UNWIND_MOST];
    struct os_object objects[UNWIND_OBJECTS];
    struct kept_rows kept; /* kept from one stack to the next; all else is of the last */
};

/* Fills in the stack from the caller of this library on. */
void unwind_here(struct unwind_stack *stack);

/* The same for a thread that a signal has stopped, from the instruction on at which it stands.
 * `context` is what the kernel kept of it (a ucontext_t). */
void unwind_from(const void *context, struct unwind_stack *stack);

#endif
