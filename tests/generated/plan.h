/*
 * plan.h - what a generated program does, all of it drawn from one number, the seed.
 *
 * A plan is a sequence of phases. In each of them every thread takes and frees blocks of its own in
 * one manner; then all wait for each other. The bounds keep a program small enough for any machine
 * and short enough to run some hundred: see plan_make.
 */
#ifndef SNUG_TESTS_PLAN_H
#define SNUG_TESTS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_THREADS = 16, MOST_PHASES = 4, MOST_FEW = 8, PLAN_PAGE = 4096 };
enum { PLAN_GROWTH = 8 }; /* a block grows by an eighth, or shrinks by it */

/* How sizes are drawn. */
enum size_kind { SIZE_FIXED, SIZE_POWERS, SIZE_UNIFORM, SIZE_LOG_UNIFORM, SIZE_FEW, SIZE_KINDS };

/* What is written to a block: nothing, its first byte, its first thousandth, a byte in each page,
 * all of it. */
enum touch { TOUCH_NONE, TOUCH_BYTE, TOUCH_THOUSANDTH, TOUCH_PAGES, TOUCH_ALL, TOUCH_KINDS };

/* Which block is freed when. */
enum lifetime {
    LIFE_STACK,      /* the last taken first, up and down at random */
    LIFE_QUEUE,      /* the first taken first */
    LIFE_RANDOM,     /* one at random is replaced */
    LIFE_FILL,       /* all are taken, then all are freed, in one of three orders */
    LIFE_GENERATION, /* most live for a generation, one of 16 for many */
    LIFE_PEAKS,      /* up to all, down to an eighth, at random */
    LIFE_EXCHANGE,   /* each thread frees what another took */
    LIFE_PIPELINE,   /* half of the threads take only, the others free only */
    LIFE_KINDS
};

enum order { ORDER_FIRST, ORDER_LAST, ORDER_MIXED, ORDER_KINDS };

struct sizes {
    enum size_kind kind;
    size_t low, high; /* both included */
    size_t few[MOST_FEW];
    unsigned few_count;
};

struct phase {
    enum lifetime lifetime;
    enum order order;
    enum touch touch;
    struct sizes sizes;
    unsigned calloc_percent;
    unsigned aligned_percent;
    unsigned alignment_bits; /* the largest alignment is 2 to the power of it; at least 5 */
    unsigned resize_percent; /* of the blocks that were taken */
    bool shrink;             /* a resize makes them smaller, not larger */
    unsigned resizes;        /* how often each */
    uint32_t blocks;         /* live at most, of one thread */
    uint64_t takes;          /* of one thread */
    uint32_t keep_each;      /* of so many blocks one lives to the end of the program; 0: none */
    unsigned sleep_ms;       /* afterwards */
};

struct plan {
    uint64_t seed;
    unsigned threads;
    bool threads_wait; /* at the end they are still there */
    unsigned phase_count;
    struct phase phases[MOST_PHASES];
};

void plan_make(struct plan *plan, uint64_t seed);

/* Prints it for people, a line for each phase. */
void plan_print(const struct plan *plan);

/* A size as `sizes` has it, at least 1; advances the state of a thread's random numbers. */
size_t plan_size(const struct sizes *sizes, uint64_t *random);

/* How many bytes of a block are written. */
size_t plan_touched(enum touch touch, size_t size);

/* A number in [low, high]. */
uint64_t plan_between(uint64_t *random, uint64_t low, uint64_t high);

#endif
