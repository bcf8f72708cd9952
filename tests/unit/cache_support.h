/*
 * A thread cache on arenas of its own, and its slow paths as the heap uses them.
 */
#ifndef SNUG_TESTS_UNIT_CACHE_SUPPORT_H
#define SNUG_TESTS_UNIT_CACHE_SUPPORT_H

#include "arena_support.h"
#include "magazine/cache_magazines.h"

extern struct cache *cache;

/* Setup: fresh arenas, and a cache in `cache`. */
int cache_begin(void **state);

/* Teardown: frees the cache, and fails unless everything is free then. */
int cache_end(void **state);

/* Takes and gives an object as alloc.c does. */
uintptr_t object_get(struct cache *of, size_t class);
void object_put(struct cache *of, uintptr_t object);

/* Puts an object at any address into its magazine, as free does. */
static inline bool cache_push(struct cache *of, uintptr_t address)
{
    return cache_push_of(of, address, page_map_class(address));
}

/* The loaded magazine of a class, or NULL. */
struct magazine *loaded_of(const struct cache *of, size_t class);

/* Fails unless what a cache says it may hold is the sum over its magazines. */
void assert_held(const struct cache *of);

#endif
