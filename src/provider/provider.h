/*
 * Where segments come from: one small interface, so that a heap can live on the system's memory or
 * on anything else that can hand out ranges of bytes.
 *
 * Addresses and sizes are multiples of os_page_size(). The functions may be called by any thread
 * at any time; they take no lock of snug's below RANK_PROVIDER, and report failure by their result
 * only.
 */
#ifndef SNUG_PROVIDER_PROVIDER_H
#define SNUG_PROVIDER_PROVIDER_H

#include "base/common.h"

struct provider {
    /* `bytes` of zero memory at a multiple of `alignment`, or NULL. */
    void *(*take)(const struct provider *provider, size_t bytes, size_t alignment);
    /* As `take`, for one block of the program's, where the system may use huge pages of its own
     * accord. NULL: `take` serves. */
    void *(*take_block)(const struct provider *provider, size_t bytes, size_t alignment);
    /* Takes back what they gave. False: it cannot, and the memory stays the caller's. */
    bool (*give)(const struct provider *provider, void *start, size_t bytes);
    /* Drops the contents of free pages, which are zero afterwards. False: they are as before. */
    bool (*purge)(const struct provider *provider, void *start, size_t bytes);
    /* Resizes a whole taken range, keeping its contents; growth is zero. NULL: it cannot. */
    void *(*resize)(const struct provider *provider, void *start, size_t old_bytes,
                    size_t new_bytes, bool may_move);
    /* Told of memory in which many small blocks will lie: it may make some of it present. NULL:
     * there is nothing to do. */
    void (*prepare)(const struct provider *provider, void *start, size_t bytes);
    /* Makes zero memory that was never written to, or was purged, present: by huge pages if `huge`,
     * as far as they are to be had. Returns the nanoseconds that took; 0: it could not be done, or
     * only in part. NULL: there is nothing to be gained by it. */
    uint64_t (*populate)(const struct provider *provider, void *start, size_t bytes, bool huge);
    /* Asks for huge pages in such memory, or says that there should be none any more, for parts of
     * them are purged. True: it has them, or will. NULL: there are none. */
    bool (*want_huge)(const struct provider *provider, void *start, size_t bytes, bool huge);
    /* Whether `take` would give `bytes` now. NULL: that is not known without taking them. */
    bool (*might_take)(const struct provider *provider, size_t bytes);
    /* What `take` gives need not be zero after all. */
    bool unclean;
};

static inline void *provider_take_block(const struct provider *provider, size_t bytes,
                                        size_t alignment)
{
    return provider->take_block != NULL ? provider->take_block(provider, bytes, alignment)
                                        : provider->take(provider, bytes, alignment);
}

/* Whether `bytes`, which the provider has refused, might be had once `returned` bytes more have
 * gone back to it. What is kept for reuse is not given up for a request that is beyond all there
 * is. */
static inline bool provider_might_take(const struct provider *provider, size_t bytes,
                                       size_t returned)
{
    return bytes <= returned || provider->might_take == NULL ||
           provider->might_take(provider, align_up(bytes - returned, PAGE_BYTES));
}

/* The system: private anonymous mappings. */
extern const struct provider provider_os;

/* Nothing: it refuses everything. For heaps that were given all their memory. */
extern const struct provider provider_none;

#endif
