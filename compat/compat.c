/*
 * What both faces share. See compat.h.
 */
#include "compat.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct snug_stats compat_stats(void)
{
    struct snug_stats stats;
    snug_stats_get(&stats, sizeof(stats));
    return stats;
}

size_t compat_active(void)
{
    struct snug_stats stats = compat_stats();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t active = stats.live + stats.waste + snug_mallinfo2().fsmblks;
    return (active + page - 1) / page * page;
}

size_t compat_granted(size_t alignment, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (size > PTRDIFF_MAX - page || alignment > PTRDIFF_MAX)
        return 0;
    if (size > COMPAT_PROBE_MOST || alignment > COMPAT_PROBE_MOST)
        return (size + page - 1) / page * page;
    void *block = snug_aligned_alloc(alignment, size);
    size_t granted = snug_malloc_usable_size(block);
    snug_free(block);
    return granted;
}

void compat_write_stats(char *text, size_t bytes)
{
    struct snug_stats stats = compat_stats();
    snprintf(
        text, bytes,
        "snug %s\n"
        "mapped %llu, in use %llu in %llu blocks, waiting in caches %llu, free %llu, to be purged "
        "%llu\n",
        snug_version(), (unsigned long long)stats.mapped, (unsigned long long)stats.live,
        (unsigned long long)stats.blocks, (unsigned long long)stats.cached,
        (unsigned long long)stats.free, (unsigned long long)stats.purge_pending);
}

/* With another malloc, blocks of both would meet in free(). */
__attribute__((constructor)) static void compat_begin(void)
{
    static const char text[] =
        "snug-compat: the program's malloc is not snug's; preload libsnug.so "
        "in front of libsnug-compat.so\n";
    Dl_info here, there;
    void *theirs = dlsym(RTLD_DEFAULT, "malloc");
    if (theirs != NULL && dladdr(theirs, &there) != 0 &&
        dladdr(dlsym(RTLD_DEFAULT, "snug_malloc"), &here) != 0 && here.dli_fbase == there.dli_fbase)
        return;
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        abort();
    _exit(127);
}
