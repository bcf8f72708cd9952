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

/* Medium blocks in use by doublings of their size: up to 1 KiB, 2 KiB, ... 128 KiB. */
enum { MEDIUM_ROWS = 8 };

struct medium_row {
    uint64_t blocks;
    uint64_t bytes;
};

static inline size_t medium_row_to(size_t row)
{
    return KIB << row;
}

/* The slabs of a class of which at most a quarter is in use, and bytes that are free in them. */
struct sparse_slabs {
    uint64_t slabs;
    uint64_t bytes;
};

/* Heaps of the program's own that have the same name, provider and quota. */
struct heap_row {
    char name[HEAP_NAME_MOST]; /* UTF-8 without control characters */
    uint64_t provider;         /* enum provider_kind; HEAP_MIXED: of several */
    uint64_t heaps;
    uint64_t blocks;
    uint64_t live;
    uint64_t mapped;
    uint64_t peak;  /* the most that one of them had */
    uint64_t quota; /* of each, or the size of its buffer; 0: none */
};

/* Rows: of heaps with more names than that, the rest is in the last row. */
enum { HEAP_ROWS = 16, HEAP_MIXED = KIND_BUFFER + 1 };

/* What makes a whole report. Apart from the rest, so that who wants a few numbers, in a signal
 * handler on its small stack, has no room for it. */
struct values_more {
    struct medium_row medium[MEDIUM_ROWS];
    struct large_sizes large;
    struct peak peak; /* all zero: nothing was kept */
    struct heap_row heaps[HEAP_ROWS];
    size_t heap_rows;
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

/* Fills in the medium blocks by size (medium.c), unless they cannot be walked; there is room for
 * more. As above. */
void values_read_medium(struct values *values, struct peek *peek, const struct anchor *anchor);

#endif
