/*
 * The shadow: what a heap has to know, kept by the simplest means, to compare the real one with.
 *
 * It knows every live block: where it is, how many bytes were asked for, how many may be used, its
 * alignment, and the pattern that its bytes hold. A block that enters is checked to be aligned,
 * large enough, and apart from every other; its bytes are checked when it leaves, and all of them
 * in a sweep.
 *
 * The blocks stand in libc's search tree (tsearch) under an order in which blocks that overlap are
 * equal: the one that a new block would overlap is what the tree finds instead of inserting it.
 *
 * Not thread-safe. Its own memory is libc's.
 */
#ifndef SNUG_TESTS_SHADOW_H
#define SNUG_TESTS_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block {
    unsigned char *start;
    size_t requested;
    size_t usable;    /* what the heap says; >= requested */
    size_t filled;    /* bytes that hold the pattern; requested, or all that are usable */
    size_t alignment; /* that was asked for */
    uint64_t id;      /* of the pattern */
    size_t index;     /* in the shadow's array */
};

struct shadow {
    void *tree;            /* of struct block by address */
    struct block **blocks; /* the same in no order */
    size_t count;
    size_t capacity;
    size_t bytes; /* sum of usable */
    uint64_t next_id;
};

/* A block that the heap has just given for `requested` bytes at a multiple of `alignment`. It is
 * filled: the bytes that were asked for, or with `fill_all` all that may be used. */
struct block *shadow_add(struct shadow *shadow, void *start, size_t requested, size_t alignment,
                         bool fill_all);

/* Checks that the block's bytes are as they were filled, and that its size is what it was. */
void block_check(const struct block *block);

/* Checks that the first `kept` bytes at `start` are those of `block`, which may have moved. */
void block_check_bytes(const struct block *block, const void *start, size_t kept);

/* The block has left the heap, or is about to. Frees `block`. */
void shadow_remove(struct shadow *shadow, struct block *block);

/* Checks all blocks. */
void shadow_sweep(const struct shadow *shadow);

/* Forgets what is left; the blocks themselves are the caller's. */
void shadow_end(struct shadow *shadow);

/* Compares the heap's own totals with the shadow, class by class and as a whole. No other thread
 * may use the heap meanwhile (accounts.c). */
void accounts_check(const struct shadow *shadow);

#endif
