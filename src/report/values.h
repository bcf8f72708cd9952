/*
 * The statistics as numbers: read once, then written in any format.
 *
 * They are read from this process or from another one, by the same code (base/peek.h), and without
 * a lock; so a signal handler may do it, and `snug` does it from outside. The numbers add up (see
 * gauges.def) while the heap rests; while it moves they are moments apart.
 */
#ifndef SNUG_REPORT_VALUES_H
#define SNUG_REPORT_VALUES_H

#include "heap/totals.h"
#include "report/anchor.h"
#include "stats/stats.h"

#define UNKNOWN UINT64_MAX

/* Of a class: slabs of which at most a quarter is in use, and bytes that are free in them. */
struct sparse_slabs {
    uint64_t slabs;
    uint64_t bytes;
};

/* What makes a whole report. Apart from the rest, so that who wants a few numbers, in a signal
 * handler on its small stack, has no room for it. */
struct values_more {
    struct medium_row medium[MEDIUM_ROWS];
    struct large_sizes large;
    struct peak peak; /* all zero: nothing was kept */
    struct heap_rows heaps;
    struct sparse_slabs sparse[CLASS_COUNT];
    bool medium_known; /* the spans of medium blocks were walked */
    bool heaps_known;  /* the list of heaps was at rest */
    bool sparse_known; /* the slabs were walked, which is done from outside only */
};

struct values {
    int process;
    uint64_t milliseconds; /* since the library was loaded */
    const char *reason;    /* why they are read: "exit", "interval", ... */
#define GAUGE(group, name, unit, source, text) uint64_t name;
#include "report/gauges.def"
#undef GAUGE
    struct counters counters;
    struct class_totals classes[CLASS_COUNT];
    struct values_more *more; /* NULL: not wanted */
};

enum values_depth {
    VALUES_QUICK,    /* without looking at each page: microseconds */
    VALUES_RESIDENT, /* with it: some milliseconds for each GiB */
    VALUES_WHOLE     /* and at each medium block (medium.c) */
};

/* Reads them. `more` may be NULL. `process` is the id of the process that `peek` reads, 0 for this
 * one (then `peek` is NULL). False: it could not be read. */
bool values_read(struct values *values, struct values_more *more, struct peek *peek,
                 const struct anchor *anchor, int process, enum values_depth depth);

/* Fills in what is resident (resident.c); what cannot be known stays UNKNOWN. Of this process, the
 * lock of page runs is held. */
void values_read_resident(struct values *values, struct peek *peek, const struct heap *heap,
                          int process);

/* Bytes of a heap that are resident; `pagemap` as os_pagemap_open gives it. False: unknown. Of this
 * process, the lock of page runs is held. (resident.c) */
bool heap_read_resident(struct peek *peek, const struct heap *heap, int pagemap, uint64_t *bytes);

/* Fills in the heaps of the program's own (heaps.c), unless their list is locked. */
void values_read_heaps(struct values *values, struct peek *peek, const struct anchor *anchor,
                       int process, enum values_depth depth);

/* What a provider is called. */
const char *provider_name(uint64_t kind);

#endif
