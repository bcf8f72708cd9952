/*
 * The peak: a copy of the numbers from when most was live. At its end a program has little left;
 * what it had while it was largest is what one wants to know.
 *
 * The idea: once a sixteenth more pages are in use than at the last copy, the next slow path copies
 * the numbers again. So there are few copies, however large the heap becomes, and the last one is
 * at most a sixteenth, or about a MiB, below the true peak. The heap keeps no counts of medium
 * blocks by size, so the copy walks these blocks: all of them if they are few, otherwise some,
 * which stand for the rest. So the rows by size are exact for small heaps and estimates for large
 * ones.
 *
 * The copy is read without a lock, by other processes too: `sequence` is odd while it is written.
 *
 * Cost: some microseconds to sum up a heap, a few more for each thread that has magazines and for
 * each heap of the program's own, and up to 50 for medium blocks. With many threads or heaps the
 * next copy waits for more growth. A program that has less than PEAK_LEAST and was not asked
 * for statistics is not copied: it would notice the code and tables.
 */
#ifndef SNUG_REPORT_PEAK_H
#define SNUG_REPORT_PEAK_H

#include "base/peek.h"
#include "pageheap/large_sizes.h"
#include "report/rows.h"
#include "slab/size_class.h"

struct peak {
    uint64_t sequence; /* 0: nothing was copied yet; odd: it is being written */
    uint64_t pages;    /* in use then, in all heaps */
    uint64_t milliseconds;
    uint64_t threads; /* that had magazines */
    uint64_t small;   /* bytes in use, as the next two */
    uint64_t medium;
    uint64_t large; /* huge blocks included */
    uint64_t heaps; /* bytes of pages in use in heaps of the program's own */
    uint64_t cached;
    uint64_t blocks_medium;
    uint64_t classes[CLASS_COUNT]; /* objects in use */
    struct large_sizes sizes;
    uint64_t medium_seen; /* medium blocks that the rows are made of; 0: there are no rows */
    struct medium_row rows[MEDIUM_ROWS];
    uint64_t heaps_known; /* 1: by_name is filled in; 0: the list of heaps was locked */
    struct heap_rows by_name;
};

extern INTERNAL struct peak peak_kept;

/* Call at the start if statistics are asked for: then small heaps are copied, too. */
void peak_want(void);

/* Copies the numbers if enough more pages are in use than at the last copy. One thread at a time
 * may call this, with no lock held. */
void peak_keep(void);

/* Whether medium blocks are known by size: there were none, or some were seen. */
static inline bool peak_has_medium(const struct peak *peak)
{
    return peak->sequence != 0 && (peak->medium_seen != 0 || peak->blocks_medium == 0);
}

/* Reads `from`, of this process or of the one that `peek` reads, as one consistent copy. False:
 * nothing was kept yet, or it changed meanwhile. */
bool peak_read(struct peek *peek, const struct peak *from, struct peak *to);

#endif
