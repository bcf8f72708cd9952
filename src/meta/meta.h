/*
 * Memory for snug's own structures: descriptors, magazines, thread caches, arenas.
 *
 * The idea: blocks come in powers of two from 64 bytes to 4 KiB, cut from chunks by moving a
 * pointer, and wait in a list per size when they are free. Chunks are never given back, so a stale
 * pointer to a descriptor reads a descriptor, never unmapped memory; that is what lets an invalid
 * free be looked at before the right lock is held. The first chunk is part of the library's own
 * image: a small program needs no system call for its metadata.
 *
 * Cost: O(1). Thread-safe; takes RANK_META.
 */
#ifndef SNUG_META_META_H
#define SNUG_META_META_H

#include "platform/lock.h"

/* Layout: blocks of metadata are of 64, 128, ... 4096 bytes. */
#define META_LEAST ((size_t)64)
#define META_MOST ((size_t)4096)

/* Layout: those sizes. */
enum { META_SIZES = 7 };

/* Layout: chunks grow with the metadata there is, so this many are enough for any heap. The
 * statistics do not see what is in others. */
enum { META_RANGES = 64 };

/* An area of such memory. Nearly everything lies in the one that grows by the system's memory; a
 * heap that may take nothing from the system has one of its own, of a fixed size. */
struct meta {
    struct lock lock;
    bool grows;
    struct meta_block *free[META_SIZES];
    char *chunk;        /* what is left of the newest chunk */
    char *chunk_end;    /* chunk <= chunk_end; both multiples of META_LEAST */
    size_t lacks;       /* of the block for which the system had no chunk, nor a heap since; or 0 */
    size_t used;        /* bytes handed out now */
    size_t mapped;      /* bytes of all chunks and tables */
    size_t range_count; /* chunks and tables, with or without room below; counted, then filled in */
    struct {
        uintptr_t start;
        size_t bytes;
    } ranges[META_RANGES];
};

extern INTERNAL struct meta meta_system;

/* Makes an area of the `bytes` at `start`, which are zero and aligned to META_LEAST. */
void meta_init(struct meta *meta, void *start, size_t bytes);

/* `bytes` (at most META_MOST) of memory with undefined contents, rounded up to the next power of
 * two and aligned to it. NULL if there is none. */
void *meta_alloc_from(struct meta *meta, size_t bytes);

/* Takes back what meta_alloc_from gave for the same `bytes`. */
void meta_free_to(struct meta *meta, void *block, size_t bytes);

static inline void *meta_alloc(size_t bytes)
{
    return meta_alloc_from(&meta_system, bytes);
}

static inline void meta_free(void *block, size_t bytes)
{
    meta_free_to(&meta_system, block, bytes);
}

/* The same of snug's own memory for what is done without, as a thread does without a magazine.
 * After a refusal 8 such requests have NULL at once, then 16, up to 1,024: at a limit each call
 * would ask the system for it, with a lock held. */
void *meta_alloc_optional(size_t bytes);

/* The bytes for which there was no more when they were last asked for; 0: there was. Needs no lock.
 */
static inline size_t meta_lacks(const struct meta *meta)
{
    /* relaxed: who comes too early or too late is here again at the next refusal */
    return __atomic_load_n(&meta->lacks, __ATOMIC_RELAXED);
}

/* Makes pages of a heap the chunk, for good, as the system has no more; they are none of `mapped`.
 * Both ends are multiples of META_LEAST. */
static inline void meta_use_pages(struct meta *meta, char *start, char *end)
{
    lock_acquire(&meta->lock);
    meta->chunk = start;
    meta->chunk_end = end;
    __atomic_store_n(&meta->lacks, 0, __ATOMIC_RELAXED); /* as above */
    lock_release(&meta->lock);
}

/* `bytes` of zero memory in pages of its own, for tables; never given back. NULL if there is
 * none. */
void *meta_map(size_t bytes);

#endif
