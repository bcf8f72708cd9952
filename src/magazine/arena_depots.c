/*
 * The depots of arenas: whose full magazines a thread takes, what may wait, and when it goes back.
 * See arena.h.
 *
 * Taken is from the own depot, then from others', unless that would mix lines. Put is into the own
 * depot, unless it holds what it may, or the class is sparse, or small objects lie in no order:
 * the slabs' bits sort those.
 */
#include "magazine/arena_depots.h"

#include "options/options.h"
#include "stats/stats.h"

/* One part in: of its objects, a class that grows puts so many into the depot for its next refills.
 */
enum { STOCK_PART = 64 };

/* ---- Taking and putting ---- */

/* Whether something waits in any depot of an arena, so that they are worth a look. */
static inline bool arena_has_waiting(const struct arena *arena)
{
    return arena != NULL && __atomic_load_n(&arena->waiting, __ATOMIC_RELAXED) != 0;
}

/* Whether a thread may take what waits in another's depot. If its own arena takes from it as well,
 * objects that share lines stay there: the lines would be those of two processors from then on. So
 * what is taken goes one way, from threads that only take to others that only free, or waits for
 * nobody. A thread that is alone, as in a child of fork, shares no lines. */
static bool may_take(const struct arenas *arenas, size_t class, const struct depot *depot)
{
    return !class_shares_lines(class) || !depot_is_two_way(depot) || arenas_are_alone(arenas);
}

struct magazine *arenas_get_full(struct arenas *arenas, size_t class, struct magazine **empty)
{
    struct arena *here = arena_for(arenas, class);
    struct depot *own = &arena_class(arenas, here, class)->depot;
    struct magazine *magazine = depot_get(own, empty);
    if (magazine != NULL)
        GAUGE_SET(own->two_way, true);
    for (unsigned i = 0; magazine == NULL && i < arenas_end_of_class(arenas, class); i++) {
        struct arena *other = arena_at(arenas, i);
        if (other == here || !arena_has_waiting(other))
            continue;
        struct arena_class *at = arena_class_if_used(arenas, i, class);
        if (at != NULL && may_take(arenas, class, &at->depot))
            magazine = depot_get_shared(&at->depot, empty);
    }
    return magazine;
}

/* Whether all depots of an arena hold what they may: half of the heap's base; those of homes no
 * more together than if there were one for each processor. */
static bool is_full(const struct arenas *arenas, const struct arena *arena, size_t class)
{
    /* relaxed: a hint */
    size_t pages = __atomic_load_n(&arena->waiting, __ATOMIC_RELAXED) >> PAGE_SHIFT;
    if (class_shares_lines(class) && arenas_end(arenas) > arenas->count)
        pages = pages * arenas_end(arenas) / arenas->count;
    return UNLIKELY(pages >= options.dirty >> PAGE_SHIFT >> 1) &&
           pages >= page_heap_base(arenas->page_heap) / 2;
}

/* How many magazines of a class one depot may hold. The magazines themselves may be a share of
 * SNUG_DEPOT. */
static size_t depot_most(size_t class, unsigned log)
{
    size_t most = size_min(options.depot / (magazine_capacity(log) * class_bytes(class)),
                           options.depot / SLACK_SHARE / META_LEAST >> log);
    return size_min(most, DEPOT_MOST);
}

/* Whether objects may be handed out in the order in which they came: each has lines of its own, or
 * a heap has no more in use than the processor's caches hold, or they lie in that order. */
static bool may_wait(const struct page_heap *page_heap, struct magazine *magazine, size_t class)
{
    /* relaxed: a hint */
    size_t used = __atomic_load_n(&page_heap->used_pages, __ATOMIC_RELAXED);
    return !class_shares_lines(class) || used <= options.dirty >> PAGE_SHIFT ||
           magazine_is_in_order(magazine, class_bytes(class));
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
    struct arena *arena = arena_for(arenas, class);
    struct depot *depot = &arena_class(arenas, arena, class)->depot;
    size_t most = depot_most(class, magazine->log);
    if (depot_magazines(depot) >= most || is_full(arenas, arena, class) ||
        !may_wait(arenas->page_heap, magazine, class))
        return false;
    if (UNLIKELY(arenas_class_is_sparse(arenas, class))) {
        arenas_empty_depots(arenas, class);
        return false;
    }
    return depot_put(depot, magazine, most, empty);
}

/* ---- Epochs ---- */

void arena_depots_tick(struct arena *arena)
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

/* Pages of free cells serve no slab: while fresh ones are taken, those go that lie idle. */
static void end_epoch(const struct arenas *arenas, struct arena *arena, size_t bytes)
{
    arena_depots_tick(arena);
    struct cells *cells = arena_cells_of(arenas, arena);
    if (cells != NULL && options.purge_delay != DELAY_NEVER)
        cells_end_epoch(cells, bytes >> PAGE_SHIFT);
}

void arena_depots_grow(struct arenas *arenas, struct arena *arena, size_t bytes)
{
    size_t epoch = options.dirty / EPOCHS_PER_DIRTY;
    if (__atomic_add_fetch(&arena->grown, bytes, __ATOMIC_RELAXED) <= epoch)
        return;
    end_epoch(arenas, arena, epoch);
    /* One of another in turn, whose threads may sleep. */
    unsigned turn = __atomic_add_fetch(&arenas->turn, 1, __ATOMIC_RELAXED) % arenas_end(arenas);
    struct arena *other = arena_at(arenas, turn);
    if (other != NULL && other != arena)
        end_epoch(arenas, other, epoch);
}

/* ---- Stock ---- */

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

/* The last magazine is put first: so a thread that takes them all goes through memory upwards, as
 * the processor foresees. The other way round it took twice the time to free objects in the order
 * in which they were taken. */
void arena_depot_stock(struct arena_class *at, size_t count)
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
