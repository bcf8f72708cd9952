/*
 * Cells in thread caches: what makes that most medium blocks take no lock.
 *
 * Magazines of cells are by ranges of size, eight to a doubling, up to 32 KiB. A request takes the
 * best fit among the cells of its own range, or else of the next one. A cell that is more than an
 * eighth too large is left alone: what is lost that way stays lost as long as the block lives. (To
 * take the newest cell, whatever its size in the range, was faster, and cost up to a tenth of the
 * heap.)
 *
 * A magazine grows only if, since it last did, it has both run over and had nothing for a request:
 * a program that first takes and then frees gains nothing by a larger one, it would only keep
 * cells from being joined.
 */
#include <string.h>

#include "magazine/cache_magazines.h"

/* The slot with the smallest cell of at least `units` in a magazine, or NULL. */
static uintptr_t *slot_best(uintptr_t *top, size_t units)
{
    uintptr_t *best = NULL;
    size_t best_units = units + units / 8 + 1;
    for (uintptr_t *slot = top; *slot >= MARK_LIMIT; slot++) {
        size_t have = slot_units(*slot);
        if (have < units || have >= best_units)
            continue;
        best = slot;
        best_units = have;
        if (have == units)
            break;
    }
    return best;
}

void *cache_pop_cell(struct cache *cache, size_t bytes)
{
    size_t units = cell_units(bytes);
    size_t class = CACHE_CELLS + cache_cell_range(units);
    if (class >= CACHE_CLASSES)
        return NULL;
    uintptr_t *slot = slot_best(cache->top[class], units);
    if (slot == NULL && class + 1 < CACHE_CLASSES)
        slot = slot_best(cache->top[++class], units);
    if (slot == NULL)
        return NULL;
    uintptr_t block = slot_block(*slot);
    uintptr_t *top = cache->top[class];
    for (; slot != top; slot--)
        *slot = slot[-1];
    cache_set_top(cache, class, top + 1);
    if (LIKELY(cell_change_state(block, CELL_CACHED, CELL_LIVE)))
        return (void *)block;
    struct misuse misuse = {.kind = MISUSE_DAMAGED, .address = block};
    misuse_report("malloc", &misuse);
    return NULL; /* with SNUG_MISUSE=warn: that cell is lost */
}

/* Of a loaded magazine of cells, `count` is the number of requests it could not serve since it
 * last grew. */
void cache_miss_cell(struct cache *cache, size_t bytes)
{
    size_t class = CACHE_CELLS + cache_cell_range(cell_units(bytes));
    size_t waiting;
    if (class >= CACHE_CLASSES || cache->top[class] == NO_MAGAZINE)
        return;
    loaded_anywhere(cache, class, &waiting)->count++;
}

/* Gives the cells of some slots, which are lost by that, back. */
static void give_slots(uintptr_t *slots, size_t count)
{
    for (size_t i = 0; i < count; i++)
        slots[i] = slot_block(slots[i]);
    cells_give(slots, count);
}

static bool make_room(struct cache *cache, size_t class)
{
    if (cache->top[class][-1] >= MARK_LIMIT)
        return true;
    struct magazine *full = loaded_at_full(cache, class);
    if (full == NULL) {
        struct magazine *first = cache_magazine_new(cache, class, 0);
        if (first != NULL)
            cache_load(cache, class, first, magazine_end(first));
        return first != NULL;
    }
    if (UNLIKELY(arenas_cells_are_sparse(cache->arenas))) {
        cache_flush_cells(cache, class);
        return make_room(cache, class);
    }
    if (full->count != 0 && cache_grow_full(cache, class, full))
        return true;
    full->count = 0;
    uintptr_t given[MAGAZINE_SLOTS_MOST];
    size_t count = cache_take_older_half(cache, class, full, given);
    give_slots(given, count);
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
    cache_load(cache, class, NULL, NO_MAGAZINE); /* first, as in cache.c */
    give_slots(top, count);
    cache_magazine_free(cache, class, loaded);
}

size_t cache_cell_bytes(const struct cache *cache)
{
    size_t bytes = 0;
    for (size_t class = CACHE_CELLS; class < CACHE_CLASSES; class++)
        for (const uintptr_t *slot = cache->top[class]; *slot >= MARK_LIMIT; slot++)
            bytes += slot_units(*slot) * CELL_UNIT;
    return bytes;
}
