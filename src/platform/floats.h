/*
 * Floating-point arithmetic in the middle of a program's calls. The program may have asked that
 * what is not exact, or a division by zero, ends it (feenableexcept), have another rounding, or
 * look at the marks that its own arithmetic left (fetestexcept). So what snug computes in floating
 * point, a profile's weights, it computes in a state of its own, and puts the program's back. What
 * programs run that asked for nothing has no such arithmetic, but for conversions that are exact.
 *
 * Cost: two instructions each, some ten nanoseconds.
 */
#ifndef SNUG_PLATFORM_FLOATS_H
#define SNUG_PLATFORM_FLOATS_H

#include <stdint.h>

/* A thread's state. */
struct floats {
    uint64_t control, marks; /* where they are one word, `control` has both */
};

/* Memory is clobbered, so what begins with a load and ends with a store in between stays there;
 * other arithmetic a compiler might move. */

/* Returns the calling thread's state, which is the plain one from here on: nothing ends the
 * program. */
static inline struct floats floats_begin(void)
{
    struct floats floats = {0, 0};
#if defined(__x86_64__)
    uint32_t word, plain = 0x1f80; /* all exceptions masked, to nearest, no marks */
    __asm__ volatile("stmxcsr %0" : "=m"(word));
    __asm__ volatile("ldmxcsr %0" : : "m"(plain) : "memory");
    floats.control = word;
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(floats.control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(floats.marks));
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0) : "memory");
#elif defined(__riscv)
    __asm__ volatile("frcsr %0" : "=r"(floats.control));
    __asm__ volatile("fscsr %0" : : "r"((uint64_t)0) : "memory");
#endif
    return floats;
}

/* Puts it back. */
static inline void floats_end(struct floats floats)
{
#if defined(__x86_64__)
    uint32_t word = (uint32_t)floats.control;
    __asm__ volatile("ldmxcsr %0" : : "m"(word) : "memory");
#elif defined(__aarch64__)
    __asm__ volatile("msr fpsr, %0" : : "r"(floats.marks) : "memory");
    __asm__ volatile("msr fpcr, %0" : : "r"(floats.control) : "memory");
#elif defined(__riscv)
    __asm__ volatile("fscsr %0" : : "r"(floats.control) : "memory");
#else
    (void)floats;
#endif
}

#endif
