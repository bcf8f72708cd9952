/*
 * Rows of the statistics that are found by walking: medium blocks by size (medium.c), and heaps of
 * the program's own by name (heaps.c). Here, since the copy at the highest point (peak.h), which
 * the statistics have, has such rows too. All members are words, so that it is read word by word.
 */
#ifndef SNUG_REPORT_ROWS_H
#define SNUG_REPORT_ROWS_H

#include "base/list.h"
#include "heap/user_heaps.h"

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

struct medium_walk {
    struct medium_row rows[MEDIUM_ROWS];
    size_t looks; /* at spans and headers that are left; the walk ends when there are none */
    size_t each;  /* so many headers of a span are looked at, and stand for all in it */
    size_t every; /* of so many spans of cells, one is */
};

/* Walks the medium blocks of a heap that has that many bytes. Of this process, the lock of page
 * runs is held. False: the walk led astray, or there is no such heap yet. */
bool medium_walk(struct medium_walk *walk, struct peek *peek, const struct heap *heap,
                 uint64_t mapped);

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

struct heap_rows {
    uint64_t count;
    struct heap_row rows[HEAP_ROWS];
};

/* Adds up a heap, and adds it to the row of its kind. */
void heap_rows_add(struct heap_rows *rows, struct peek *peek, const struct heap_record *record);

/* Makes rows that were read from anywhere fit to be shown. */
void heap_rows_make_readable(struct heap_rows *rows);

#endif
