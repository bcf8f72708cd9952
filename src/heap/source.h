/*
 * Where malloc's heap takes its memory from, as the options say.
 */
#ifndef SNUG_HEAP_SOURCE_H
#define SNUG_HEAP_SOURCE_H

#include "platform/lock.h"
#include "provider/provider.h"

/* The provider that SNUG_PROVIDER names, made ready. A failure is one line on stderr. */
const struct provider *heap_source(void);

/* Calls `act` with the lock of that provider, if it has one that is in no list. */
void heap_source_each_lock(void (*act)(struct lock *lock));

#endif
