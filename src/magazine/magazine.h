/*
 * Magazines: arrays of pointers to free objects of one class, the unit in which threads, depots and
 * slabs exchange objects. fast.h draws one; its marks lead back to the header.
 *
 * Sizes double from 64 bytes (4 slots) to 1 KiB (124 slots); a magazine grows with its use.
 * Source: J. Bonwick and J. Adams, "Magazines and Vmem" (2001).
 */
#ifndef SNUG_MAGAZINE_MAGAZINE_H
#define SNUG_MAGAZINE_MAGAZINE_H

#include "magazine/fast.h"

struct magazine {
    struct magazine *link; /* loaded: the thread's spare, or NULL; in a depot: the next */
    uint32_t count;        /* objects in it while it is not loaded: none or the capacity */
    uint32_t log;          /* it occupies META_LEAST << log bytes */
    uintptr_t slots[];     /* full mark, slots, end mark */
};

/* Log2: magazines grow up to 124 slots; above, a call of the slow path is one of a hundred already.
 */
enum { MAGAZINE_LOG_MOST = 4 };

/* Layout: the slots of the largest magazine. */
enum { MAGAZINE_SLOTS_MOST = (8 << MAGAZINE_LOG_MOST) - 4 };

static inline size_t magazine_capacity(unsigned log)
{
    return (size_t)(8u << log) - 4;
}

_Static_assert((int)END_MARKS == MAGAZINE_LOG_MOST + 2, "one for each size, and one for no slots");

/* The end mark of magazines of this size. */
static inline uintptr_t end_mark_of(unsigned log)
{
    return (uintptr_t)&end_marks[log];
}

/* A new, empty magazine, or NULL. */
struct magazine *magazine_new(unsigned log);
void magazine_free(struct magazine *magazine);

/* The tops of an empty and of a full magazine. */
static inline uintptr_t *magazine_end(struct magazine *magazine)
{
    return &magazine->slots[magazine_capacity(magazine->log) + 1];
}

static inline uintptr_t *magazine_begin(struct magazine *magazine)
{
    return &magazine->slots[1];
}

/* The magazine that ends (is full) at `top`. */
static inline struct magazine *magazine_of_end(uintptr_t *top)
{
    return (struct magazine *)((char *)top - ((const struct end_mark *)*top)->header);
}

static inline struct magazine *magazine_of_full(uintptr_t *top)
{
    return CONTAINER_OF(top - 1, struct magazine, slots);
}

/* The magazine that a top in metadata is in, and the objects above. It need not be one: NULL if
 * what is there does not look like a magazine all over. */
struct magazine_part {
    struct magazine *magazine;
    const uintptr_t *objects;
    size_t count;
};

struct magazine_part magazine_above(uintptr_t *top);

/* Whether the objects of a full magazine lie as slabs would hand them out: each near the one
 * before, or further in the same direction. What is built of them lies together then; by samples, a
 * hint. */
bool magazine_is_in_order(struct magazine *magazine, size_t object_bytes);

#endif
