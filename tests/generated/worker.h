/* worker.h - a thread of a generated program: the phases' lifetimes, on blocks that are checked. */
#ifndef SNUG_TESTS_WORKER_H
#define SNUG_TESTS_WORKER_H

#include <stdatomic.h>

#include "plan.h"

struct block {
    unsigned char *at; /* NULL: none */
    size_t size;
    enum touch touch; /* how it was written */
};

/* Blocks on their way from one thread to another: one puts, one takes. */
struct ring {
    struct block *blocks;
    uint32_t capacity;
    _Alignas(64) _Atomic uint32_t put;
    _Alignas(64) _Atomic uint32_t taken;
};

struct worker {
    unsigned index;
    unsigned threads;
    uint64_t random;
    uint64_t takes;      /* all so far */
    struct block *slots; /* as many as the largest phase needs */
    struct ring inbox;
    struct worker *next; /* whose inbox this one fills */
    struct block *kept;
    uint32_t kept_count, most_kept;
    _Atomic bool produces; /* in a pipeline: more will come */
};

/* Runs one phase: afterwards nothing of the worker is live but what is kept, and what may be in
 * inboxes, which is what worker_drain is for, once all workers have ended the phase. */
void worker_run(struct worker *worker, const struct phase *phase);
void worker_drain(struct worker *worker);

/* Frees what was kept. */
void worker_end(struct worker *worker);

#endif
