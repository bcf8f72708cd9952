/*
 * Cells in thread caches: what makes that most medium blocks take no lock.
 *
 * Magazines of cells are by ranges of size, eight to a doubling, up to 32 KiB. A cell keeps its own
 * size in its header, so a cell waits in the range that it falls in, and a request takes the
 * newest of its own range if that is large enough, or else the newest of the range above, which
 * surely is. A program that asks for the same size again gets the same cell; one that asks for all
 * sizes gets one up to a quarter too large, and on average an eighth.
 *
 * A magazine grows only if, since it last did, it has both run over and had nothing for a request:
 * a program that first takes and then frees gains nothing by a larger one, it would only keep
 * cells from being joined.
 */
#include <string.h>

#include "base/bits.h"
#include "magazine/cache_magazines.h"

enum { RANGE_STEPS = 8, RANGE_FIRST_LOG = 6 /* 64 units, 1 KiB */ };

/* The range that `units` falls in; CACHE_CELL_RANGES or more for cells that are not cached. */
static size_t range_of(size_t units)
{
    unsigned log = bit_highest(units);
    return (log - RANGE_FIRST_LOG) * RANGE_STEPS + (units >> (log - 3)) % RANGE_STEPS;
}

size_t cache_cell_range_bytes(size_t range)
{
    size_t log = RANGE_FIRST_LOG + range / RANGE_STEPS;
    return (RANGE_STEPS + range % RANGE_STEPS) << (log - 3) << 4;
}

/* The newest cell of a class, if it has at least `units`. */
static uintptr_t pop_if_fits(struct cache *cache, size_t class, size_t units)
{
    uintptr_t *top = cache->top[class];
    uintptr_t block = *top;
    if (block < MARK_LIMIT || cell_of(block)->units < units)
        return 0;
    cache->top[class] = top + 1;
    return block;
}

/* Of a loaded magazine of cells, `count` is the number of requests it could not serve since it
 * last grew. */
static void note_miss(struct cache *cache, size_t class)
{
    if (cache->top[class] != NO_MAGAZINE && *cache->top[class] < MARK_LIMIT)
        loaded_at_end(cache, class)->count++;
}

void *cache_take_cell(struct cache *cache, size_t bytes, struct misuse *misuse)
{
    misuse->kind = MISUSE_NONE;
    size_t units = cell_units(bytes);
    size_t range = range_of(units);
    if (range >= CACHE_CELL_RANGES)
        return NULL;
    uintptr_t block = pop_if_fits(cache, CACHE_CELLS + range, units);
    if (block == 0 && range + 1 < CACHE_CELL_RANGES)
        block = pop_if_fits(cache, CACHE_CELLS + range + 1, units);
    if (block == 0) {
        note_miss(cache, CACHE_CELLS + range);
        return NULL;
    }
    if (UNLIKELY(cell_of(block)->state != CELL_CACHED || !cell_is_sound(cell_of(block)))) {
        *misuse = (struct misuse){.kind = MISUSE_DAMAGED, .address = block};
        return NULL;
    }
    cell_set_state(block, CELL_LIVE);
    return (void *)block;
}

static bool make_room(struct cache *cache, size_t class)
{
    struct magazine *full = loaded_at_full(cache, class);
    if (full == NULL) {
        struct magazine *first = cache_magazine_new(cache, class, 0);
        if (first != NULL)
            cache->top[class] = magazine_end(first);
        return first != NULL;
    }
    if (full->count != 0 && cache_grow_full(cache, class, full))
        return true;
    full->count = 0;
    uintptr_t given[MAGAZINE_SLOTS_MOST];
    size_t count = cache_take_older_half(cache, class, full, given);
    cells_give(given, count);
    return true;
}

void cache_give_cell(struct cache *cache, uintptr_t block)
{
    size_t range = range_of(cell_of(block)->units);
    cell_set_state(block, CELL_CACHED);
    size_t class = CACHE_CELLS + range;
    if (range >= CACHE_CELL_RANGES || !cache_exists(cache) ||
        (cache->top[class][-1] < MARK_LIMIT && !make_room(cache, class))) {
        cells_give(&block, 1);
        return;
    }
    uintptr_t *top = cache->top[class] - 1;
    *top = block;
    cache->top[class] = top;
}

void cache_flush_cells(struct cache *cache, size_t class)
{
    size_t count;
    struct magazine *loaded = loaded_anywhere(cache, class, &count);
    if (loaded == NULL)
        return;
    uintptr_t *top = cache->top[class];
    cache->top[class] = NO_MAGAZINE; /* first, as in cache.c */
    cells_give(top, count);
    cache_magazine_free(cache, class, loaded);
}

size_t cache_cell_bytes(const struct cache *cache)
{
    size_t bytes = 0;
    for (size_t class = CACHE_CELLS; class < CACHE_CLASSES; class++)
        for (const uintptr_t *slot = cache->top[class]; *slot >= MARK_LIMIT; slot++)
            bytes += cell_of(*slot)->units * CELL_UNIT;
    return bytes;
}
