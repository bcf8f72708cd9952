/*
 * Names of mappings in /proc/PID/smaps, as far as SNUG_NAMES wants them. A program may set up a
 * sandbox that forbids the call for it (prctl). So by default only what is mapped before its own
 * code runs has a name: the first segment and most metadata.
 */
#ifndef SNUG_PROVIDER_NAMES_H
#define SNUG_PROVIDER_NAMES_H

#include "options/options.h"
#include "platform/memory.h"
#include "stats/event.h"

static inline void mapping_name(const void *start, size_t bytes, const char *name)
{
    if (options.names == NAMES_ALL || (options.names == NAMES_START && !events_started()))
        os_name(start, bytes, name);
}

#endif
