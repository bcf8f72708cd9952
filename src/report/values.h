/*
 * The statistics as numbers: read once, then written in any format.
 *
 * The same code reads them from this process and from another one (base/peek.h). It waits for no
 * lock, so a signal handler may read them, and `snug` reads them from outside. While nothing uses
 * the heap the numbers add up (see gauges.def); otherwise they are moments apart.
 */
#ifndef SNUG_REPORT_VALUES_H
#define SNUG_REPORT_VALUES_H

#include "heap/totals.h"
#include "report/anchor.h"
#include "stats/stats.h"

#define UNKNOWN UINT64_MAX

/* Of one class: slabs that are at most a quarter in use, and the free bytes in them. */
struct sparse_slabs {
    uint64_t slabs;
    uint64_t bytes;
};

/* What a whole report needs besides. It is apart since a caller who wants a few numbers only may be
 * a signal handler on a small stack, which has no room for it. */
struct values_more {
    struct medium_row medium[MEDIUM_ROWS];
    struct large_sizes large;
    struct peak peak; /* all zero: nothing was kept */
    struct heap_rows heaps;
    struct class_totals classes[CLASS_COUNT];
    struct sparse_slabs sparse[CLASS_COUNT];
    uint64_t cells_gone; /* bytes of free_cells that occupy no memory */
    bool medium_known;   /* the spans of medium blocks were walked */
    bool heaps_known;    /* the list of heaps was at rest */
    bool sparse_known;   /* the slabs were walked, which only a tool does, from outside */
};

struct values {
    int process;
    uint64_t milliseconds; /* since the library was loaded */
    const char *reason;    /* why they are read: "exit", "interval", ... */
#define GAUGE(group, name, unit, source, text) uint64_t name;
#include "report/gauges.def"
#undef GAUGE
    struct counters counters;
    struct values_more *more; /* NULL: not wanted */
};

enum values_depth {
    VALUES_QUICK,    /* walks no pages: microseconds */
    VALUES_RESIDENT, /* walks all pages: some milliseconds for each GiB */
    VALUES_WHOLE     /* walks all medium blocks as well (medium.c) */
};

/* Reads all numbers that `anchor` leads to. `more` may be NULL. `process` is the id of the process
 * that `peek` reads, 0 for this one (then `peek` is NULL). False: some of it could not be read. */
bool values_read(struct values *values, struct values_more *more, struct peek *peek,
                 const struct anchor *anchor, int process, enum values_depth depth);

/* Fills in what is resident (resident.c); what cannot be known stays UNKNOWN. For this process the
 * caller holds the page heap's lock. */
void values_read_resident(struct values *values, struct peek *peek, const struct heap *heap,
                          int process);

/* Bytes of a heap that are resident; `pagemap` as os_pagemap_open gives it. False: unknown. For
 * this process the caller holds the page heap's lock. (resident.c) */
bool heap_read_resident(struct peek *peek, const struct heap *heap, int pagemap, uint64_t *bytes);

/* Fills in the heaps of the program's own (heaps.c), unless their list is locked. values->more must
 * not be NULL. */
void values_read_heaps(struct values *values, struct peek *peek, const struct anchor *anchor,
                       int process, enum values_depth depth);

/* The name of a provider of this kind (enum provider_kind), as statistics show it. */
const char *provider_name(uint64_t kind);

#endif
