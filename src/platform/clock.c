/*
 * Clocks from the vDSO, a shared object that the kernel maps into each process: its function reads
 * a clock in some 20 ns. libc finds it in the same way. See clock.h.
 *
 * Source: vdso(7); System V gABI, chapter 5 (dynamic linking).
 */
#include "platform/clock.h"

#include <link.h>
#include <sys/auxv.h>
#include <time.h>

#include "platform/syscall.h"

typedef int clock_function(clockid_t clock, struct timespec *now);

/* Relaxed: whoever sees none asks by a system call. */
static clock_function *clock_ready;

/* The kernel's name of it is of another beginning on each machine: __vdso_, __kernel_. Compared by
 * hand, and with what the code itself has: no page of constants, nor one of libc's functions, is
 * in memory yet, and each would bring 15 others along. */
AT_START static bool is_clock_gettime(const char *name)
{
    const uint64_t end = 0x00656d6974746567; /* "gettime" and its end */
    uint64_t last = 0;
    do
        last = last >> 8 | (uint64_t)(unsigned char)*name << 56;
    while (*name++ != 0);
    return last == end;
}

/* The symbols end where their names begin: so linkers lay them down, and their number stands
 * nowhere but in tables of hashes, of which each kernel has another. */
AT_START static uintptr_t find_clock(const ElfW(Dyn) * entry, uintptr_t bias)
{
    const ElfW(Sym) *symbols = NULL, *end = NULL;
    for (; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            symbols = (const ElfW(Sym) *)(entry->d_un.d_ptr + bias);
        else if (entry->d_tag == DT_STRTAB)
            end = (const ElfW(Sym) *)(entry->d_un.d_ptr + bias);
    }
    const char *names = (const char *)end;
    for (; symbols != NULL && symbols < end; symbols++)
        if (symbols->st_shndx != SHN_UNDEF && is_clock_gettime(names + symbols->st_name))
            return symbols->st_value + bias;
    return 0;
}

AT_START void os_clock_begin(void)
{
    const ElfW(Ehdr) *image = (const void *)getauxval(AT_SYSINFO_EHDR);
    if (image == NULL)
        return;
    const ElfW(Phdr) *header = (const void *)((uintptr_t)image + image->e_phoff);
    const ElfW(Phdr) *end = header + image->e_phnum;
    uintptr_t bias = 0, dynamic = 0;
    for (; header < end; header++) {
        if (header->p_type == PT_LOAD)
            bias = (uintptr_t)image + header->p_offset - header->p_vaddr;
        else if (header->p_type == PT_DYNAMIC)
            dynamic = (uintptr_t)image + header->p_offset;
    }
    if (dynamic == 0)
        return;
    clock_function *found = (clock_function *)find_clock((const ElfW(Dyn) *)dynamic, bias);
    __atomic_store_n(&clock_ready, found, __ATOMIC_RELAXED);
}

AT_START static uint64_t clock_read(clockid_t clock)
{
    struct timespec now = {0};
    clock_function *ready = __atomic_load_n(&clock_ready, __ATOMIC_RELAXED);
    if (ready == NULL || ready(clock, &now) != 0)
        syscall3(SYS_clock_gettime, (long)clock, (long)&now, 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

AT_START uint64_t os_clock(void)
{
    return clock_read(CLOCK_MONOTONIC_COARSE);
}

uint64_t os_clock_exact(void)
{
    return clock_read(CLOCK_MONOTONIC);
}
