/*
 * Adding up what a heap consists of. Each part is read under its own lock, one after the other; in
 * a busy program they are moments apart.
 */
#include "heap/heaps.h"
#include "meta/meta.h"

struct arena_totals heap_class_totals_of(struct heap *heap, size_t class, size_t *cached)
{
    struct cache *cache = heap_cache(heap);
    *cached = cache_exists(cache) ? cache_count(cache, class) : 0;
    return arenas_totals(&heap->arenas, class);
}

struct arena_totals heap_class_totals(size_t class, size_t *cached)
{
    return heap_class_totals_of(&heap_default, class, cached);
}

static void add_class(struct heap *heap, struct heap_totals *totals, size_t class)
{
    size_t cached;
    struct arena_totals objects = heap_class_totals_of(heap, class, &cached);
    size_t bytes = class_bytes(class);
    totals->slabs += objects.slabs * size_classes[class].slab_pages << PAGE_SHIFT;
    totals->small_free += objects.free * bytes;
    totals->small_waiting += objects.waiting * bytes;
    totals->small_cached += cached * bytes;
    totals->small_free_count += objects.free + objects.waiting + cached;
    size_t idle = objects.free + objects.waiting + cached;
    if (objects.total > idle) /* but for what moved meanwhile */
        totals->small_live += (objects.total - idle) * bytes;
}

static size_t runs_count(const struct runs *runs)
{
    size_t count = 0;
    for (size_t bin = 0; bin < RUN_BINS; bin++)
        LIST_EACH(node, &runs->bins[bin])
    count++;
    return count;
}

size_t heap_cells_live(const struct heap_totals *totals)
{
    size_t idle = totals->cells_free + totals->cells_cached;
    return totals->cells > idle ? totals->cells - idle : 0;
}

struct heap_totals heap_totals(void)
{
    return heap_totals_of(&heap_default);
}

struct heap_totals heap_totals_of(struct heap *heap)
{
    struct heap_totals totals = {0};
    for (size_t class = 1; class < CLASS_COUNT; class++)
        add_class(heap, &totals, class);
    struct cell_totals cells = arenas_cell_totals(&heap->arenas);
    totals.cells = cells.bytes;
    totals.cells_free = cells.free;
    struct cache *cache = heap_cache(heap);
    if (cache_exists(cache))
        totals.cells_cached = cache_cell_bytes(cache);
    struct spans *spans = &heap->spans;
    lock_take(&spans->lock);
    totals.segments = spans->segment_pages << PAGE_SHIFT;
    totals.dirty = spans->dirty.pages << PAGE_SHIFT;
    totals.clean = spans->clean.pages << PAGE_SHIFT;
    totals.free_runs = runs_count(&spans->dirty) + runs_count(&spans->clean);
    totals.huge = spans->huge_pages << PAGE_SHIFT;
    totals.huge_count = spans->huge_count;
    size_t used = spans->used_pages << PAGE_SHIFT;
    totals.meta_used = meta_bytes_used() + spans->segment_pages * PAGE_MAP_BYTES_PER_PAGE;
    lock_release(&spans->lock);
    size_t others = totals.slabs + totals.cells;
    totals.large = used > others ? used - others : 0; /* but for what moved meanwhile */
    totals.meta_mapped = meta_bytes_mapped();
    return totals;
}
