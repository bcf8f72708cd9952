/*
 * load.h - blocks of all sizes for a program whose world is not as usual.
 *
 * Each block has a pattern, which is looked at before it goes, and is zero at first if it is from
 * calloc; malloc and free keep errno.
 */
#ifndef SNUG_TESTS_TRAPS_LOAD_H
#define SNUG_TESTS_TRAPS_LOAD_H

#include <stddef.h>
#include <stdint.h>

struct block {
    void *start;
    size_t size;
};

/* Allocates so many blocks by malloc alone, one in 1,000 of some MB, and frees them in another
 * order. 7919 must not divide `count`. */
void load_by_malloc(struct block *blocks, size_t count, uint64_t seed);

/* The same of 1,500 blocks by malloc, calloc and aligned_alloc, where each takes the place of one
 * that was there before; with large ones that are resized, and malloc_trim, twice. For a thread;
 * any argument makes another load. */
void *load_mixed(void *argument);

/* The same in this thread and two more. */
void load_in_threads(void);

/* A block that grows by realloc from 1 MiB to 64, and shrinks. */
void load_by_realloc(void);

#endif
