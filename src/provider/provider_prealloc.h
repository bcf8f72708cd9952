/*
 * The provider of memory that is there before it is needed: a stated amount is taken from the
 * system at once, all of it present, so that a lack of it is known at the start and not later.
 */
#ifndef SNUG_PROVIDER_PREALLOC_H
#define SNUG_PROVIDER_PREALLOC_H

#include "provider/pool.h"

/* Takes `bytes`, rounded up to pages. What does not fit in them comes from `fallback`, or, if that
 * is NULL, is refused. False: they cannot be had, and the pool serves nothing but what `fallback`
 * does.
 */
bool provider_prealloc_init(struct pool *pool, size_t bytes, const struct provider *fallback);

#endif
