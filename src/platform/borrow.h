/*
 * A thread that another process borrows: it is stopped in a system call, does something small for
 * that process, and then goes on as if nothing had been.
 *
 * The idea: whoever may trace the process (ptrace(2)) stops the thread, lets it go on at
 * borrow_entry, on a stack of the library's and with all signals blocked, and when the work is done
 * puts its registers back. The kernel itself then goes on with the interrupted call, as after any
 * stop by a debugger: nothing is restarted that the program could see, errno is as it was, and a
 * signal that came meanwhile comes then. See docs/decisions/0007-live.md.
 *
 * If the other process is killed at that moment, nobody puts anything back. So it leaves all that
 * the thread needs to do that itself, after a while: then a call that waits may end with EINTR, as
 * by a signal.
 *
 * Cost: address space for the stack, nothing until it is used. Only x86-64 has it so far.
 */
#ifndef SNUG_PLATFORM_BORROW_H
#define SNUG_PLATFORM_BORROW_H

#include "base/common.h"

enum borrow_state {
    BORROW_IDLE,
    BORROW_WORKING,
    BORROW_DONE,     /* the thread waits to be put back */
    BORROW_RETURNING /* it does that itself: it must not be put back any more */
};

/* Layout: as the entry takes them from there. */
enum { BORROW_REGISTERS = 20 };

struct borrow {
    uint32_t state;
    uint32_t thread; /* which it is, for whoever finds it at work and nobody who had borrowed it */
    uint64_t signal_mask;
    uint64_t floating; /* address of an image of the extended registers, for XRSTOR */
    /* r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi rip cs flags rsp ss */
    uint64_t registers[BORROW_REGISTERS];
};

/* Bytes: for that image; one with all that processors have today takes 11 KiB. */
enum { BORROW_IMAGE = 12 * 1024 };

/* Where a borrowed thread goes on: with `borrow` in its first argument's register, and in its
 * second's the work, which is called with the same. Not a function. */
#if defined(__x86_64__)
#define BORROW_EXISTS 1
extern const char borrow_entry[];
#define BORROW_ENTRY borrow_entry

/* What a thread's variables are found by: the base of its register fs. */
static inline uintptr_t borrow_thread_pointer(void)
{
    uintptr_t pointer;
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
    return pointer;
}
#else
#define BORROW_EXISTS 0
#define BORROW_ENTRY ((const char *)NULL)

static inline uintptr_t borrow_thread_pointer(void)
{
    return 0;
}
#endif

#endif
