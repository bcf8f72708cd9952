/*
 * Arenas on spans of their own, for the tests of magazines, depots and thread caches.
 */
#ifndef SNUG_TESTS_UNIT_ARENA_SUPPORT_H
#define SNUG_TESTS_UNIT_ARENA_SUPPORT_H

#include "magazine/cache.h"
#include "slab_support.h"

extern struct arenas arenas;
extern unsigned arenas_here; /* the index of the one that is taken from */

/* Setup: fresh arenas, one of them in use. Teardown is page_heap_end. */
int arenas_begin(void **state);

/* The same with two. As long as no more than one thread has a cache, the first of the list is used;
 * arenas_swap makes the other one the first, as if the thread had moved to another processor. */
int two_arenas_begin(void **state);
void arenas_swap(void);

void assert_arenas_sound(void);

/* Everything was given back by its users: trims, and fails unless all memory is free then. */
void assert_arenas_empty(void);

/* How often `class` was used: the class of an arena, by its place in the list. */
static inline struct arena_class *class_in(unsigned index, size_t class)
{
    return &arenas.list[index ^ arenas_here]->classes[class];
}

/* From now on there are two threads, and this one stays on its processor: two arenas are in use,
 * and the one that was taken from still is. */
void arenas_of_two_threads(void);

/* A full magazine of the largest size of a class, filled from the arenas. */
struct magazine *magazine_filled(size_t class);

/* From and to a depot, without empty ones in return. */
struct magazine *get_full(size_t class);
bool put_full(size_t class, struct magazine *magazine);

/* Empties a full magazine into the slabs, and frees it. */
void magazine_drain(struct magazine *magazine);

#endif
