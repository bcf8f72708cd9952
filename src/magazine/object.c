/*
 * One object without a magazine: for threads that may hold none, heaps at their limit, and what is
 * moved. See cache.h.
 */
#include "magazine/cache.h"

/* An object that a slab has handed out, ready for the program; NULL: it was written to. */
static void *object_ready(const struct arenas *arenas, size_t class, uintptr_t object)
{
    if (arenas->page_heap->untouched)
        return (void *)object;
    if (UNLIKELY(*object_key_word(object) != object_key(object))) {
        struct misuse misuse = misuse_of_object(MISUSE_STALE, object, class_bytes(class));
        misuse_report("malloc", &misuse);
        return NULL;
    }
    *object_key_word(object) = 0;
    return (void *)object;
}

void *object_alloc(struct arenas *arenas, size_t class)
{
    void *block = NULL;
    uintptr_t object;
    while (block == NULL && arenas_refill(arenas, class, &object, 1) != 0)
        block = object_ready(arenas, class, object);
    return block;
}

void *object_alloc_larger(struct arenas *arenas, size_t class)
{
    uintptr_t object = arenas_alloc_larger(arenas, class);
    return object == 0 ? NULL : object_ready(arenas, class, object);
}

void *object_alloc_beside(struct arenas *arenas, uintptr_t address)
{
    uintptr_t object = bin_alloc_beside(address);
    size_t class = ((const struct span *)page_map_entry(address))->class;
    return object == 0 ? NULL : object_ready(arenas, class, object);
}

void object_free(uintptr_t address)
{
    struct misuse misuse = slab_free_one(address);
    misuse_report("free", &misuse);
}
