/*
 * What is said about a wrong pointer, in one line, and what follows: abort, or with
 * SNUG_MISUSE=warn a return to the caller, who then leaves the pointer alone.
 *
 * The line is written by one system call, so the lines of several threads do not mix. The caller
 * must hold no lock that abort's handlers would need: a program's SIGABRT handler may allocate.
 */
#ifndef SNUG_META_MISUSE_H
#define SNUG_META_MISUSE_H

#include "base/common.h"

/* A fault of a pointer, found under a lock and reported once that is released. MISUSE_DAMAGED: the
 * header before the object at `address` was written over. MISUSE_WRITTEN: the object itself was,
 * although it was free. MISUSE_STALE: either that, or it was freed a second time. */
struct misuse {
    enum {
        MISUSE_NONE,
        MISUSE_DOUBLE_FREE,
        MISUSE_INSIDE,
        MISUSE_UNKNOWN,
        MISUSE_DAMAGED,
        MISUSE_OTHER_HEAP,
        MISUSE_WRITTEN,
        MISUSE_STALE
    } kind;
    uintptr_t address;
    size_t bytes;    /* of the object, but for UNKNOWN and DAMAGED; 0 if it is not known any more */
    uintptr_t start; /* of the object, for MISUSE_INSIDE */
};

/* `call` is what the program called: "free", "realloc". Does nothing for MISUSE_NONE. */
void misuse_report(const char *call, const struct misuse *misuse);

#endif
