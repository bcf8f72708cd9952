/*
 * What was live at the highest point: at its end a program has little, and what it had while it was
 * largest is what one wants to know.
 *
 * The idea: when more pages are in use than at the last copy by a sixteenth, the numbers are copied
 * on the next slow path. So there are few copies, however large the heap becomes, and what stands
 * here at the end is at most a sixteenth, or a MiB, below the highest point. Medium blocks, of
 * which nobody counts those of a size, are walked if they are few; of many a part is, and taken for
 * all: so their rows are exact for small heaps and estimates for large ones.
 *
 * The copy is read without a lock, from outside too: while it is written its number is odd.
 *
 * Cost: adding up a heap, some microseconds, a few for each thread that has magazines and for each
 * heap of the program's own, and up to 50 for medium blocks; so more growth is waited for where
 * there are many threads or heaps.
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
    uint64_t small;   /* bytes in use, here and below */
    uint64_t medium;
    uint64_t large; /* huge ones as well */
    uint64_t heaps; /* pages in use in heaps of the program's own */
    uint64_t cached;
    uint64_t blocks_medium;
    uint64_t classes[CLASS_COUNT]; /* objects in use */
    struct large_sizes sizes;
    uint64_t medium_seen; /* medium blocks that the rows are made of; 0: there are no rows */
    struct medium_row rows[MEDIUM_ROWS];
    uint64_t heaps_known; /* the list of heaps was at rest */
    struct heap_rows by_name;
};

extern INTERNAL struct peak peak_kept;

/* Copies, if there is more in use than at the last copy; one thread at a time, with no lock held.
 */
void peak_keep(void);

/* Whether medium blocks are known by size: there were none, or some were seen. */
static inline bool peak_has_medium(const struct peak *peak)
{
    return peak->sequence != 0 && (peak->medium_seen != 0 || peak->blocks_medium == 0);
}

/* A consistent copy of what `from` is, in this process or another. False: there is none. */
bool peak_read(struct peek *peek, const struct peak *from, struct peak *to);

#endif
