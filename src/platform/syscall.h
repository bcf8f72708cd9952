/*
 * System calls without libc: another preloaded library may have replaced mmap or write by a
 * function that allocates, so the allocator must not go through the dynamic symbols. They also
 * leave errno alone. Each returns the result, or -errno.
 *
 * Source: the kernel's calling conventions, syscall(2).
 */
#ifndef SNUG_PLATFORM_SYSCALL_H
#define SNUG_PLATFORM_SYSCALL_H

#include <sys/syscall.h>

#include "base/common.h"

#if defined(__clang_analyzer__)

/* An analyser assumes that a function it cannot look into writes where its arguments point, as the
 * kernel does. Of an asm statement it does not assume that. */
long syscall6(long number, long a, long b, long c, long d, long e, long f);

#elif defined(__x86_64__)

static inline long syscall6(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

#elif defined(__aarch64__)

static inline long syscall6(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}

#elif defined(__riscv) && __riscv_xlen == 64

static inline long syscall6(long number, long a, long b, long c, long d, long e, long f)
{
    register long a7 __asm__("a7") = number;
    register long a0 __asm__("a0") = a;
    register long a1 __asm__("a1") = b;
    register long a2 __asm__("a2") = c;
    register long a3 __asm__("a3") = d;
    register long a4 __asm__("a4") = e;
    register long a5 __asm__("a5") = f;
    __asm__ volatile("ecall"
                     : "+r"(a0)
                     : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5)
                     : "memory");
    return a0;
}

#else
#error "snug runs on 64-bit x86, Arm and RISC-V"
#endif

static inline long syscall3(long number, long a, long b, long c)
{
    return syscall6(number, a, b, c, 0, 0, 0);
}

static inline long syscall1(long number, long a)
{
    return syscall6(number, a, 0, 0, 0, 0, 0);
}

/* Whether a result is -errno. */
static inline bool is_error(long result)
{
    return (unsigned long)result > -4096UL;
}

/* From the kernel's interface, whose headers not every libc brings along: futex(2). */
enum { FUTEX_WAIT_PRIVATE = 0 | 128, FUTEX_WAKE_PRIVATE = 1 | 128 };

#endif
