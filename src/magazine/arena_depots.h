/*
 * What the files of arenas ask of each other: of the depots besides taking and putting, and of what
 * lies idle. Not for other layers.
 */
#ifndef SNUG_MAGAZINE_ARENA_DEPOTS_H
#define SNUG_MAGAZINE_ARENA_DEPOTS_H

#include "magazine/arena.h"

/* Whether free objects of a class are for all arenas: if they share lines, each arena has slabs of
 * its own, and they change hands whole, unless much would lie idle. */
bool arenas_class_is_shared(const struct arenas *arenas, size_t class);

/* The bytes of a slab. */
static inline size_t arena_slab_bytes(const struct arenas *arenas, size_t class)
{
    return class_slab_pages(arenas->page_heap->compact, class) << PAGE_SHIFT;
}

/* Ends an epoch of an arena's depots: what nobody needed in it goes back. */
void arena_depots_tick(struct arena *arena);

/* Call before a slab of so many bytes is made for an arena. What is idle costs when memory grows,
 * so the clock of depots and cells goes by fresh memory, too, not by time alone. */
void arena_depots_grow(struct arenas *arenas, struct arena *arena, size_t bytes);

/* Call when a class had to grow for a thread that takes `count` objects at a time. */
void arena_depot_stock(struct arena_class *at, size_t count);

#endif
