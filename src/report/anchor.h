/*
 * Where another process finds what it may look at: one constant structure, to which a note in the
 * ELF file leads (name "snug", type 1, contents: the distance from there to the anchor). Notes are
 * mapped with the program and survive stripping and static linking, so all that is needed to look
 * into a running program is the right to read its memory; no file of it, and nothing that it does.
 *
 * `layout` is a fingerprint of the headers that the structures that are looked at come from. A tool
 * that was built with others must not guess.
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
    const struct list *heaps; /* beside malloc's: heap_record.link */
    const struct tallies *tallies;
    const uint64_t *lock_waits;
    const struct os_calls *os_calls;
    const struct options *options;
    const struct peak *peak;
    const struct profile *profile;
    const struct guard *guard;
    struct events *events; /* these are written from outside; 0 to what is served fast, */
    size_t *served[4];     /* with a request to take a profile */
    struct outside_area *outside;
    /* Where a borrowed thread goes on, and its work; NULL where there is no borrowing. */
    const char *borrow_entry;
    void (*outside_call)(struct borrow *borrow);
};

extern INTERNAL const struct anchor snug_anchor;

/* A hash of all headers and tables in src/, which the build computes (src/layout.cmake; for the
 * tool, tool/build.rs): no change of a structure leaves it as it is. 0 in a library that was built
 * without: no tool looks into it. */
#if !defined(ANCHOR_LAYOUT)
#define ANCHOR_LAYOUT 0
#endif

#endif
