/*
 * The C names of gperftools' MallocExtension that programs are linked with. What they mean is said
 * in its malloc_extension_c.h. What tunes tcmalloc alone is accepted where its type allows to say
 * nothing, and refused where it can be.
 */
#include <stdint.h>
#include <string.h>

#include "compat.h"

COMPAT_PUBLIC int MallocExtension_VerifyAllMemory(void);
COMPAT_PUBLIC void MallocExtension_GetStats(char *text, int bytes);
COMPAT_PUBLIC int MallocExtension_GetNumericProperty(const char *name, size_t *value);
COMPAT_PUBLIC int MallocExtension_SetNumericProperty(const char *name, size_t value);
COMPAT_PUBLIC void MallocExtension_MarkThreadIdle(void);
COMPAT_PUBLIC void MallocExtension_MarkThreadBusy(void);
COMPAT_PUBLIC void MallocExtension_ReleaseToSystem(size_t bytes);
COMPAT_PUBLIC void MallocExtension_ReleaseFreeMemory(void);
COMPAT_PUBLIC void MallocExtension_SetMemoryReleaseRate(double rate);
COMPAT_PUBLIC double MallocExtension_GetMemoryReleaseRate(void);
COMPAT_PUBLIC size_t MallocExtension_GetEstimatedAllocatedSize(size_t size);
COMPAT_PUBLIC size_t MallocExtension_GetAllocatedSize(const void *block);

/* 1: all is well. */
int MallocExtension_VerifyAllMemory(void)
{
    return snug_check() == 0;
}

void MallocExtension_GetStats(char *text, int bytes)
{
    if (bytes > 0)
        compat_write_stats(text, (size_t)bytes);
}

static size_t get_allocated(void)
{
    return compat_stats().live;
}

static size_t get_mapped(void)
{
    return compat_stats().mapped;
}

static size_t get_purge_pending(void)
{
    return compat_stats().purge_pending;
}

static size_t get_cached(void)
{
    return compat_stats().cached;
}

int MallocExtension_GetNumericProperty(const char *name, size_t *value)
{
    static const struct {
        const char *name;
        size_t (*get)(void);
    } properties[] = {
        {"generic.current_allocated_bytes", get_allocated},
        {"generic.heap_size", get_mapped},
        {"tcmalloc.pageheap_free_bytes", get_purge_pending},
        {"tcmalloc.current_total_thread_cache_bytes", get_cached},
    };
    for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++)
        if (strcmp(name, properties[i].name) == 0) {
            *value = properties[i].get();
            return 1;
        }
    return 0;
}

int MallocExtension_SetNumericProperty(const char *name, size_t value)
{
    (void)name, (void)value;
    return 0; /* none can be set */
}

void MallocExtension_MarkThreadIdle(void) {}

void MallocExtension_MarkThreadBusy(void) {}

/* All that is free, since no part of it is easier to give back than the rest. */
void MallocExtension_ReleaseToSystem(size_t bytes)
{
    (void)bytes;
    snug_malloc_trim(0);
}

void MallocExtension_ReleaseFreeMemory(void)
{
    snug_malloc_trim(0);
}

void MallocExtension_SetMemoryReleaseRate(double rate)
{
    (void)rate;
}

double MallocExtension_GetMemoryReleaseRate(void)
{
    return 1; /* tcmalloc's usual one */
}

size_t MallocExtension_GetEstimatedAllocatedSize(size_t size)
{
    return compat_granted(1, size);
}

size_t MallocExtension_GetAllocatedSize(const void *block)
{
    return snug_malloc_usable_size((void *)block);
}
