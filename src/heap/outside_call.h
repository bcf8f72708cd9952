/*
 * What another process may have a thread of this one do (platform/borrow.h): give free memory back,
 * or check the heap, at once, also in a program that sleeps.
 *
 * The idea: the thread was stopped anywhere, perhaps in the middle of an operation of ours, and so
 * may others be. So all locks are tried, and none is waited for: if they are all free, everything
 * that threads share is whole. What a thread has for itself, its magazines and quick lists, is
 * touched only where the other process has made sure that the thread is stopped, and not on its way
 * through this library. Like a signal handler it allocates nothing and leaves errno alone.
 */
#ifndef SNUG_HEAP_OUTSIDE_CALL_H
#define SNUG_HEAP_OUTSIDE_CALL_H

#include "heap/heap.h"
#include "platform/borrow.h"

enum outside_what { OUTSIDE_TRIM, OUTSIDE_CHECK };

enum outside_outcome {
    OUTSIDE_UNKNOWN,
    OUTSIDE_BUSY, /* some lock was held: nothing was done */
    OUTSIDE_MADE
};

/* Threads (table): one call gives back what waits in the caches of so many; the others keep
 * theirs. */
enum { OUTSIDE_CACHES_MOST = 1024 };

struct outside_call {
    struct borrow borrow; /* first, as its address is this one's */
    uint32_t what;
    uint32_t outcome;
    uint64_t cache_count;
    const char *wrong; /* what a check found; NULL: nothing */
    uint64_t place;    /* and where; 0: nowhere that has an address */
    struct cache *caches[OUTSIDE_CACHES_MOST];
};

/* Bytes (table): more than freeing takes on any stack that programs have for their threads. */
enum { OUTSIDE_STACK = 32 * 1024 };

/* There is one call at a time: the caller traces the first thread of the process, which only one
 * can. */
struct outside_area {
    struct outside_call call;
    _Alignas(64) char image[BORROW_IMAGE];
    _Alignas(64) char stack[OUTSIDE_STACK];
};

extern struct outside_area outside_area;

/* Bytes from a thread's pointer to its `thread_self`. */
extern uint64_t outside_self;

/* The work of a borrowed thread. */
void outside_call_run(struct borrow *borrow);

/* Makes calls possible. */
void outside_call_init(void);

#endif
