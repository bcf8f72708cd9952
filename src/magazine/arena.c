/*
 * Arenas: taking small objects from their slabs, and cells. See arena.h.
 *
 *   arenas_refill: own slabs -> others', if the class is shared -> depots -> new slabs
 */
#include "magazine/arena.h"

#include <string.h>

#include "magazine/arena_depots.h"

void arenas_init(struct arenas *arenas, struct page_heap *page_heap, struct arena *first,
                 unsigned count)
{
    lock_init(&arenas->lock, RANK_ARENAS);
    arenas->page_heap = page_heap;
    arenas->held_most = SIZE_MAX;
    arenas->end_orphans = NULL;
    arenas->count = count < ARENAS_MOST ? count : ARENAS_MOST;
    /* What was a heap before still has its arenas. */
    arenas->end = arenas->end != 0 ? arenas->end : 1;
    arenas->list[0] = first;
}

/* The cells of an arena, made ready if this is their first use; NULL if there is no memory for it.
 */
static struct cells *arena_cells(struct arenas *arenas, struct arena *arena)
{
    bool ready = __atomic_load_n(&arena->cells.page_heap, __ATOMIC_ACQUIRE) != NULL;
    if (UNLIKELY(!ready)) {
        lock_acquire(&arenas->lock);
        ready = arena->cells.page_heap != NULL || cells_init(&arena->cells, arenas->page_heap);
        lock_release(&arenas->lock);
    }
    return ready ? &arena->cells : NULL;
}

/* ---- Taking from slabs ---- */

/* Takes from another arena's bin if that has more free objects than a slab; `all`: if it has any.
 */
static size_t alloc_from_others(struct arenas *arenas, const struct arena_class *here,
                                uintptr_t *objects, size_t count, bool all)
{
    size_t class = here->bin.class;
    size_t spare = all ? 0 : arena_slab_bytes(arenas, class) / class_bytes(class);
    struct arena_class *other;
    for (unsigned i = 0; (other = arena_class_next(arenas, &i, class)) != NULL;) {
        if (other == here || bin_free_objects(&other->bin) <= spare)
            continue;
        size_t taken = bin_alloc(&other->bin, objects, count, false);
        if (taken != 0)
            return taken;
    }
    return 0;
}

/* Of slabs that there are. */
static size_t alloc_from_slabs(struct arenas *arenas, struct arena_class *here, uintptr_t *objects,
                               size_t count)
{
    size_t taken = bin_alloc(&here->bin, objects, count, false);
    return LIKELY(taken != 0) || !arenas_class_is_shared(arenas, here->bin.class)
               ? taken
               : alloc_from_others(arenas, here, objects, count, false);
}

/* Takes from a magazine that waits in a depot: for threads that can hold no such magazine. What is
 * more than `count` goes to its slabs. */
static size_t alloc_from_depots(struct arenas *arenas, size_t class, uintptr_t *objects,
                                size_t count)
{
    struct magazine *none = NULL, *full = arenas_get_full(arenas, class, &none);
    if (full == NULL)
        return 0;
    uintptr_t *begin = magazine_begin(full);
    size_t capacity = magazine_capacity(full->log), taken = size_min(count, capacity);
    memcpy(objects, begin, taken * sizeof(*objects));
    slabs_free(begin + taken, capacity - taken, "free");
    magazine_free(full);
    return taken;
}

/* Objects that wait in depots, that threads of before a fork have left, or else of new slabs. */
static NOINLINE size_t alloc_fresh(struct arenas *arenas, struct arena *arena,
                                   struct arena_class *here, uintptr_t *objects, size_t count)
{
    size_t class = here->bin.class;
    size_t taken = alloc_from_depots(arenas, class, objects, count);
    if (taken == 0 && arenas_end_orphans_once(arenas))
        taken = alloc_from_slabs(arenas, here, objects, count);
    if (taken != 0)
        return taken;
    arena_depots_grow(arenas, arena, arena_slab_bytes(arenas, class));
    taken = bin_alloc(&here->bin, objects, count, true);
    if (taken == 0)
        return alloc_from_others(arenas, here, objects, count, true);
    if (count > 1)
        arena_depot_stock(here, count);
    return taken;
}

