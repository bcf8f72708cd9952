/*
 * The ways of realloc, between which resize.c chooses: resize_plain.c is for every program,
 * resize_watched.c for blocks while requests are looked at, and for blocks of no bytes. The first
 * two functions are for the short ways of api/malloc.c as well.
 */
#ifndef SNUG_HEAP_RESIZE_H
#define SNUG_HEAP_RESIZE_H

#include "heap/alloc.h"

/* One part in: a block that grows by no more of itself grows often. */
enum { CREEP_SHARE = 4 };

/* The bytes that a block of `old_bytes` gets when it becomes one of `bytes`. A block that grows by
 * little gets more, so that nothing need be done the next times; not from where on it moves without
 * a copy. */
static inline size_t bytes_to_grow(size_t old_bytes, size_t bytes)
{
    bool creeps = bytes > old_bytes && bytes - old_bytes <= old_bytes / CREEP_SHARE;
    size_t wish = bytes + bytes / SLACK_SHARE;
    return creeps && bytes > BYTES_SHORT && wish <= GROWN_MOST ? wish : bytes;
}

/* Whether a live cell, of which `old_bytes` may be used, becomes one of `bytes` where it is; and
 * makes it so. One that loses most of itself moves, as an object does: where it was it would keep
 * what it leaves apart, a third of the memory of blocks that are resized at random. */
bool resize_cell(void *block, size_t old_bytes, size_t bytes);

/* Resizes a block of a heap that is not hardened, of which `old_bytes` may be used. NULL: it is as
 * before. */
void *resize_plain(struct place place, void *block, size_t old_bytes, size_t bytes);

/* Ends a move of `bytes`: `moved`, which is zero behind its first `dirty` bytes, has what was in a
 * block of this place, or is NULL. `cache` is the calling thread's of the place's heap. */
void *resize_moved(void *moved, struct place place, struct cache *cache, void *block, size_t bytes,
                   size_t dirty);

/* A block that could not be moved. One that becomes shorter stays: hardly a program is ready for a
 * refusal then. */
void *resize_stay(struct place place, void *block, size_t old_bytes, size_t bytes);

/* A block that is resized is allocated anew, wherever it is afterwards: it is counted, becomes a
 * sample or not, and is no more what it was. A large one stays where it is, if it can. */
void *resize_watched(struct place place, void *block, size_t old_bytes, size_t bytes);

/* A block of no bytes, or what is none, which was reported. */
void *resize_empty(struct place place, void *block, size_t bytes);

#endif
