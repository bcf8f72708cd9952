/*
 * Standing before a function of libc unseen: what is called next finds the arguments, the stack and
 * the return address as if the program had called it itself. dlopen looks at its return address to
 * know whose RUNPATH, whose $ORIGIN and whose name space count.
 *
 * `return next(path, mode);` may be compiled to a jump, and without optimisation it is not. So this
 * is assembly: it keeps the arguments, asks a function in C where to go on, and jumps there.
 *
 * Source: System V ABI for x86-64, 3.2; Procedure Call Standard for the Arm 64-bit Architecture, 6;
 * RISC-V Calling Conventions, 1.
 */
#ifndef SNUG_PLATFORM_FORWARD_H
#define SNUG_PLATFORM_FORWARD_H

#include "base/common.h"

/* So many arguments, each a pointer or a number, are kept and handed on. */
enum { FORWARD_ARGUMENTS = 3 };

/* Returns the function to go on to, and may change the arguments before. NULL: the exported
 * function returns NULL instead. */
typedef void *forward_choose(uintptr_t arguments[FORWARD_ARGUMENTS]);

/* For the definition of such a function, which only assembly calls. It is not static, so that the
 * assembly finds it whatever a compiler does with the rest of the file. */
#define FORWARD_CHOOSE __attribute__((used, visibility("hidden")))

/* Defines the exported function `name`, which goes on to where `choose` says. */
#define FORWARD(name, choose) __asm__(FORWARD_BEGIN(#name) FORWARD_BODY(#choose) FORWARD_END(#name))

#define FORWARD_BEGIN(name) \
    ".pushsection .text\n" \
    ".balign 16\n" \
    ".globl " name "\n" \
    ".type " name ", %function\n" name ":\n" \
    ".cfi_startproc\n"

#define FORWARD_END(name) \
    ".cfi_endproc\n" \
    ".size " name ", . - " name "\n" \
    ".popsection\n"

/* The body for each machine. It begins with the mark that indirect branches want to find where they
 * are checked (endbr64; hint 34 is `bti c`), and keeps the stack aligned to 16 bytes at the call.
 */
#if defined(__x86_64__)

#define FORWARD_BODY(choose) \
    "endbr64\n" \
    "pushq %rdx\n" \
    ".cfi_adjust_cfa_offset 8\n" \
    "pushq %rsi\n" \
    ".cfi_adjust_cfa_offset 8\n" \
    "pushq %rdi\n" \
    ".cfi_adjust_cfa_offset 8\n" \
    "movq %rsp, %rdi\n" \
    "call " choose "\n" \
    "popq %rdi\n" \
    ".cfi_adjust_cfa_offset -8\n" \
    "popq %rsi\n" \
    ".cfi_adjust_cfa_offset -8\n" \
    "popq %rdx\n" \
    ".cfi_adjust_cfa_offset -8\n" \
    "testq %rax, %rax\n" \
    "jz 1f\n" \
    "jmpq *%rax\n" \
    "1: retq\n"

#elif defined(__aarch64__)

/* A `br` by x16 may arrive at a `bti c`. */
#define FORWARD_BODY(choose) \
    "hint #34\n" \
    "stp x29, x30, [sp, #-48]!\n" \
    ".cfi_adjust_cfa_offset 48\n" \
    ".cfi_rel_offset x29, 0\n" \
    ".cfi_rel_offset x30, 8\n" \
    "mov x29, sp\n" \
    "stp x0, x1, [sp, #16]\n" \
    "str x2, [sp, #32]\n" \
    "add x0, sp, #16\n" \
    "bl " choose "\n" \
    "mov x16, x0\n" \
    "ldp x0, x1, [sp, #16]\n" \
    "ldr x2, [sp, #32]\n" \
    "ldp x29, x30, [sp], #48\n" \
    ".cfi_adjust_cfa_offset -48\n" \
    ".cfi_restore x29\n" \
    ".cfi_restore x30\n" \
    "cbz x16, 1f\n" \
    "br x16\n" \
    "1: mov x0, xzr\n" \
    "ret\n"

#elif defined(__riscv) && __riscv_xlen == 64

#define FORWARD_BODY(choose) \
    "addi sp, sp, -32\n" \
    ".cfi_adjust_cfa_offset 32\n" \
    "sd ra, 24(sp)\n" \
    ".cfi_rel_offset ra, 24\n" \
    "sd a0, 0(sp)\n" \
    "sd a1, 8(sp)\n" \
    "sd a2, 16(sp)\n" \
    "mv a0, sp\n" \
    "call " choose "\n" \
    "mv t1, a0\n" \
    "ld a0, 0(sp)\n" \
    "ld a1, 8(sp)\n" \
    "ld a2, 16(sp)\n" \
    "ld ra, 24(sp)\n" \
    "addi sp, sp, 32\n" \
    ".cfi_adjust_cfa_offset -32\n" \
    ".cfi_restore ra\n" \
    "beqz t1, 1f\n" \
    "jr t1\n" \
    "1: li a0, 0\n" \
    "ret\n"

#else
#error "snug runs on 64-bit x86, Arm and RISC-V"
#endif

#endif
