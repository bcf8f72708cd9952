/*
 * A provider for tests: it hands out real memory, keeps account of it, and refuses when it is told
 * to.
 *
 * Calls of all kinds are numbered together from 1. Every range that comes back must be one that was
 * handed out; everything is handed back in the end.
 */
#ifndef SNUG_TESTS_UNIT_FAKE_PROVIDER_H
#define SNUG_TESTS_UNIT_FAKE_PROVIDER_H

#include "provider/provider.h"

enum { FAKE_RANGES = 256 };

struct fake_provider {
    struct provider provider; /* what is handed to the library */
    struct fake_range {
        char *start;
        size_t bytes;
    } ranges[FAKE_RANGES]; /* handed out now */
    size_t range_count;
    size_t bytes;                           /* == sum over ranges */
    size_t limit;                           /* of bytes; SIZE_MAX at first */
    size_t most;                            /* no range may be longer; SIZE_MAX at first */
    unsigned calls;                         /* of any kind so far */
    unsigned fail_first, fail_last;         /* calls with these numbers, and those between, fail */
    unsigned failed;                        /* calls that failed for that */
    unsigned takes, gives, purges, resizes; /* calls that succeeded */
    size_t purged_bytes;
    bool refuse_take, refuse_give, refuse_purge, refuse_resize;
    /* fake_purge_together: how often it was called, the most ranges, those it refuses (a bit each)
     */
    unsigned calls_together, most_together;
    uint64_t refused_together;
    bool unknown_range;      /* something came back that was not handed out */
    void (*meanwhile)(void); /* called while pages go back, or a range does */
};

void fake_provider_init(struct fake_provider *fake);

/* For `provider.purge_ranges`: what a provider does that can purge several ranges in one call. */
uint64_t fake_purge_together(const struct provider *provider, const struct iovec *ranges,
                             size_t count);

/* For `provider.detach`; a copy stands for the move. It counts as a resize. */
void *fake_detach(const struct provider *provider, void *start, size_t old_bytes, size_t new_bytes);

/* Gives what is still handed out back to the system. */
void fake_provider_end(struct fake_provider *fake);

#endif
