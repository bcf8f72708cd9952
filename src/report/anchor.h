/*
 * The anchor: one constant structure in which another process finds what it may look at.
 *
 * An ELF note leads to the anchor (name "snug", type 1; its contents are the distance from there to
 * the anchor). Notes are mapped with the program, and survive stripping and static linking. So a
 * tool that looks into a running program needs only the right to read its memory: none of the
 * program's files, and no help from the program.
 *
 * `layout` is a fingerprint of the headers that define the structures. A tool that was built from
 * other headers must not guess, and refuses.
 */
#ifndef SNUG_REPORT_ANCHOR_H
#define SNUG_REPORT_ANCHOR_H

#include "heap/outside_call.h"
#include "heap/user_heaps.h"
#include "options/options.h"
#include "platform/memory.h"
#include "profile/watch.h"
#include "report/peak.h"
#include "stats/event.h"
#include "stats/stats.h"

#define ANCHOR_MAGIC "snug-heap"

struct anchor {
    char magic[12];
    uint32_t layout;
    char version[16];
    const struct heap *heap;
    const struct list *heaps; /* heaps of the program's own, linked by heap_record.link */
    const struct tallies *tallies;
    const uint64_t *lock_waits;
    const struct os_calls *os_calls;
    const struct options *options;
    const struct peak *peak;
    const struct profile *profile;
    const struct guard *guard;
    struct events *events; /* a tool writes requests here; with one for a profile, */
    size_t *served[4];     /* it writes 0 here, so that the next call takes the slow path */
    struct outside_area *outside;
    const uint64_t *outside_self;
    /* Where a borrowed thread goes on, NULL where threads cannot be borrowed; and the work that it
     * does there. */
    const char *borrow_entry;
    void (*outside_call)(struct borrow *borrow);
};

extern INTERNAL const struct anchor snug_anchor;

/* The build computes this hash of all headers and tables in src/ (src/layout.cmake; for the tool,
 * tool/build.rs), so every change of a structure changes it. 0: the library was built without it,
 * and every tool refuses to look into it. */
#if !defined(ANCHOR_LAYOUT)
#define ANCHOR_LAYOUT 0
#endif

#endif
