/*
 * Freeing blocks of any size, in any heap: the one way out. See heap.h.
 *
 *   give:  poll; what the page map says of the pointer, and which heap it is of; then
 *          small   the thread's magazine; spare -> depot -> slabs -> pages (cache_make_room)
 *          medium  its quick lists; free cells -> pages (cache_free_cell)
 *          large   waits whole, or joins its neighbours
 */
#include <errno.h>

#include "heap/alloc.h"
#include "heap/empty.h"
#include "heap/tick.h"
#include "heap/user_heaps.h"
#include "magazine/shared.h"

/* ---- At a place ---- */

static COLD void free_wrong(const struct heap *heap, uintptr_t address, size_t class)
{
    struct misuse misuse = small_misuse(heap, address, class);
    misuse_report("free", &misuse);
}

/* Frees an object for which the thread has no magazine. */
static NOINLINE void free_shared(struct heap *heap, uintptr_t address, size_t class)
{
    enum shared_put put = shared_put(&heap->arenas, address, class, false);
    if (put == SHARED_NO_ROOM)
        object_free(address);
    else if (UNLIKELY(put == SHARED_REFUSED))
        free_wrong(heap, address, class);
}

static inline void free_small(struct heap *heap, struct cache *cache, uintptr_t address,
                              size_t class)
{
    bool room =
        !cache_is_full(cache, class) || (cache_exists(cache) && cache_make_room(cache, class));
    if (UNLIKELY(!room))
        free_shared(heap, address, class);
    else if (UNLIKELY(!cache_push_of(cache, address, class)))
        free_wrong(heap, address, class);
}

static void free_cell(struct cache *cache, uintptr_t address)
{
    struct misuse misuse = {.kind = MISUSE_NONE};
    if (UNLIKELY(!cell_is_live_at(address)))
        misuse = cell_misuse(address);
    if (LIKELY(misuse.kind == MISUSE_NONE))
        cache_free_cell(cache, address);
    else
        misuse_report("free", &misuse);
}

static void free_large(struct heap *heap, uintptr_t address)
{
    struct misuse misuse = UNLIKELY(empty_covers(address)) ? empty_free(address)
                                                           : large_free(&heap->page_heap, address);
    misuse_report("free", &misuse);
}

void block_free(struct place place, struct cache *cache, uintptr_t address)
{
    if (place.class == 0)
        free_large(place.heap, address);
    else if (place.class == PAGE_MAP_CELL)
        free_cell(cache, address);
    else if (place.class == PLACE_GUARDED)
        guard_free(address, "free");
    else
        free_small(place.heap, cache, address, place.class);
}

/* ---- The way out ---- */

/* Frees at the place of an address, which is of no hardened heap. */
static void free_placed(struct heap *only, uintptr_t address, size_t byte)
{
    struct place place = place_near(only != NULL ? only : &heap_default, address, byte);
    struct profile_block sample;
    if (UNLIKELY(only != NULL && only != place.heap)) {
        struct misuse misuse = {.kind = MISUSE_OTHER_HEAP, .address = address};
        misuse_report("free", &misuse);
        return;
    }
    if (place_may_be_sample(place))
        profile_take((void *)address, &sample); /* before another thread has the address */
    block_free(place, heap_cache(place.heap), address);
}

static NOINLINE void free_polled(struct heap *only, void *block, size_t byte)
{
    int error = errno; /* the program's; a provider of its own may write it */
    free_placed(only, (uintptr_t)block, byte);
    errno = error;
}

static void free_other(struct heap *only, void *block, size_t byte)
{
    if (block == NULL)
        return;
    heap_poll(only == NULL ? &heap_default : only);
    free_polled(only, block, byte);
}

/* An object of malloc's heap that cache_put left. */
static NOINLINE void free_full(uintptr_t address, size_t class)
{
    heap_poll(&heap_default);
    struct cache *cache = heap_cache(&heap_default);
    if (UNLIKELY(!cache_exists(cache)))
        free_shared(&heap_default, address, class);
    else if (UNLIKELY(!cache_put_slow(cache, address, class)))
        free_wrong(&heap_default, address, class);
}

static NOINLINE void forget_sample(void *block)
{
    struct profile_block sample;
    profile_take(block, &sample);
}

/* A block of which the page map knows nothing is mostly a large one of malloc's heap. */
static NOINLINE void free_unmapped(void *block)
{
    if (block == NULL)
        return;
    heap_poll(&heap_default);
    if (profile_has_blocks())
        forget_sample(block); /* before another thread has the address */
    /* Within a page no large block begins, but one of no bytes, which has no need of the lock. */
    if (UNLIKELY((uintptr_t)block % PAGE_BYTES != 0) ||
        UNLIKELY(!large_free_recent(&heap_default.page_heap, (uintptr_t)block)))
        free_polled(NULL, block, 0);
}

/* Frees what is no small object of malloc's. A function of its own, so that the others need fewer
 * registers. */
static NOINLINE void free_elsewhere(struct heap *only, void *block, size_t byte)
{
    if (byte <= PAGE_MAP_CELL || UNLIKELY(!heap_push_other(only, (uintptr_t)block, byte)))
        free_other(only, block, byte);
}

void heap_free_slow(void *block, size_t byte)
{
    if (byte == 0)
        free_unmapped(block);
    else if (byte == PAGE_MAP_HARDENED)
        heap_free_plain_hardened(block);
    else if (byte < CLASS_COUNT)
        free_full((uintptr_t)block, byte);
    else
        free_elsewhere(NULL, block, byte);
}

void heap_free_of(struct heap *only, void *block, size_t byte)
{
    if (byte == PAGE_MAP_HARDENED)
        heap_free_hardened(only, block, said_unsized(MADE_BY_MALLOC));
    else
        free_elsewhere(only, block, byte);
}
