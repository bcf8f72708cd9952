/*
 * A provider that takes memory ahead in large pieces, extents, and hands out ranges of them: what
 * preallocated memory and files have in common.
 *
 * The idea: one bit for each page of an extent, and first fit to find a range. Ranges are segments
 * and huge blocks, some MiB each, so looking through the bits is nothing beside using the memory. A
 * second bit says whether a page was ever handed out: those that were are zeroed when they are
 * handed out again.
 *
 * The bits lie in mappings of their own, not in the extents. Thread-safe; takes RANK_PROVIDER.
 */
#ifndef SNUG_PROVIDER_POOL_H
#define SNUG_PROVIDER_POOL_H

#include "provider/provider.h"
#include "provider/provider_lock.h"

struct extent {
    struct extent *next;
    char *start;
    size_t pages;
    size_t taken_pages; /* == bits set in taken; <= pages */
    uint64_t *taken;    /* a bit for each page: it is handed out */
    uint64_t *used;     /* it was ever handed out, so it may not be zero */
    int copy;           /* while the process forks: the child's file (provider_file.c) */
    char *copy_memory;
};

struct pool {
    struct provider provider;
    struct provider_lock lock;
    struct extent *extents;
    size_t bytes; /* of all extents */
    /* Makes room for `bytes` more by adding an extent; false: there is none to be had. The lock is
     * held. */
    bool (*grow)(struct pool *pool, size_t bytes);
    /* Whether an extent goes back to the system once all of it is free again. */
    bool gives_back;
    bool limited; /* its memory is counted by provider/limit.h */
    /* Serves requests that the pool cannot; NULL: they are refused. */
    const struct provider *fallback;
};

/* Call pool_end for each that was made. */
void pool_init(struct pool *pool, enum provider_kind kind,
               bool (*grow)(struct pool *pool, size_t bytes));

/* Adds `bytes` at `start`, all zero, as an extent. False: there is no memory for its bits. The lock
 * must be held, unless the pool is being made. */
bool pool_add(struct pool *pool, char *start, size_t bytes);

/* Unmaps all extents. Nobody else may use the pool any more. */
void pool_end(struct pool *pool);

static inline struct pool *pool_of(const struct provider *provider)
{
    return CONTAINER_OF(provider, struct pool, provider);
}

#endif
