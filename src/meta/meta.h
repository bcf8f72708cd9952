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

#include "base/common.h"

#define META_LEAST ((size_t)64)
#define META_MOST ((size_t)4096)

/* `bytes` (at most META_MOST) of memory with undefined contents, rounded up to the next power of
 * two and aligned to it. NULL if there is none. */
void *meta_take(size_t bytes);

/* Takes back what meta_take gave for the same `bytes`. */
void meta_give(void *block, size_t bytes);

/* `bytes` of zero memory in pages of its own, for tables; never given back. NULL if there is
 * none. */
void *meta_map(size_t bytes);

/* For the statistics: bytes handed out by meta_take; bytes of all chunks and tables, of which only
 * what was touched occupies memory. */
size_t meta_bytes_used(void);
size_t meta_bytes_mapped(void);

/* For fork: see heap/fork.c. */
struct lock *meta_lock(void);

#endif
