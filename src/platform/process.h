/*
 * What the system knows of a process: how much memory it occupies, and which pages are there.
 * Process 0 is this one; another can be asked about by the same user, as far as the system's rules
 * for looking into processes go (ptrace(2)). All of it needs /proc.
 *
 * Safe in signal handlers; allocates nothing, leaves errno alone.
 */
#ifndef SNUG_PLATFORM_PROCESS_H
#define SNUG_PLATFORM_PROCESS_H

#include "base/common.h"

struct os_usage {
    uint64_t resident; /* bytes; here and below */
    uint64_t resident_peak;
    uint64_t minor_faults; /* count */
    uint64_t major_faults;
};

/* `exact`: the kernel adds up all mappings for `resident`, which takes it milliseconds for each
 * GiB; otherwise the number is off by what its processors have not told each other. False:
 * unknown. */
bool os_process_usage(int process, bool exact, struct os_usage *usage);

/* Which pages are resident: a descriptor for os_pagemap_resident, or -errno. */
int os_pagemap_open(int process);

/* Bytes of resident pages between two multiples of the page size. False: unknown. */
bool os_pagemap_resident(int pagemap, uintptr_t start, size_t bytes, uint64_t *resident);

#endif
