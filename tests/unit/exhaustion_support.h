/*
 * How a process comes to have no memory left, for tests of what is done then; in a child.
 */
#ifndef SNUG_TESTS_EXHAUSTION_SUPPORT_H
#define SNUG_TESTS_EXHAUSTION_SUPPORT_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "platform/memory.h"
#include "support.h"

static inline size_t mapped_bytes(void)
{
    char text[128] = {0};
    int file = open("/proc/self/statm", O_RDONLY);
    CHILD_CHECK(file >= 0 && read(file, text, sizeof(text) - 1) > 0);
    close(file);
    return strtoul(text, NULL, 10) * os_page_size();
}

/* From here on the process may map no more than `bytes` in addition. */
static inline void limit_memory(size_t bytes)
{
    struct rlimit limit = {mapped_bytes() + bytes, RLIM_INFINITY};
    CHILD_CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

#endif
