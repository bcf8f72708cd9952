/*
 * Zeros: looking whether memory is zero, and making it so, as wide as the processor can.
 *
 * The idea: who looks at a whole page or writes it is bound by how many bytes an instruction takes,
 * as long as the lines are in the processor's caches. So there are as many forms of each function
 * as there are widths, and which one is called is known from zeros_begin on; until then it is the
 * narrowest. That is a number and no pointer: who can write to the library's memory cannot have
 * another function called by it.
 *
 * Addresses and lengths are multiples of 8 bytes. Thread-safe; nobody else may write meanwhile to
 * what is cleared.
 */
#ifndef SNUG_PLATFORM_ZEROS_H
#define SNUG_PLATFORM_ZEROS_H

#include "base/common.h"

/* Layout: bytes of the widest registers that are used, as a power of two. */
enum zeros_width { ZEROS_16, ZEROS_32, ZEROS_64 };

extern INTERNAL enum zeros_width zeros_width;

/* Finds out what the processor can. */
void zeros_begin(void);

/* Bytes: both functions are for so many at least. */
enum { ZEROS_LEAST = 256 };

/* Whether all is zero. `make`: afterwards it is, and no more was written than the lines beside what
 * was not. */
bool zeros_long(uintptr_t at, uintptr_t end, bool make);

/* The same for 257 to 1,024 bytes at multiples of 16, without a branch that depends on how many but
 * for one. `make` writes everything. */
bool zeros_short(uintptr_t at, size_t bytes, bool make);

#endif
