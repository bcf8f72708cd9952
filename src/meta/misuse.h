/*
 * Reporting misuse of the heap, and what follows. In this order:
 *
 *   a line on stderr, as text or as JSON (SNUG_MISUSE_FORMAT)
 *   the stacks on which the block was allocated and freed, if somebody knows them
 *   the program's own handler, if it has one, which need not return
 *   SNUG_MISUSE: abort, a trap, or a return to the caller, who then leaves the pointer alone
 *
 * All of it is safe in signal handlers and allocates nothing. The line is written by one system
 * call, so the lines of several threads do not mix.
 *
 * Locks: whoever reports holds none, so that the program's handler, or that of SIGABRT, may
 * allocate and free. What is found while a lock is held, or a cache is half filled, waits
 * (misuse_hold).
 */
#ifndef SNUG_META_MISUSE_H
#define SNUG_META_MISUSE_H

#include "meta/maker.h"

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
    MISUSE_COPY,       /* a copy would go past an object's end, which is at `address` */
    MISUSE_MAKER       /* an object is freed by a function that does not belong to its maker's */
};

/* Misuse, found under a lock and reported once that is released. */
struct misuse {
    enum misuse_kind kind;
    bool has_found;
    uintptr_t address;
    size_t bytes; /* of the object; 0: not known, as for UNKNOWN and DAMAGED */
    union {
        uintptr_t start;  /* of the object, for MISUSE_INSIDE and MISUSE_COPY */
        size_t said;      /* what the program says, for MISUSE_SIZE and MISUSE_ALIGNMENT */
        enum maker maker; /* who made the object, for MISUSE_MAKER */
        uint64_t found;   /* what stands where something else should, if `has_found` */
    };
};

/* Frames (table): of a stack in a report, which is made on the stack of whoever misused. */
enum { MISUSE_FRAMES_MOST = 32 };

/* A stack: addresses of code, the innermost first. */
struct misuse_stack {
    size_t count;
    uintptr_t frames[MISUSE_FRAMES_MOST];
};

/* All that is known of a misuse. What the pointers lead to is there until the report returns. */
struct misuse_report {
    const struct misuse *misuse;
    const char *name;                     /* of the kind: "double-free" */
    const char *call;                     /* what the program called: "free", "realloc" */
    const char *line;                     /* as on stderr, without the newline */
    struct misuse_stack allocated, freed; /* empty if they are not known */
};

/* Reports a misuse; does nothing for MISUSE_NONE. */
void misuse_report(const char *call, const struct misuse *misuse);

/* Layout: so many wait; what is found beyond them in one go is only said. */
enum { MISUSE_WAITS = 32 };

/* Reports that wait until their thread has done what it is at: a handler may allocate and free, of
 * the same class too, and need not return. */
struct misuse_waits {
    unsigned count;
    struct misuse_wait {
        const char *call;
        struct misuse misuse;
    } each[MISUSE_WAITS];
};

/* Those of the calling thread, on its stack; NULL: its reports do not wait. (misuse_hold.c) */
extern INTERNAL __thread struct misuse_waits *misuse_waiting
    __attribute__((tls_model("initial-exec")));

/* From here on the calling thread's reports wait. Within another such part this does nothing, and
 * its end neither. (misuse_hold.c) */
void misuse_hold(struct misuse_waits *waits);

/* Ends that. True: there are reports to make, when the caller is ready for it. (misuse_hold.c) */
bool misuse_hold_ends(struct misuse_waits *waits);

/* Makes them. (misuse.c) */
void misuse_report_waits(const struct misuse_waits *waits);

/* Both. (misuse_hold.c) */
void misuse_let_go(struct misuse_waits *waits);

/* The same of a misuse that the caller has said in other words: what is left is the program's
 * handler, and what follows. */
void misuse_report_said(const char *call, const struct misuse *misuse);

/* Does what follows every report, as SNUG_MISUSE says. Returns if the program is to go on. */
void misuse_follow(void);

/* Sets what is called for every report, once that is on stderr; NULL: nothing is. The layers above
 * set it. */
void misuse_set_listener(void (*told)(const struct misuse_report *report));

/* Sets what fills in the stacks of the block at an address, if they are known. It takes no lock
 * that the thread may hold, and waits for none that another could hold for long. */
void misuse_set_source(void (*known)(uintptr_t address, struct misuse_stack *allocated,
                                     struct misuse_stack *freed));

/* The name of a kind: "double-free". (misuse_text.c) */
const char *misuse_name(enum misuse_kind kind);

struct text;

/* Adds the line, without the newline, or the whole report as an object of JSON. (misuse_text.c) */
void misuse_text_line(struct text *text, const char *call, const struct misuse *misuse);
void misuse_text_json(struct text *text, const struct misuse_report *report);

/* Adds the stacks, a line each. (misuse_text.c) */
void misuse_text_stacks(struct text *text, const struct misuse_report *report);

#endif
