/*
 * The provider of memory that is there before it is needed: a stated amount is taken from the
 * system at once, all of it present, so that a lack of it is known at the start and not later.
 */
#ifndef SNUG_PROVIDER_PREALLOC_H
#define SNUG_PROVIDER_PREALLOC_H

#include "provider/pool.h"

/* Takes `bytes`, rounded up to pages. A request that does not fit in them goes to `fallback`, or,
 * if that is NULL, is refused. False: the bytes cannot be had, and that holds for every request. */
bool provider_prealloc_init(struct pool *pool, size_t bytes, const struct provider *fallback);

#endif
