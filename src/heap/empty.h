/*
 * Blocks of size zero, of malloc's heap: distinct addresses in pages that nobody can read or write,
 * so a program that uses what it did not ask for is stopped there.
 *
 * The idea: address space costs nothing. One range of it is reserved at the first such request; a
 * bit says for each multiple of 16 bytes in it whether it is a block. Each thread's requests go
 * round in it, from a place of its own on, so an address is not given again soon, and a second free
 * finds the bit clear. Where the range is nearly used up, or cannot be had, such a request gets an
 * object of the least size, as it would without.
 *
 * Cost: a system call and a mapping once, no memory but the bits; an atomic instruction for each
 * block and its free. No lock: safe across fork.
 */
#ifndef SNUG_HEAP_EMPTY_H
#define SNUG_HEAP_EMPTY_H

#include "meta/misuse.h"

/* A block of size zero, or NULL. */
void *empty_alloc(void);

/* Whether an address is in that range. */
bool empty_covers(uintptr_t address);

/* What is wrong with such an address: MISUSE_NONE for a block. */
struct misuse empty_misuse(uintptr_t address);

/* Frees a block in that range, and says what is wrong if it is none. */
struct misuse empty_free(uintptr_t address);

#endif
