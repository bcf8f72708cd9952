/*
 * Clocks. They are asked of the kernel, not of libc: another preloaded library may have replaced
 * clock_gettime by one that allocates, as libfaketime does, or whose time leaps.
 */
#ifndef SNUG_PLATFORM_CLOCK_H
#define SNUG_PLATFORM_CLOCK_H

#include "base/common.h"

/* Looks for what the kernel gave the process to read clocks without a system call. Until then, and
 * where there is nothing, each reading is one. */
void os_clock_begin(void);

/* Nanoseconds of a clock that never goes back, exact to a few milliseconds; cheap. */
uint64_t os_clock(void);

/* The same, as exact as the machine can: for what takes microseconds. */
uint64_t os_clock_exact(void);

#endif
