/*
 * slots.h - the recorder's side of the shared memory: takes and submits slots. See region.h.
 *
 * Any thread may call these at any time; they use atomic operations only and never allocate.
 */
#ifndef SNUG_TRACE_SLOTS_H
#define SNUG_TRACE_SLOTS_H

#include "region.h"

#include <stdbool.h>

/* The memory that was mapped, or NULL. Set once, before anything is recorded. */
extern struct region *slots_region;

/* Maps the file; false if it is not there, or not from a tool of this version. */
bool slots_attach(const char *path);

enum slots_answer {
    SLOTS_TAKEN,
    SLOTS_NONE,   /* all are owned by other threads: the event is lost */
    SLOTS_CLOSED, /* the recording is over, or the tool is gone */
};

/* Takes a free slot with no data. If all wait to be emptied, waits for the tool: that keeps a fast
 * program from using ever more memory. */
enum slots_answer slots_take(struct region_slot **taken);

/* Hands a slot over to the tool; it must not be touched after this. */
void slots_submit(struct region_slot *slot);

void slots_count_lost(void);

#endif
