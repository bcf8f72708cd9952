/*
 * What is said about misuse of the heap, and what follows.
 *
 *   a line on stderr, as text or as JSON (SNUG_MISUSE_FORMAT)
 *   the stacks on which the block was allocated and freed, if somebody knows them
 *   the program's own handler, if it has one, which need not return
 *   SNUG_MISUSE: abort, a trap, or a return to the caller, who then leaves the pointer alone
 *
 * All of it is safe in signal handlers and allocates nothing. The line is written by one system
 * call, so the lines of several threads do not mix.
 *
 * Locks: whoever reports holds none of malloc's heap, so that a handler, or that of SIGABRT, may
 * allocate and free. The lock of all other heaps (RANK_HEAPS) may be held, when a thread ends that
 * has used some: a handler should not use those.
 */
#ifndef SNUG_META_MISUSE_H
#define SNUG_META_MISUSE_H

#include "base/common.h"

enum misuse_kind {
    MISUSE_NONE,
    MISUSE_DOUBLE_FREE,
    MISUSE_INSIDE,     /* a pointer into an object */
    MISUSE_UNKNOWN,    /* a pointer to nothing of snug's */
    MISUSE_DAMAGED,    /* the header before the object at `address` was written over */
    MISUSE_OTHER_HEAP, /* an object of another heap */
    MISUSE_WRITTEN,    /* the object was written to although it was free */
    MISUSE_STALE,      /* either that, or it was freed a second time */
    MISUSE_BEYOND,     /* memory that was never handed out was written to, behind an object */
    MISUSE_OVERFLOW,   /* an object was written to past its end, */
    MISUSE_UNDERFLOW,  /* or before its beginning */
    MISUSE_SIZE,       /* an object cannot have the size that the program says it has, */
    MISUSE_ALIGNMENT,  /* or the alignment */
    MISUSE_COPY        /* a copy would go past the end of the object, which is at `address` */
};

/* Misuse, found under a lock and reported once that is released. */
struct misuse {
    enum misuse_kind kind;
    bool has_found;
    uintptr_t address;
    size_t bytes; /* of the object, but for UNKNOWN and DAMAGED; 0 if it is not known any more */
    union {
        uintptr_t start; /* of the object, for MISUSE_INSIDE and MISUSE_COPY */
        size_t said;     /* what the program says, for MISUSE_SIZE and MISUSE_ALIGNMENT */
        uint64_t found;  /* what stands where something else should, if `has_found` */
    };
};

/* Frames (table): of a stack in a report, which is made on the stack of whoever misused. */
enum { MISUSE_FRAMES_MOST = 32 };

/* A stack: addresses of code, the innermost first. */
struct misuse_stack {
    size_t count;
    uintptr_t frames[MISUSE_FRAMES_MOST];
};

/* All that is known of it. What the pointers lead to is there until the report returns. */
struct misuse_report {
    const struct misuse *misuse;
    const char *name;                     /* of its kind: "double-free" */
    const char *call;                     /* what the program called: "free", "realloc" */
    const char *line;                     /* as it is said, without its end */
    struct misuse_stack allocated, freed; /* empty if they are not known */
};

/* Reports. Does nothing for MISUSE_NONE. */
void misuse_report(const char *call, const struct misuse *misuse);

/* What follows every report: SNUG_MISUSE. Returns if the program is to go on. */
void misuse_follow(void);

/* Called for every report, once it is said; NULL: nobody is. The layers above set it. */
void misuse_set_listener(void (*told)(const struct misuse_report *report));

/* Fills in the stacks of the block at an address, if they are known. Takes no lock that the thread
 * may hold, and waits for none that another could hold for long. */
void misuse_set_source(void (*known)(uintptr_t address, struct misuse_stack *allocated,
                                     struct misuse_stack *freed));

/* The word of a kind: "double-free". (misuse_text.c) */
const char *misuse_name(enum misuse_kind kind);

struct text;

/* The line, without its end, and the same as an object of JSON. (misuse_text.c) */
void misuse_text_line(struct text *text, const char *call, const struct misuse *misuse);
void misuse_text_json(struct text *text, const struct misuse_report *report);

/* The stacks, as lines. */
void misuse_text_stacks(struct text *text, const struct misuse_report *report);

#endif
