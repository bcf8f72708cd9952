/*
 * Tags of memory: MTE of aarch64.
 *
 * Each 16 bytes of a mapping that was made for it have a tag of four bits, and so has each pointer,
 * in its top byte. An access by a pointer whose tag is not that of the memory faults. Fresh memory
 * has tag 0, as has a pointer that nobody gave one.
 *
 * Where the processor or the kernel has no tags, tags_are_on is false, and only tags_begin,
 * tags_strip and tags_ignore may be called besides. On other machines that is known when the
 * library is compiled.
 */
#ifndef SNUG_PLATFORM_TAGS_H
#define SNUG_PLATFORM_TAGS_H

#include "base/common.h"

/* Layout: bytes that have one tag. */
enum { TAG_BYTES = 16 };

#if defined(__aarch64__)
#define HAS_TAGS 1

extern INTERNAL bool tags_are_begun; /* written while there is one thread */

static ALWAYS_INLINE bool tags_are_on(void)
{
    return UNLIKELY(tags_are_begun);
}

/* An address without what a pointer has in its top byte. */
static ALWAYS_INLINE uintptr_t tags_strip(uintptr_t pointer)
{
    return tags_are_on() ? pointer & (((uintptr_t)1 << 56) - 1) : pointer;
}

/* Sets whether the calling thread may access all memory by any pointer from now on. Returns whether
 * it could before. The register is written as numbers: assemblers know its name (TCO) only for
 * processors that have tags. */
static ALWAYS_INLINE bool tags_ignore(bool ignore)
{
    uint64_t before = 0, now = ignore ? (uint64_t)1 << 25 : 0;
    if (tags_are_on())
        __asm__ volatile("mrs %0, s3_3_c4_c2_7\n\tmsr s3_3_c4_c2_7, %1" /* tco */
                         : "=&r"(before)
                         : "r"(now)
                         : "memory");
    return before != 0;
}

#else
#define HAS_TAGS 0
#define tags_are_on() false /* so that what follows is no code, however it is compiled */

static ALWAYS_INLINE uintptr_t tags_strip(uintptr_t pointer)
{
    return pointer;
}

static ALWAYS_INLINE bool tags_ignore(bool ignore)
{
    return ignore;
}

#endif

/* Has the processor check the tags of accesses in the calling thread, which must be the only one,
 * and in all threads that are started later; does nothing if the processor or the kernel cannot. */
void tags_begin(void);

/* Gives tags to a range of whole pages, which can be read and written. False: they cannot have
 * any. */
bool tags_allow(void *start, size_t bytes);

/* The address with a random tag: neither 0 nor one of those whose bits are set. */
uintptr_t tags_draw(uintptr_t address, unsigned but);

/* The address, which must be readable, with the tag that the memory there has: 0 if it can have
 * none. */
uintptr_t tags_of_memory(uintptr_t address);

/* Gives `bytes` bytes at a pointer, up to the next multiple of TAG_BYTES, the pointer's tag. */
void tags_set(uintptr_t pointer, size_t bytes);

/* The number of a pointer's tag. */
static inline unsigned tags_number(uintptr_t pointer)
{
    return (unsigned)((uint64_t)pointer >> 56) & 15;
}

#endif
