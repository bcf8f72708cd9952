/*
 * Rows of the statistics that a walk finds: medium blocks by size (medium.c), and heaps of the
 * program's own by name (heaps.c). They have a header of their own since both the statistics
 * (values.h) and the peak (peak.h) have such rows. Rows consist of whole 8-byte words, since the
 * peak is copied word by word.
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
    size_t looks; /* spans and headers that may still be looked at; at 0 the walk ends */
    size_t each;  /* at most so many headers of a span are looked at, and stand for all */
    size_t every; /* one in so many spans of cells is looked at */
};

/* Walks the medium blocks of a heap whose segments have at most `mapped` bytes. For this process
 * the caller holds the page heap's lock. False: the walk led astray, or there is no such heap
 * yet. */
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

/* Sums up a heap, and adds the sums to the row of its name, provider and quota. */
void heap_rows_add(struct heap_rows *rows, struct peek *peek, const struct heap_record *record);

/* Makes rows fit to be shown that another process wrote, where they may hold anything: bounds their
 * count, and replaces what is not text in names. */
void heap_rows_make_readable(struct heap_rows *rows);

#endif
