/*
 * memory.c - see memory.h.
 */
#include "memory.h"
#include "number.h"

#include "meter.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

static size_t our_own;

_Noreturn void die(const char *words)
{
    char text[256];
    int length = snprintf(text, sizeof text, "snugreplay: %s: %m\n", words);
    if (write(STDERR_FILENO, text, (size_t)length) < 0)
        _exit(2);
    _exit(1);
}

void *memory_of_our_own(size_t size)
{
    if (size == 0)
        return NULL;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        die("mmap");
    memset(memory, 0, size);
    meter_own(size);
    our_own += (size + PAGE - 1) & ~(size_t)(PAGE - 1);
    return memory;
}

long our_own_kib(void)
{
    return (long)(our_own / 1024);
}

/* The figure after `name` in a file of /proc/self, or -1. Read without stdio, which allocates. */
static long kib_from_proc(const char *path, const char *name)
{
    char text[8192];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    const char *found = strstr(text, name);
    return found != NULL ? (long)number_at(found + strlen(name)) : -1;
}

/* smaps_rollup counts page table entries; the counters behind RssAnon lag behind by some pages for
 * each thread or processor. */
long anonymous_kib(void)
{
    long kib = kib_from_proc("/proc/self/smaps_rollup", "Anonymous:");
    return (kib >= 0 ? kib : kib_from_proc("/proc/self/status", "RssAnon:")) - our_own_kib();
}

long peak_resident_kib(void)
{
    return kib_from_proc("/proc/self/status", "VmHWM:") - our_own_kib();
}

uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}
