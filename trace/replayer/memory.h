/*
 * memory.h - memory that does not come from malloc, and what the kernel says about this process.
 */
#ifndef SNUG_TRACE_MEMORY_H
#define SNUG_TRACE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Prints `snugreplay: ` and the words, with what errno says, and ends the process with status 1. */
_Noreturn void die(const char *words);

/* `size` bytes of zeros that are resident already, so that they count before the start, not after.
 * They are told to the meter. */
void *memory_of_our_own(size_t size);

/* How much of that there is. */
long our_own_kib(void);

/* Resident memory now that is no file's, since of a file the kernel maps up to 64 KiB around what
 * is touched, more or less by where the file lies; and the most there was of any since exec. Both
 * without our own. */
long anonymous_kib(void);
long peak_resident_kib(void);

uint64_t now_ns(void);

#endif
