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

#include <sys/uio.h>

#include "platform/memory.h"

/* What statistics call a provider. */
enum provider_kind {
    KIND_FUNCTIONS, /* the program's own */
    KIND_SYSTEM,
    KIND_PREALLOC,
    KIND_FILES,
    KIND_BUFFER /* none: the heap has all that it may have */
};

struct provider {
    /* `bytes` of zero memory at a multiple of `alignment`, or NULL. */
    void *(*take)(const struct provider *provider, size_t bytes, size_t alignment);
    /* The same for a single block of the program's, for which the system may use huge pages of its
     * own accord. NULL: `take` serves. */
    void *(*take_block)(const struct provider *provider, size_t bytes, size_t alignment);
    /* Takes a range back that either of them gave. False: it cannot, and the range stays the
     * caller's. */
    bool (*give)(const struct provider *provider, void *start, size_t bytes);
    /* Drops the contents of free pages, which are zero afterwards. False: they are as before. */
    bool (*purge)(const struct provider *provider, void *start, size_t bytes);
    /* The same for up to OS_RANGES_MOST ranges: a bit for each that was dropped. NULL: one by one.
     */
    uint64_t (*purge_ranges)(const struct provider *provider, const struct iovec *ranges,
                             size_t count);
    /* Resizes a whole taken range, keeping its contents; growth is zero. NULL: it cannot. */
    void *(*resize)(const struct provider *provider, void *start, size_t old_bytes,
                    size_t new_bytes, bool may_move);
    /* Moves the contents of a part of a taken range, of `old_bytes`, to a range of its own, which
     * is as one that take_block gave and zero behind them. The part stays, and is zero. NULL: it
     * cannot, and nothing has changed. No function: the same. */
    void *(*detach)(const struct provider *provider, void *start, size_t old_bytes,
                    size_t new_bytes);
    /* Prepares memory in which many small blocks will lie; it may make some of it present. NULL:
     * nothing needs to be done. */
    void (*prepare)(const struct provider *provider, void *start, size_t bytes);
    /* Makes memory present that was never written to, or was purged: by huge pages if `huge` and
     * the system has some. Returns the nanoseconds that it took; 0: it failed, or was done in part.
     * NULL: nothing is gained by it. */
    uint64_t (*populate)(const struct provider *provider, void *start, size_t bytes, bool huge);
    /* Asks for huge pages in a range, or declines them before parts of it are purged. True: the
     * range has them, or will. NULL: there are none. */
    bool (*want_huge)(const struct provider *provider, void *start, size_t bytes, bool huge);
    /* Whether `take` would give `bytes` now. NULL: that is not known without taking them. */
    bool (*might_take)(const struct provider *provider, size_t bytes);
    /* Memory from `take` is not zero, unlike that of other providers. */
    bool unclean;
    uint8_t kind; /* enum provider_kind */
};

static inline void *provider_take_block(const struct provider *provider, size_t bytes,
                                        size_t alignment)
{
    return provider->take_block != NULL ? provider->take_block(provider, bytes, alignment)
                                        : provider->take(provider, bytes, alignment);
}

static inline uint64_t provider_purge_ranges(const struct provider *provider,
                                             const struct iovec *ranges, size_t count)
{
    if (provider->purge_ranges != NULL)
        return provider->purge_ranges(provider, ranges, count);
    uint64_t done = 0;
    for (size_t i = 0; i < count; i++)
        done |= (uint64_t)provider->purge(provider, ranges[i].iov_base, ranges[i].iov_len) << i;
    return done;
}

/* Whether a provider that has refused `bytes` might have them once `returned` bytes more have gone
 * back to it. If not, the heap keeps what it has cached, since giving that up would not help. */
static inline bool provider_might_take(const struct provider *provider, size_t bytes,
                                       size_t returned)
{
    return bytes <= returned || provider->might_take == NULL ||
           provider->might_take(provider, align_up(bytes - returned, os_page_size()));
}

/* The system: private anonymous mappings. */
extern INTERNAL const struct provider provider_os;

/* Nothing: it refuses everything. For heaps that were given all their memory. */
extern INTERNAL const struct provider provider_none;

#endif
