/*
 * A provider that takes from another up to a number of bytes: a heap's quota, and the account of
 * what the heap has.
 */
#ifndef SNUG_PROVIDER_QUOTA_H
#define SNUG_PROVIDER_QUOTA_H

#include "provider/provider.h"

struct quota {
    struct provider provider;
    const struct provider *under;
    size_t limit; /* SIZE_MAX: none */
    size_t used;  /* taken and not given back; <= limit */
    size_t peak;  /* the most there was */
};

void quota_init(struct quota *quota, const struct provider *under, size_t limit);

static inline size_t quota_used(const struct quota *quota)
{
    return __atomic_load_n(&quota->used, __ATOMIC_RELAXED);
}

#endif
