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

#include "magazine/cache_magazines.h"

size_t cache_cell_range_bytes(size_t range)
{
    size_t log = CACHE_CELL_FIRST_LOG + range / CACHE_CELL_STEPS;
    return ((CACHE_CELL_STEPS + range % CACHE_CELL_STEPS) << (log - 3)) * CELL_UNIT;
}

/* Of a loaded magazine of cells, `count` is the number of requests it could not serve since it
 * last grew. */
struct misuse cache_miss_cell(struct cache *cache, size_t bytes)
{
    size_t class = CACHE_CELLS + cache_cell_range(cell_units(bytes));
    struct misuse misuse = {.kind = MISUSE_NONE};
    if (class >= CACHE_CLASSES || cache->top[class] == NO_MAGAZINE)
        return misuse;
    uintptr_t newest = *cache->top[class];
    if (newest < MARK_LIMIT)
        loaded_at_end(cache, class)->count++;
    else if (!cell_is_sound(cell_of(newest)))
        misuse = (struct misuse){.kind = MISUSE_DAMAGED, .address = newest};
    return misuse;
}

static bool make_room(struct cache *cache, size_t class)
{
    if (cache->top[class][-1] >= MARK_LIMIT)
        return true;
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
    size_t class = CACHE_CELLS + cache_cell_range(cell_of(block)->units);
    if (class < CACHE_CLASSES && cache_exists(cache) && make_room(cache, class) &&
        cache_push_cell(cache, block))
        return;
    cell_set_state(block, CELL_CACHED);
    cells_give(&block, 1);
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
