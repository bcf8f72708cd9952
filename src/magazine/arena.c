/*
 * Arenas and depots. See arena.h.
 */
#include "magazine/arena.h"

#include <string.h>

#include "meta/meta.h"
#include "options/options.h"
#include "platform/check.h"
#include "platform/thread.h"
#include "stats/stats.h"

/* One part in: of its objects, a class that grows puts so many into the depot for its next refills.
 */
enum { STOCK_PART = 64 };

void arenas_init(struct arenas *arenas, struct page_heap *page_heap, struct arena *first,
                 unsigned count)
{
    lock_init(&arenas->lock, RANK_ARENAS);
    arenas->page_heap = page_heap;
    arenas->held_most = SIZE_MAX;
    arenas->end_orphans = NULL;
    arenas->count = count < ARENAS_MOST ? count : ARENAS_MOST;
    arenas->list[0] = first;
}

/* ---- Which arena ---- */

struct arena *arena_new(struct arenas *arenas, unsigned index)
{
    struct arena *fresh = meta_map(sizeof(*fresh));
    struct arena *expected = NULL;
    if (fresh == NULL)
        return arena_at(arenas, 0);
    /* release: who finds the arena finds it zero. The loser of a race leaves its pages mapped and
     * untouched. */
    if (__atomic_compare_exchange_n(&arenas->list[index], &expected, fresh, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return fresh;
    return expected;
}

/* The bin and depot of a class, made ready if this is their first use. */
static inline struct arena_class *arena_class(struct arenas *arenas, struct arena *arena,
                                              size_t class)
{
    struct arena_class *at = &arena->classes[class];
    /* acquire: pairs with bin_init */
    if (UNLIKELY(__atomic_load_n(&at->bin.page_heap, __ATOMIC_ACQUIRE) == NULL)) {
        lock_acquire(&arenas->lock);
        if (at->bin.page_heap == NULL) {
            depot_init(&at->depot, class_bytes(class), &arena->waiting);
            bin_init(&at->bin, arenas->page_heap, class);
        }
        lock_release(&arenas->lock);
    }
    return at;
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

/* ---- Depots ---- */

/* Whether something waits in any depot of an arena, so that they are worth a look. */
static inline bool arena_has_waiting(const struct arena *arena)
{
    return arena != NULL && __atomic_load_n(&arena->waiting, __ATOMIC_RELAXED) != 0;
}

struct magazine *arenas_get_full(struct arenas *arenas, size_t class, struct magazine **empty)
{
    struct arena *here = arena_here(arenas);
    struct depot *own = &arena_class(arenas, here, class)->depot;
    struct magazine *magazine = depot_get(own, empty);
    /* relaxed: a hint. A thread that is alone, as in a child of fork, shares no lines. */
    if (magazine == NULL && depot_has_lent(own) &&
        __atomic_load_n(&arenas->threads, __ATOMIC_RELAXED) > 1)
        return NULL;
    for (unsigned i = 0; magazine == NULL && i < arenas->count; i++) {
        struct arena *other = arena_at(arenas, i);
        if (other == here || !arena_has_waiting(other))
            continue;
        struct arena_class *at = arena_class_if_used(arenas, i, class);
        if (at != NULL)
            magazine = depot_get_shared(&at->depot, empty);
    }
    return magazine;
}

/* A class is not sparse where less than its part of the base is at stake. */
bool arenas_class_is_sparse(const struct arenas *arenas, size_t class)
{
    size_t total = 0, idle = 0;
    const struct arena_class *at;
    for (unsigned i = 0; (at = arena_class_next(arenas, &i, class)) != NULL;) {
        total += __atomic_load_n(&at->bin.total_objects, __ATOMIC_RELAXED);
        idle += bin_free_objects(&at->bin);
    }
    return idle > total / MOST_SHARE && total * class_bytes(class) > options.dirty / CLASS_COUNT;
}

/* Whether all depots of an arena hold what they may: half of the heap's base. */
static bool is_full(const struct arenas *arenas, const struct arena *arena)
{
    /* relaxed: a hint */
    size_t pages = __atomic_load_n(&arena->waiting, __ATOMIC_RELAXED) >> PAGE_SHIFT;
    return UNLIKELY(pages >= options.dirty >> PAGE_SHIFT >> 1) &&
           pages >= page_heap_base(arenas->page_heap) / 2;
}

/* How many magazines of a class one depot may hold. The magazines themselves may be a share of
 * SNUG_DEPOT. */
static size_t depot_most(size_t class, unsigned log)
{
    return size_min(options.depot / (magazine_capacity(log) * class_bytes(class)),
                    options.depot / SLACK_SHARE / META_LEAST >> log);
}

void arenas_empty_depots(struct arenas *arenas, size_t class)
{
    struct arena_class *at;
    for (unsigned i = 0; (at = arena_class_next(arenas, &i, class)) != NULL;)
        depot_flush(&at->depot, SIZE_MAX);
}

bool arenas_put_full(struct arenas *arenas, size_t class, struct magazine *magazine,
                     struct magazine **empty)
{
    struct arena *arena = arena_here(arenas);
    struct depot *depot = &arena_class(arenas, arena, class)->depot;
    size_t most = depot_most(class, magazine->log);
    if (depot_magazines(depot) >= most || is_full(arenas, arena))
        return false;
    if (UNLIKELY(arenas_class_is_sparse(arenas, class))) {
        arenas_empty_depots(arenas, class);
        return false;
    }
    return depot_put(depot, magazine, most, empty);
}

/* Ends an epoch of the depots: what nobody needed in it goes back. */
static void depots_tick(struct arena *arena)
{
    /* relaxed, here and below: how often, not when exactly */
    __atomic_store_n(&arena->grown, 0, __ATOMIC_RELAXED);
    uint64_t now = __atomic_add_fetch(&arena->clock, RETENTION_TICK, __ATOMIC_RELAXED);
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        struct arena_class *at = &arena->classes[class];
        if (__atomic_load_n(&at->bin.page_heap, __ATOMIC_ACQUIRE) != NULL)
            depot_tick(&at->depot, now);
    }
}

/* One part in: of SNUG_DIRTY, an epoch is so much fresh memory. To fault it in takes 50 times as
 * long as the look at all classes at its end. */
enum { EPOCHS_PER_DIRTY = 16 };

/* Call before a slab of a class is made. Idle objects cost when memory grows, so the depots' clock
 * goes by fresh memory, too, not by time alone. */
static void depots_tick_at_growth(struct arenas *arenas, struct arena *arena, size_t class)
{
    size_t fresh = class_slab_pages(arenas->page_heap->compact, class) << PAGE_SHIFT;
    if (__atomic_add_fetch(&arena->grown, fresh, __ATOMIC_RELAXED) >
        options.dirty / EPOCHS_PER_DIRTY)
        depots_tick(arena);
}

/* ---- Taking from slabs ---- */

/* The objects of a slab. */
static inline size_t slab_objects(const struct arenas *arenas, size_t class)
{
    size_t bytes = class_slab_pages(arenas->page_heap->compact, class) << PAGE_SHIFT;
    return bytes / class_bytes(class);
}

/* Takes from another arena's bin if that has more free objects than a slab; `all`: if it has any.
 */
static size_t alloc_from_others(struct arenas *arenas, const struct arena_class *here,
                                uintptr_t *objects, size_t count, bool all)
{
    size_t class = here->bin.class;
    size_t spare = all ? 0 : slab_objects(arenas, class);
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

/* A full magazine of new objects, or NULL: there is no memory. */
static struct magazine *magazine_stocked(struct arena_class *at, unsigned log)
{
    struct magazine *magazine = depot_get_empty(&at->depot);
    if (magazine == NULL)
        magazine = magazine_new(log);
    if (magazine == NULL)
        return NULL;
    size_t wanted = magazine_capacity(log), taken = 0, got;
    uintptr_t *objects = magazine_begin(magazine);
    do {
        got = bin_alloc(&at->bin, objects + taken, wanted - taken, true);
        taken += got;
    } while (got != 0 && taken < wanted);
    if (taken == wanted)
        return magazine;
    slabs_free(objects, taken, "free");
    magazine_free(magazine);
    return NULL;
}

/* Call when a class had to grow for a thread that takes `count` objects at a time. The last
 * magazine is put first: so a thread that takes them all goes through memory upwards, as the
 * processor foresees. The other way round it took twice the time to free objects in the order in
 * which they were taken. */
static void stock_depot(struct arena_class *at, size_t count)
{
    size_t class = at->bin.class;
    unsigned log = size_classes[class].magazine_log;
    size_t capacity = magazine_capacity(log);
    if (count < capacity / 2)
        return; /* its magazine is still growing */
    size_t total = __atomic_load_n(&at->bin.total_objects, __ATOMIC_RELAXED);
    size_t most = size_min(depot_most(class, log), total / STOCK_PART / capacity);
    size_t room = most - size_min(most, depot_magazines(&at->depot));
    struct magazine *stocked = NULL, *made;
    for (; room != 0 && (made = magazine_stocked(at, log)) != NULL; room--) {
        made->link = stocked;
        stocked = made;
    }
    while ((made = stocked) != NULL) {
        stocked = made->link;
        if (depot_put_stock(&at->depot, made, most)) {
            COUNT(depot_stocked, 1);
        } else {
            slabs_free(magazine_begin(made), capacity, "free");
            magazine_free(made);
        }
    }
}

/* Objects that wait in depots, that threads of before a fork have left, or else of new slabs. */
static NOINLINE size_t alloc_fresh(struct arenas *arenas, struct arena *arena,
                                   struct arena_class *here, uintptr_t *objects, size_t count)
{
    size_t taken = alloc_from_depots(arenas, here->bin.class, objects, count);
    if (taken == 0 && arenas_end_orphans_once(arenas)) {
        taken = bin_alloc(&here->bin, objects, count, false);
        if (taken == 0)
            taken = alloc_from_others(arenas, here, objects, count, false);
    }
    if (taken != 0)
        return taken;
    depots_tick_at_growth(arenas, arena, here->bin.class);
    taken = bin_alloc(&here->bin, objects, count, true);
    if (taken == 0)
        return alloc_from_others(arenas, here, objects, count, true);
    if (depot_has_lent(&here->depot))
        depot_replace(&here->depot, slab_objects(arenas, here->bin.class));
    if (count > 1)
        stock_depot(here, count);
    return taken;
}

size_t arenas_refill(struct arenas *arenas, size_t class, uintptr_t *objects, size_t count)
{
    struct arena *arena = arena_here(arenas);
    struct arena_class *here = arena_class(arenas, arena, class);
    size_t taken = bin_alloc(&here->bin, objects, count, false);
    if (LIKELY(taken != 0))
        return taken;
    taken = alloc_from_others(arenas, here, objects, count, false);
    return taken != 0 ? taken : alloc_fresh(arenas, arena, here, objects, count);
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

/* A cell of another arena that has more than `spare` units free. */
static void *alloc_cell_from_others(struct arenas *arenas, const struct cells *here, size_t bytes,
                                    size_t alignment, size_t spare, struct misuse *misuse,
                                    size_t *dirty)
{
    void *block = NULL;
    struct cells *other;
    for (unsigned i = 0; block == NULL && (other = arena_cells_next(arenas, &i)) != NULL;)
        /* relaxed: a hint */
        if (other != here && __atomic_load_n(&other->free_units, __ATOMIC_RELAXED) > spare)
            block = cells_alloc(other, bytes, alignment, false, misuse, dirty);
    return block;
}

/* A cell for which no new span is made. */
static void *alloc_free_cell(struct arenas *arenas, struct cells *here, size_t bytes,
                             size_t alignment, struct misuse *misuse, size_t *dirty)
{
    void *block = cells_alloc(here, bytes, alignment, false, misuse, dirty);
    return block != NULL
               ? block
               : alloc_cell_from_others(arenas, here, bytes, alignment, CELL_UNITS, misuse, dirty);
}

void *arenas_alloc_cell(struct arenas *arenas, size_t bytes, size_t alignment,
                        struct misuse *misuse, size_t *dirty)
{
    misuse->kind = MISUSE_NONE;
    struct cells *here = arena_cells(arenas, arena_here(arenas));
    if (UNLIKELY(here == NULL))
        return alloc_cell_from_others(arenas, NULL, bytes, alignment, 0, misuse, dirty);
    void *block = alloc_free_cell(arenas, here, bytes, alignment, misuse, dirty);
    if (block == NULL && arenas_end_orphans_once(arenas))
        block = alloc_free_cell(arenas, here, bytes, alignment, misuse, dirty);
    if (block == NULL)
        block = cells_alloc(here, bytes, alignment, true, misuse, dirty);
    if (block == NULL)
        block = alloc_cell_from_others(arenas, here, bytes, alignment, 0, misuse, dirty);
    return block;
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

size_t arenas_short_cells(const struct arenas *arenas)
{
    size_t units = 0;
    const struct cells *cells;
    for (unsigned i = 0; (cells = arena_cells_next(arenas, &i)) != NULL;)
        units += __atomic_load_n(&cells->short_units, __ATOMIC_RELAXED);
    return units * CELL_UNIT;
}

/* ---- All of them ---- */

void arenas_tick(struct arenas *arenas)
{
    struct cells *cells;
    for (unsigned i = 0; (cells = arena_cells_next(arenas, &i)) != NULL;)
        cells_tick(cells);
    for (unsigned i = 0; i < arenas->count; i++)
        if (arena_at(arenas, i) != NULL)
            depots_tick(arena_at(arenas, i));
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
