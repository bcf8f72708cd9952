/*
 * Tags of memory. See tags.h.
 *
 * Each instruction for tags is assembled for a processor that has them, whatever processor the
 * library is compiled for.
 */
#include "platform/tags.h"

#if HAS_TAGS

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "platform/syscall.h"

/* Layout: from the kernel's interface, whose headers not every libc brings along. */
enum { HWCAP2_WITH_TAGS = 1 << 18, PROT_TAGS = 0x20 };
enum { SET_TAGGED_ADDRESS = 55, ADDRESSES_TAGGED = 1, FAULT_AT_ONCE = 2, DRAWN_SHIFT = 3 };
enum { DRAWN = 0xfffe }; /* a bit for each tag that is drawn: all but 0 */

#define WITH_TAGS ".arch armv8.5-a+memtag\n\t"

bool tags_are_begun;

COLD void tags_begin(void)
{
    long ways = ADDRESSES_TAGGED | FAULT_AT_ONCE | DRAWN << DRAWN_SHIFT;
    tags_are_begun = (getauxval(AT_HWCAP2) & HWCAP2_WITH_TAGS) != 0 &&
                     syscall6(SYS_prctl, SET_TAGGED_ADDRESS, ways, 0, 0, 0, 0) == 0;
}

bool tags_allow(void *start, size_t bytes)
{
    return syscall6(SYS_mprotect, (long)start, (long)bytes, PROT_READ | PROT_WRITE | PROT_TAGS, 0,
                    0, 0) == 0;
}

uintptr_t tags_draw(uintptr_t address, unsigned but)
{
    uintptr_t pointer;
    __asm__ volatile(WITH_TAGS "irg %0, %1, %2"
                     : "=r"(pointer)
                     : "r"(address), "r"((uintptr_t)(but | 1)));
    return pointer;
}

uintptr_t tags_of_memory(uintptr_t address)
{
    uintptr_t pointer = address;
    __asm__ volatile(WITH_TAGS "ldg %0, [%1]" : "+r"(pointer) : "r"(address) : "memory");
    return pointer;
}

void tags_set(uintptr_t pointer, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += TAG_BYTES)
        __asm__ volatile(WITH_TAGS "stg %0, [%0]" ::"r"(pointer + at) : "memory");
}

#else

/* Compilers that do not optimize keep calls that tags_are_on() rules out. */

void tags_begin(void) {}

bool tags_allow(void *start, size_t bytes)
{
    (void)start, (void)bytes;
    return false;
}

uintptr_t tags_draw(uintptr_t address, unsigned but)
{
    (void)but;
    return address;
}

uintptr_t tags_of_memory(uintptr_t address)
{
    return address;
}

void tags_set(uintptr_t pointer, size_t bytes)
{
    (void)pointer, (void)bytes;
}

#endif