size_t arenas_refill(struct arenas *arenas, size_t class, uintptr_t *objects, size_t count)
{
    struct arena *arena = arena_for(arenas, class);
    struct arena_class *here = arena_class(arenas, arena, class);
    size_t taken = alloc_from_slabs(arenas, here, objects, count);
    return LIKELY(taken != 0) ? taken : alloc_fresh(arenas, arena, here, objects, count);
}

COLD uintptr_t arenas_alloc_larger(struct arenas *arenas, size_t class)
{
    uintptr_t object = 0;
    struct arena_class *at;
    for (; class < CLASS_COUNT; class++)
        for (unsigned i = 0; (at = arena_class_next(arenas, &i, class)) != NULL;)
            if (bin_alloc(&at->bin, &object, 1, false) != 0)
                return object;
    return 0;
}

/* ---- Cells ---- */

/* What is asked for, and what is said of it, as of cells_alloc. */
struct cell_request {
    struct arenas *arenas;
    struct cells *here; /* those of the processor; NULL: there are none */
    size_t bytes;
    size_t alignment;
    struct misuse *misuse; /* the last that was found, whoever serves then */
    size_t *dirty;
};

static NOINLINE void *alloc_cell_from(const struct cell_request *request, struct cells *cells,
                                      enum cells_reach reach)
{
    return cells_alloc(cells, request->bytes, request->alignment, reach, request->misuse,
                       request->dirty);
}

/* A cell of another arena that has more than `spare` units free. */
static void *alloc_cell_from_others(const struct cell_request *request, size_t spare,
                                    enum cells_reach reach)
{
    void *block = NULL;
    struct cells *other;
    for (unsigned i = 0; block == NULL && (other = arena_cells_next(request->arenas, &i)) != NULL;)
        /* relaxed: a hint */
        if (other != request->here && __atomic_load_n(&other->free_units, __ATOMIC_RELAXED) > spare)
            block = alloc_cell_from(request, other, reach);
    return block;
}

/* One part in: of the spans there are, so much more may a heap have than was in use of late before
 * a thread takes from other arenas. With an eighth programs had more memory, and were no faster. */
enum { CELLS_MORE_SHARE = 2 * SLACK_SHARE };

/* Whether another span makes the heap hardly larger than what was in use of late, free cells not
 * counted. Who takes from others all the same waits for their locks and has cells that are in no
 * cache of its processor, and what it took goes back to the others: from then on nobody has enough
 * of its own. Where memory is limited a small part may be spent for that, and none of a heap that
 * is the program's own, whose provider may have no more. */
static bool cells_may_grow(struct arenas *arenas)
{
    const struct page_heap *page_heap = arenas->page_heap;
    if (page_heap->other)
        return false;
    struct cells_use use = arenas_cells_use(arenas);
    size_t all = page_heap_in_use_hint(page_heap) << PAGE_SHIFT;
    size_t used = all - size_min(all, use.total - use.used);
    /* relaxed, both: hints, each of which tells by itself */
    size_t most = __atomic_load_n(&arenas->most, __ATOMIC_RELAXED);
    uint64_t then = __atomic_load_n(&arenas->most_at, __ATOMIC_RELAXED), now = page_heap->now();
    if (used > most || now - then > options_nanoseconds(options.purge_delay)) {
        most = used;
        GAUGE_SET(arenas->most, most);
        GAUGE_SET(arenas->most_at, now);
    }
    size_t may = size_min(most + use.total / CELLS_MORE_SHARE, arenas->held_most);
    return all + CELL_SPAN_BYTES <= may;
}

/* A cell for which no new span is made. */
static void *alloc_free_cell(const struct cell_request *request, enum cells_reach reach)
{
    void *block = alloc_cell_from(request, request->here, reach);
    return block != NULL || cells_may_grow(request->arenas)
               ? block
               : alloc_cell_from_others(request, CELL_UNITS, reach);
}

