/*
 * Resizing what programs seldom resize: blocks while requests are looked at, and blocks of no
 * bytes. See resize.h.
 */
#include "heap/empty.h"
#include "heap/resize.h"

enum becoming { PLAIN, SAMPLE, GUARDED };

/* Counts a request for so many bytes: its block may have to be a sample, or a guarded one. */
static enum becoming count(const struct heap *heap, size_t bytes)
{
    uint32_t who = watch_is_on() ? watch_counts(bytes) : 0;
    if ((who & WATCH_PROFILE) != 0)
        return SAMPLE;
    return (who & WATCH_GUARDS) != 0 && heap == &heap_default ? GUARDED : PLAIN;
}

/* Moves a block to a new one of `heap`, which is one like any other, a sample or a guarded one. */
static void *move(struct heap *heap, struct place place, void *block, size_t old_bytes,
                  size_t bytes, enum becoming to)
{
    size_t dirty;
    struct cache *cache = heap_cache(heap);
    void *moved = NULL;
    if (to == SAMPLE)
        moved = sample_alloc(heap, cache, MIN_ALIGN, bytes, &dirty);
    else if (to == GUARDED)
        moved = guard_alloc(bytes, MIN_ALIGN);
    if (moved == NULL)
        moved = block_alloc(heap, cache, MIN_ALIGN, bytes, &dirty);
    return resize_moved(moved, place, heap_cache(place.heap), block, size_min(old_bytes, bytes),
                        SIZE_MAX);
}

void *resize_watched(struct place place, void *block, size_t old_bytes, size_t bytes)
{
    struct profile_block old;
    struct heap *heap = place.heap == heap_samples ? &heap_default : place.heap;
    enum becoming to = count(heap, bytes);
    bool was = place_may_be_sample(place) && profile_take(block, &old);
    bool stays_large = place.class == 0 && bytes > medium_most(heap);
    void *moved;
    if (place.heap == heap_samples || place.class == PLACE_GUARDED || (to != PLAIN && !stays_large))
        moved = move(heap, place, block, old_bytes, bytes, to);
    else
        moved = resize_plain(place, block, old_bytes, bytes);
    if (moved == NULL && was)
        profile_put_back(block, &old);
    else if (moved != NULL && to == SAMPLE && stays_large &&
             page_map_class_call((uintptr_t)moved) == 0)
        profile_put(moved, bytes);
    return moved != NULL ? moved : resize_stay(place, block, old_bytes, bytes);
}

void *resize_empty(struct place place, void *block, size_t bytes)
{
    uintptr_t address = (uintptr_t)block;
    if (!empty_covers(address) || empty_misuse(address).kind != MISUSE_NONE)
        return NULL;
    void *moved = heap_alloc_slow(bytes, place.heap);
    return resize_moved(moved, place, heap_cache(place.heap), block, 0, SIZE_MAX);
}
