/*
 * pairs.h - a row of `pairs`: one way in which a program allocates and frees.
 */
#ifndef SNUG_BENCH_PAIRS_H
#define SNUG_BENCH_PAIRS_H

#include <stdint.h>

struct row {
    const char *name;
    uint64_t ops;          /* pairs of malloc and free in one round */
    void (*prepare)(void); /* once, before the first round; may be NULL */
    void (*round)(void);   /* what is timed */
    void (*finish)(void);  /* once, after the last round; may be NULL */
};

/* Both end with a row without a name. */
extern const struct row one_thread_rows[]; /* pairs_one_thread.c */
extern const struct row two_thread_rows[]; /* pairs_two_threads.c */

#endif
