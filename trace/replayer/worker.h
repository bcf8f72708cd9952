/*
 * worker.h - carries out the operations of one thread.
 */
#ifndef SNUG_TRACE_WORKER_H
#define SNUG_TRACE_WORKER_H

#include "program.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* How a block is used after it was allocated. */
enum touch {
    TOUCH_ALL,   /* every byte is written */
    TOUCH_PAGES, /* the first and the last byte, and one byte in every 4 KiB */
    TOUCH_NONE,
};

/* One live block, or none. */
struct slot {
    unsigned char *block;
    /* Bytes << 24 | operations done on this slot so far, modulo 2^24. */
    _Atomic uint64_t state;
};

/* What all threads share. */
struct replay {
    struct program program;
    struct slot *slots;
    struct worker *workers;
    enum touch touch;
    uint64_t start; /* of the first operation, as now_ns gives it */

    /* Samples of memory: one each time that another `interval` operations are done; 0: none. */
    uint64_t interval;
    uint64_t sample_room;
    struct sample *samples;
    _Atomic uint64_t sample_count;
    bool many;                          /* more threads than the meter has slots */
    _Alignas(64) _Atomic uint64_t done; /* operations, counted only when samples are taken */
};

struct sample {
    uint64_t done;
    int64_t live; /* bytes asked for and not yet freed */
    long anonymous_kib;
};

/* One thread. Live bytes may be negative, if it frees what others allocated. */
struct worker {
    _Alignas(64) struct replay *replay;
    pthread_t thread;
    uint64_t number;
    int64_t live_bytes;
    int64_t live_blocks;
    uint64_t sizes; /* a hash of all sizes that were asked for, in whatever order */
};

/* Runs all of a worker's operations. Takes and returns the worker, as pthread_create wants it. */
void *worker_run(void *worker);

#endif
