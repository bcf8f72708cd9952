/*
 * workload.h - what the workloads share: time, pseudo-random numbers, memory that does not come
 * from malloc, and what the kernel says about this process.
 *
 * A workload must measure the allocator that is under it and nothing else, so nothing here
 * allocates by malloc.
 */
#ifndef SNUG_BENCH_WORKLOAD_H
#define SNUG_BENCH_WORKLOAD_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "meter.h"

static inline void die(const char *what)
{
    perror(what);
    exit(1);
}

static inline uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* xorshift64 (Marsaglia); the state must not be 0. */
static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A number in [low, high]. */
static inline uint32_t random_between(uint64_t *state, uint32_t low, uint32_t high)
{
    return low + (uint32_t)((random_next(state) >> 11) % (high - low + 1));
}

/* `size` bytes of zeros, touched already, so that no page faults are left for the timed part. */
static inline void *memory_of_our_own(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        die("mmap");
    memset(memory, 0, size);
    meter_own(size);
    return memory;
}

/* Parses a decimal argument in [low, high], or ends the program. */
static inline long number_argument(const char *text, long low, long high)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < low || value > high) {
        fprintf(stderr, "%s is not a number from %ld to %ld\n", text, low, high);
        exit(2);
    }
    return value;
}

/* The figure after `name` in a file of /proc/self, in KiB, or -1. Read without stdio's buffers. */
static inline long kib_from_proc(const char *path, const char *name)
{
    char text[8192];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    const char *found = strstr(text, name);
    return found != NULL ? strtol(found + strlen(name), NULL, 10) : -1;
}

/* The largest resident memory since exec. (ru_maxrss would count a large parent, too.) */
static inline long peak_rss_kib(void)
{
    return kib_from_proc("/proc/self/status", "VmHWM:");
}

/*
 * Resident memory now. smaps_rollup counts page tables entries; VmRSS is the fallback, as kernels
 * before 6.2 let every thread keep some of its counts to itself, up to 64 pages.
 */
static inline long rss_kib(void)
{
    long kib = kib_from_proc("/proc/self/smaps_rollup", "Rss:");
    return kib >= 0 ? kib : kib_from_proc("/proc/self/status", "VmRSS:");
}

/*
 * Ends the line of figures that a workload prints, in which `name=value` words may stand already:
 * operations, nanoseconds for each, and the peak of resident memory. Figures of other kinds end in
 * _ns, _us, _kib or _ratio.
 */
static inline void print_figures(uint64_t operations, double ns_per_operation)
{
    printf("ops=%llu ns_per_op=%.3f peak_rss_kib=%ld\n", (unsigned long long)operations,
           ns_per_operation, peak_rss_kib());
}

#endif
