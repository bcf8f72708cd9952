/*
 * Adding up what a heap consists of, word by word and without locks: see base/peek.h. In a busy
 * program the words are moments apart; a part that would come out below nothing counts as nothing
 * then. While the heap rests, all of it is exact.
 */
#include "heap/totals.h"

#include "heap/user_heaps.h"

/* The first of the chain of threads' caches. Of heaps other than malloc's, only the calling
 * thread's is known: theirs come and go with the heap. What is in those of other threads counts as
 * live. */
static const struct cache *first_cache(struct peek *peek, const struct heap *heap)
{
    if (PEEK(peek, heap->record) == NULL)
        return PEEK(peek, heap->arenas.caches);
    const struct cache *cache = peek == NULL ? heap_cache_fast(heap) : &cache_none;
    return cache_exists(cache) ? cache : NULL;
}

struct class_totals heap_class_totals_of(struct peek *peek, const struct heap *heap, size_t class)
{
    struct arena_totals objects = arenas_totals(peek, &heap->arenas, class);
    struct class_totals totals = {.slabs = objects.slabs,
                                  .total = objects.total,
                                  .free = objects.free,
                                  .depots = objects.waiting};
    if (objects.total == 0)
        return totals; /* what caches hold are objects of slabs: most programs use few classes */
    const struct cache *cache = first_cache(peek, heap);
    for (; cache != NULL; cache = PEEK(peek, cache->next))
        totals.cached += cache_count(peek, cache, class);
    totals.live = rest_of(totals.total, totals.free + totals.depots + totals.cached);
    return totals;
}

static void add_class(struct peek *peek, const struct heap *heap, struct heap_totals *totals,
                      const struct class_totals *objects, size_t class)
{
    size_t bytes = class_bytes(class);
    size_t slabs = objects->slabs * class_slab_pages(PEEK(peek, heap->page_heap.compact), class)
                   << PAGE_SHIFT;
    totals->slabs += slabs;
    totals->slabs_waste += rest_of(slabs, objects->total * bytes);
    totals->live[class] = objects->live;
    totals->small_live += objects->live * bytes;
    totals->small_live_count += objects->live;
    totals->small_free += objects->free * bytes;
    totals->small_depots += objects->depots * bytes;
    totals->small_cached += objects->cached * bytes;
    totals->small_free_count += objects->free + objects->depots + objects->cached;
}

static void add_cells(struct peek *peek, const struct heap *heap, struct heap_totals *totals)
{
    struct cell_totals cells = arenas_cell_totals(peek, &heap->arenas);
    size_t cached_count = 0;
    const struct cache *cache = first_cache(peek, heap);
    for (; cache != NULL; cache = PEEK(peek, cache->next)) {
        struct cached_cells cached = cache_cells(peek, cache);
        cached_count += cached.count;
        totals->cells_cached += cached.bytes;
    }
    totals->cells = cells.bytes;
    totals->cells_free = cells.free;
    totals->cells_gone = size_min(cells.gone, cells.free); /* they are read one after the other */
    totals->cells_taken = cells.taken;
    totals->cells_taken_bytes = cells.taken_bytes;
    totals->cells_count = rest_of(cells.taken, cells.given + cached_count);
    totals->cells_waste =
        cells.bytes / CELL_SPAN_BYTES * CELL_UNIT + totals->cells_count * CELL_HEADER;
    totals->cells_live =
        rest_of(cells.bytes, cells.free + totals->cells_cached + totals->cells_waste);
}

/* The lists of large blocks that wait: the page heap's own, then those of processors; NULL: there
 * are no more. */
static const struct recent *waiting_list(struct peek *peek, const struct page_heap *page_heap,
                                         size_t index)
{
    if (index == 0)
        return &page_heap->recent;
    const struct nearby *nearby = PEEK(peek, page_heap->nearby);
    size_t count = nearby == NULL ? 0 : (size_t)1 << PEEK(peek, page_heap->nearby_log) % 64;
    return index <= size_min(count, NEARBY_MOST) ? &nearby[index - 1].recent : NULL;
}

#define EACH_WAITING_LIST(list, index, peek, page_heap) \
    for (size_t index = 0; ((list) = waiting_list((peek), (page_heap), index)) != NULL; index++)

