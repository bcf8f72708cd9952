/*
 * Bins on spans of their own, for the tests of slabs.
 */
#ifndef SNUG_TESTS_UNIT_SLAB_SUPPORT_H
#define SNUG_TESTS_UNIT_SLAB_SUPPORT_H

#include "page_heap_support.h"
#include "slab/slab.h"

/* The slab that an object is in. */
static inline struct slab *slab_at(uintptr_t object)
{
    return (struct slab *)page_map_entry(object);
}

/* The class that most tests use: 64 bytes, whose slabs have 256 objects in 4 pages. */
#define CLASS_64 class_of_size(64)
enum { OBJECTS_64 = 256 };

/* A fresh bin of a class. */
void bin_begin(struct bin *bin, size_t class);

/* Fails unless bin_check is content, and the spans are. */
void assert_bin_sound(struct bin *bin);

/* Takes exactly `count` objects, growing the bin as it must. */
void objects_alloc(struct bin *bin, uintptr_t *objects, size_t count);

/* All that a bin's slab has: takes until the slab of the first object is used up. */
size_t slab_take_all(struct bin *bin, uintptr_t *objects);

static inline void objects_free(const uintptr_t *objects, size_t count)
{
    uintptr_t batch[SLAB_OBJECTS_MOST];
    for (size_t given = 0, part; given < count; given += part) {
        part = count - given < SLAB_OBJECTS_MOST ? count - given : SLAB_OBJECTS_MOST;
        memcpy(batch, objects + given, part * sizeof *batch);
        slabs_free(batch, part, "free");
    }
}

#endif
