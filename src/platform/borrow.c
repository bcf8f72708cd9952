/*
 * A borrowed thread. See borrow.h.
 */
#include "platform/borrow.h"

#include "platform/clock.h"

/* Nanoseconds: so long a thread that has done its work waits for its registers to be put back.
 * Whoever borrowed it looks each millisecond, and so is gone if this time has passed. */
#define WAIT_MOST ((uint64_t)1000000000)

/* Waits for the tracer, which takes the thread away from here; returns if none came. The wait must
 * be no system call: a sandbox might not allow it. */
__attribute__((used)) static void borrow_wait(struct borrow *borrow)
{
    uint64_t begun = os_clock();
    /* release: what the work has left is there when it is seen to be done */
    __atomic_store_n(&borrow->state, BORROW_DONE, __ATOMIC_RELEASE);
    while (os_clock() - begun < WAIT_MOST) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    /* release: who stops this thread from here on finds it on its way back */
    __atomic_store_n(&borrow->state, BORROW_RETURNING, __ATOMIC_RELEASE);
}

#if BORROW_EXISTS
_Static_assert(offsetof(struct borrow, floating) == 16, "as below");
_Static_assert(offsetof(struct borrow, registers) == 24, "as below");
_Static_assert(sizeof(struct borrow) == 8 + 22 * sizeof(uint64_t), "as below");

__asm__(".text\n"
        ".globl borrow_entry\n"
        ".hidden borrow_entry\n"
        ".type borrow_entry, @function\n"
        "borrow_entry:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined rip\n"
        "    movq %rdi, %rbx\n"
        "    call *%rsi\n"
        "    movq %rbx, %rdi\n"
        "    call borrow_wait\n"
        /* Nobody came: the way back, on the thread's own stack, below its red zone. Once the state
         * is idle, the next tracer may use the structure, the image and the library's stack. */
        "    movq 16(%rbx), %rcx\n"
        "    movl $-1, %eax\n"
        "    movl $-1, %edx\n"
        "    xrstor64 (%rcx)\n"
        "    movq 168(%rbx), %rdi\n" /* its stack pointer */
        "    subq $(128 + 176), %rdi\n"
        "    andq $-16, %rdi\n"
        "    movq %rdi, %rsp\n"
        "    leaq 8(%rbx), %rsi\n"
        "    movl $22, %ecx\n"
        "    cld\n"
        "    rep movsq\n"
        "    movl $0, (%rbx)\n" /* BORROW_IDLE */
        "    movl $14, %eax\n"  /* rt_sigprocmask(SIG_SETMASK, ...) */
        "    movl $2, %edi\n"
        "    movq %rsp, %rsi\n"
        "    xorl %edx, %edx\n"
        "    movl $8, %r10d\n"
        "    syscall\n"
        "    addq $16, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbp\n"
        "    popq %rbx\n"
        "    popq %r11\n"
        "    popq %r10\n"
        "    popq %r9\n"
        "    popq %r8\n"
        "    popq %rax\n"
        "    popq %rcx\n"
        "    popq %rdx\n"
        "    popq %rsi\n"
        "    popq %rdi\n"
        "    iretq\n"
        "    .cfi_endproc\n"
        ".size borrow_entry, .-borrow_entry\n");
#endif
