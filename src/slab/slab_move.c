/*
 * Moving objects out of slabs that are nearly empty, for programs that can move their blocks.
 *
 * The idea: a slab is worth emptying if it is emptier than its class is on the average, and the
 * other slabs of its bin have free places for all that it holds. What moves goes to the slab that
 * is handed out from at the moment. That one is never emptied, and it is full before another takes
 * its turn, the fullest: so a program that moves what should move comes to an end.
 *
 * Cost: one lock for the question, one for the place.
 */
#include "slab/slab.h"

/* The slab that an address lies in, or NULL. */
static struct slab *slab_at(uintptr_t address)
{
    uintptr_t entry = page_map_entry(address);
    struct slab *slab = entry_is_span(entry) ? (struct slab *)entry : NULL;
    return slab != NULL && slab->span.kind == SPAN_SLAB ? slab : NULL;
}

/* Whether a slab is emptier than the average of its bin, and could be emptied. The lock must be
 * held. All products fit: a bin of 2^47 bytes has at most 2^43 objects, a slab 2^9. */
static bool slab_is_worth_emptying(const struct bin *bin, const struct slab *slab)
{
    size_t held = (size_t)slab->capacity - slab->free_count;
    size_t others = bin->free_objects - slab->free_count;
    return slab != bin->current && others >= held &&
           slab->free_count * bin->total_objects > bin->free_objects * slab->capacity;
}

bool object_should_move(uintptr_t address)
{
    const struct slab *slab = slab_at(address);
    if (slab == NULL)
        return false;
    struct bin *bin = slab->span.owner;
    lock_acquire(&bin->lock);
    bool worth = slab_is_worth_emptying(bin, slab);
    lock_release(&bin->lock);
    return worth;
}

uintptr_t bin_alloc_beside(uintptr_t address)
{
    uintptr_t object = 0;
    bin_alloc(slab_at(address)->span.owner, &object, 1, false);
    return object;
}
