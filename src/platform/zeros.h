/*
 * Zeros: looking whether memory is zero, and making it so, as wide as the processor can.
 *
 * The idea: as long as the lines are in the processor's caches, looking at a page or writing it is
 * bound by how many bytes an instruction takes. So each function has a form for each width, and
 * from zeros_begin on it is known which one to call; until then it is the narrowest. The choice is
 * a number and no pointer: an attacker who can write to the library's memory cannot have another
 * function called by it.
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

/* Whether all bytes from `at` to `end` are zero. `make`: makes them zero and returns true, and
 * writes to no more than the lines that are not zero and some beside them. */
bool zeros_long(uintptr_t at, uintptr_t end, bool make);

/* The same for 257 to 1,024 bytes at multiples of 16, with only one branch that depends on the
 * length. `make` writes everything. */
bool zeros_short(uintptr_t at, size_t bytes, bool make);

#endif
