/*
 * What waits in the magazines of threads, as any thread, a signal handler or another process can
 * see it.
 *
 * The idea: a magazine of 64 << log bytes lies at a multiple of that, and its end mark is its last
 * word. So where a top stands and how large its magazine is tell how many objects are above it, and
 * nothing that belongs to the thread is looked at. Both words are the thread's own; between its two
 * stores they may not fit each other, then the number is off by a magazine at most.
 *
 * Cells in a magazine differ in size, and how large each is only its thread can look up: of other
 * threads' the middle of the range stands for it. The ranges are an eighth wide, so the sum is
 * right within a sixteenth.
 */
#include "magazine/cache.h"

static size_t shape_capacity(unsigned log_plus_1)
{
    return log_plus_1 == 0 || log_plus_1 > MAGAZINE_LOG_MOST + 1
               ? 0
               : magazine_capacity(log_plus_1 - 1);
}

size_t cache_count(struct peek *peek, const struct cache *cache, size_t class)
{
    unsigned shape = PEEK(peek, cache->shape[class]);
    size_t capacity = shape_capacity(shape & 15);
    if (capacity == 0)
        return 0;
    uintptr_t top = (uintptr_t)PEEK(peek, cache->top[class]);
    size_t bytes = META_LEAST << ((shape & 15) - 1);
    size_t loaded = (bytes - (top & (bytes - 1))) / sizeof(uintptr_t) - 1;
    return size_min(loaded, capacity) + shape_capacity(shape >> 4);
}

struct cached_cells cache_cells(struct peek *peek, const struct cache *cache)
{
    struct cached_cells cells = {0, 0};
    for (size_t range = 0; range < CACHE_CELL_RANGES; range++) {
        size_t count = cache_count(peek, cache, CACHE_CELLS + range);
        size_t step = cache_cell_range_bytes(range + 1) - cache_cell_range_bytes(range);
        cells.count += count;
        cells.bytes += count * (cache_cell_range_bytes(range) + step / 2);
    }
    return cells;
}
