/*
 * What was live at the highest point: at its end a program has little, and what it had while it was
 * largest is what one wants to know.
 *
 * The idea: when more pages are in use than at the last copy by a sixteenth, the numbers are copied
 * on the next slow path. So there are few copies, however large the heap becomes, and what stands
 * here at the end is at most a sixteenth, or a MiB, below the highest point. Nobody walks through
 * blocks for it, of which there may be many and nothing touched: so medium blocks are one number.
 *
 * The copy is read without a lock, from outside too: while it is written its number is odd.
 *
 * Cost: adding up a heap, some microseconds and a few for each thread that has magazines; so more
 * growth is waited for where there are many threads.
 */
#ifndef SNUG_REPORT_PEAK_H
#define SNUG_REPORT_PEAK_H

#include "base/peek.h"
#include "pageheap/large_sizes.h"
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
};

extern INTERNAL struct peak peak_kept;

/* Copies, if there is more in use than at the last copy; one thread at a time, with no lock held.
 */
void peak_keep(void);

/* A consistent copy of what `from` is, in this process or another. False: there is none. */
bool peak_read(struct peek *peek, const struct peak *from, struct peak *to);

#endif
