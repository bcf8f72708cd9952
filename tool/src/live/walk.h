/*
 * A walk through another process's heap, for what nobody counts; see walk.c.
 */
#ifndef SNUG_LIVE_WALK_H
#define SNUG_LIVE_WALK_H

#include "report/values.h"

typedef bool (*outside_reader)(void *context, uintptr_t address, void *value, size_t bytes);

/* Fills in sparse slabs, what they pin, and what a trim would give back, unless the walk leads
 * astray. */
void outside_walk(outside_reader read, void *context, const struct anchor *anchor,
                  struct values *values);

#endif
