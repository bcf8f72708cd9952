/*
 * libsnug-compat: names of jemalloc and tcmalloc that programs are linked with, for programs that
 * run on snug. What they have in common.
 *
 * The idea: a program that calls mallocx and free must get both from one allocator. With this
 * library preloaded behind libsnug.so, or linked, it gets both from snug. It is no part of libsnug:
 * a program that asks whether it runs on jemalloc by looking for these names should not find them
 * by accident.
 *
 *   LD_PRELOAD="libsnug.so libsnug-compat.so" redis-server
 */
#ifndef SNUG_COMPAT_COMPAT_H
#define SNUG_COMPAT_COMPAT_H

#include <stddef.h>

#include "snug/snug.h"

#define COMPAT_PUBLIC __attribute__((visibility("default")))

/* The current statistics. */
struct snug_stats compat_stats(void);

/* Bytes in pages that have a live block in them, or a free place beside one. */
size_t compat_active(void);

/* How many bytes a request would be granted; 0: it cannot be had. Up to COMPAT_PROBE_MOST a block
 * is taken for the answer and freed again; a larger one takes whole pages. */
enum { COMPAT_PROBE_MOST = 128 * 1024 };
size_t compat_granted(size_t alignment, size_t size);

/* Writes a few lines of statistics, at most `bytes` with the zero behind them. */
void compat_write_stats(char *text, size_t bytes);

#endif