/* The rows of large and huge blocks, without those that wait to be taken again. */
static void large_sizes_read(struct peek *peek, const struct page_heap *page_heap,
                             struct large_sizes *sizes)
{
    for (size_t row = 0; row < LARGE_ROWS; row++) {
        sizes->blocks[row] = PEEK(peek, page_heap->sizes.blocks[row]);
        sizes->bytes[row] = PEEK(peek, page_heap->sizes.bytes[row]);
    }
    const struct recent *recent;
    EACH_WAITING_LIST(recent, list, peek, page_heap)
    {
        size_t count = size_min(PEEK(peek, recent->count), RECENT_MOST);
        for (size_t i = 0; i < count; i++) {
            size_t bytes = PEEK(peek, recent->requested[i]);
            size_t row = large_row_of(bytes);
            sizes->blocks[row] = rest_of(sizes->blocks[row], 1);
            sizes->bytes[row] = rest_of(sizes->bytes[row], bytes);
        }
    }
}

static void add_large(struct peek *peek, const struct page_heap *page_heap,
                      struct heap_totals *totals)
{
    size_t count = 0, requested = 0;
    large_sizes_read(peek, page_heap, &totals->sizes);
    for (size_t row = 0; row < LARGE_ROWS; row++) {
        count += totals->sizes.blocks[row];
        requested += totals->sizes.bytes[row];
    }
    totals->huge = PEEK(peek, page_heap->huge_pages) << PAGE_SHIFT;
    totals->huge_count = PEEK(peek, page_heap->huge_count);
    totals->huge_requested = PEEK(peek, page_heap->huge_requested);
    totals->large_count = rest_of(count, totals->huge_count);
    totals->large_requested = rest_of(requested, totals->huge_requested);
}

size_t heap_waiting_pages(struct peek *peek, const struct page_heap *page_heap, size_t *blocks)
{
    size_t pages = 0;
    const struct recent *recent;
    EACH_WAITING_LIST(recent, list, peek, page_heap)
    {
        pages += PEEK(peek, recent->pages);
        *blocks += PEEK(peek, recent->count);
    }
    return pages;
}

static void add_spans(struct peek *peek, const struct page_heap *page_heap,
                      struct heap_totals *totals)
{
    size_t cached = PEEK(peek, page_heap->cache.pages),
           dirty = PEEK(peek, page_heap->cache.dirty_pages);
    totals->free_runs = PEEK(peek, page_heap->dirty.count) + PEEK(peek, page_heap->clean.count);
    size_t waiting = heap_waiting_pages(peek, page_heap, &totals->free_runs);
    totals->segment_cache = cached << PAGE_SHIFT;
    totals->segments = (PEEK(peek, page_heap->segment_pages) + cached) << PAGE_SHIFT;
    totals->dirty =
        (PEEK(peek, page_heap->dirty.pages) + PEEK(peek, page_heap->busy_pages) + waiting + dirty)
        << PAGE_SHIFT;
    totals->clean = (PEEK(peek, page_heap->clean.pages) + rest_of(cached, dirty)) << PAGE_SHIFT;
    totals->mapped_peak = PEEK(peek, page_heap->mapped_peak) << PAGE_SHIFT;
    totals->used_peak = PEEK(peek, page_heap->used_peak) << PAGE_SHIFT;
    size_t used = rest_of(PEEK(peek, page_heap->used_pages), waiting);
    totals->large = rest_of(used << PAGE_SHIFT, totals->slabs + totals->cells);
}

void heap_totals_read(struct peek *peek, const struct heap *heap, struct class_totals *classes,
                      struct heap_totals *totals)
{
    *totals = (struct heap_totals){0};
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        struct class_totals objects = heap_class_totals_of(peek, heap, class);
        add_class(peek, heap, totals, &objects, class);
        if (classes != NULL)
            classes[class] = objects;
    }
    add_cells(peek, heap, totals);
    add_large(peek, &heap->page_heap, totals);
    add_spans(peek, &heap->page_heap, totals);
    const struct hardened *hardened = PEEK(peek, heap->hardened);
    if (hardened != NULL)
        totals->hardened = hard_totals_of(peek, hardened);
    const struct meta *meta = PEEK(peek, heap->page_heap.meta);
    if (meta == NULL)
        return; /* it was never used */
    totals->meta_mapped = PEEK(peek, meta->mapped);
    totals->meta_used =
        PEEK(peek, meta->used) + (totals->segments >> PAGE_SHIFT) * PAGE_MAP_BYTES_PER_PAGE;
}
