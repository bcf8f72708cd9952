/*
 * Borrowing a thread: another process stops a thread of this one in a system call, has it do
 * something small, and lets it go on as if nothing had been.
 *
 * The idea: whoever may trace the process (ptrace(2)) stops the thread and lets it run from
 * borrow_entry on, on a stack of the library's and with all signals blocked. When the work is done,
 * the tracer puts the thread's registers back. The kernel itself then goes on with the interrupted
 * call, as after any stop by a debugger: nothing is restarted that the program could see, errno is
 * as it was, and a signal that came meanwhile comes then. See docs/decisions/0007-live.md.
 *
 * If the tracer is killed at that moment, nobody puts the registers back. So the tracer leaves them
 * in struct borrow, and the thread takes them from there itself after a while. A call that waits
 * may then end with EINTR, as by a signal.
 *
 * Cost: address space for the stack, no memory until it is used. Only x86-64 has it so far.
 */
#ifndef SNUG_PLATFORM_BORROW_H
#define SNUG_PLATFORM_BORROW_H

#include "base/common.h"

enum borrow_state {
    BORROW_IDLE,
    BORROW_WORKING,
    BORROW_DONE,     /* the thread waits for its registers */
    BORROW_RETURNING /* it puts them back itself: nobody else may any more */
};

/* Layout: as the entry takes them from there. */
enum { BORROW_REGISTERS = 20 };

struct borrow {
    uint32_t state;
    uint32_t thread; /* its id, for a tool that finds it at work and its tracer gone */
    uint64_t signal_mask;
    uint64_t floating; /* address of an image of the extended registers, for XRSTOR */
    /* r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi rip cs flags rsp ss */
    uint64_t registers[BORROW_REGISTERS];
};

/* Bytes: for that image; one with all that processors have today takes 11 KiB. */
enum { BORROW_IMAGE = 12 * 1024 };

/* Where a borrowed thread goes on, with the struct borrow in the register of a first argument, and
 * the work in that of a second. The work is called with the struct borrow. This is no function: it
 * does not return. */
#if defined(__x86_64__)
#define BORROW_EXISTS 1
extern const char borrow_entry[];
#define BORROW_ENTRY borrow_entry

/* The base of the register fs, from which a thread's variables are found. */
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