void *arenas_alloc_cell(struct arenas *arenas, size_t bytes, size_t alignment,
                        enum cells_reach reach, struct misuse *misuse, size_t *dirty)
{
    misuse->kind = MISUSE_NONE;
    struct cells *here = arena_cells(arenas, arena_here(arenas));
    const struct cell_request request = {arenas, here, bytes, alignment, misuse, dirty};
    if (UNLIKELY(here == NULL))
        return alloc_cell_from_others(&request, 0, CELLS_HELD);
    void *block;
    do
        block = alloc_free_cell(&request, size_min(reach, CELLS_HELD));
    while (block == NULL && reach == CELLS_NEW && arenas_end_orphans_once(arenas));
    if (block != NULL || reach != CELLS_NEW)
        return block;
    block = alloc_cell_from(&request, here, CELLS_NEW);
    return block != NULL ? block : alloc_cell_from_others(&request, 0, CELLS_HELD);
}

struct cells_use arenas_cells_use(const struct arenas *arenas)
{
    struct cells_use use = {0, 0};
    const struct cells *cells;
    for (unsigned i = 0; (cells = arena_cells_next(arenas, &i)) != NULL;) {
        use.total += __atomic_load_n(&cells->span_count, __ATOMIC_RELAXED) * CELL_SPAN_BYTES;
        use.used += cells_used_bytes(cells);
    }
    return use;
}

/* ---- All of them ---- */

void arenas_tick(struct arenas *arenas)
{
    struct cells *cells;
    for (unsigned i = 0; (cells = arena_cells_next(arenas, &i)) != NULL;)
        cells_tick(cells);
    for (unsigned i = 0; i < arenas_end(arenas); i++)
        if (arena_at(arenas, i) != NULL)
            arena_depots_tick(arena_at(arenas, i));
}

COLD size_t arenas_trim(struct arenas *arenas)
{
    size_t purged = 0;
    struct cells *cells;
    for (unsigned i = 0; (cells = arena_cells_next(arenas, &i)) != NULL;)
        purged += cells_purge(cells, true);
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        struct arena_class *at;
        arenas_empty_depots(arenas, class);
        for (unsigned i = 0; (at = arena_class_next(arenas, &i, class)) != NULL;)
            bin_trim(&at->bin);
    }
    return purged;
}

COLD const char *arenas_check(struct arenas *arenas)
{
    const char *wrong = NULL;
    struct arena_class *at;
    for (size_t class = 1; class < CLASS_COUNT; class++)
        for (unsigned i = 0; wrong == NULL && (at = arena_class_next(arenas, &i, class)) != NULL;) {
            wrong = bin_check(&at->bin);
            if (wrong == NULL)
                wrong = depot_check(&at->depot, arenas->page_heap, class);
        }
    struct cells *cells;
    for (unsigned i = 0; wrong == NULL && (cells = arena_cells_next(arenas, &i)) != NULL;)
        wrong = cells_check(cells);
    return wrong;
}

COLD void arenas_clear(struct arenas *arenas)
{
    struct arena_class *at;
    for (size_t class = 1; class < CLASS_COUNT; class++)
        for (unsigned i = 0; (at = arena_class_next(arenas, &i, class)) != NULL;) {
            depot_clear(&at->depot);
            bin_clear(&at->bin);
        }
    struct cells *cells;
    for (unsigned i = 0; (cells = arena_cells_next(arenas, &i)) != NULL;)
        cells_clear(cells);
}

static void each_class_lock(struct arenas *arenas, bool bins, void (*act)(struct lock *lock))
{
    struct arena_class *at;
    for (size_t class = 1; class < CLASS_COUNT; class++)
        for (unsigned i = 0; (at = arena_class_next(arenas, &i, class)) != NULL;)
            act(bins ? &at->bin.lock : &at->depot.lock);
}

COLD void arenas_each_lock_of(struct arenas *arenas, enum lock_rank rank,
                              void (*act)(struct lock *lock))
{
    if (rank == RANK_DEPOT || rank == RANK_BIN)
        each_class_lock(arenas, rank == RANK_BIN, act);
    struct cells *cells;
    for (unsigned i = 0; rank == RANK_CELLS && (cells = arena_cells_next(arenas, &i)) != NULL;)
        act(&cells->lock);
}
