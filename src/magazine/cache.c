/*
 * Thread caches: refilling and emptying magazines. See cache.h.
 *
 * A class starts without a magazine, gets one of 4 slots at the first call, and a larger one each
 * time it runs full or empty, up to its class's size and the limits on what a thread and all
 * threads may hold. Only then does it get a second one, the spare: when the loaded one runs out,
 * the two change places, and at least a whole magazine's worth of calls lies between two visits to
 * the depot, however a program goes up and down.
 *
 * A magazine is out of the cache before it is anybody else's, or nobody's: at every moment a top
 * leads to a magazine of this thread. Children of fork rely on that (orphans.c).
 *
 *   cache_refill:    spare -> depot -> slabs, growing the magazine
 *   cache_make_room: grow the magazine -> spare -> depot -> slabs
 */
#include "magazine/cache.h"

#include <string.h>

#include "magazine/cache_magazines.h"
#include "platform/check.h"
#include "stats/stats.h"

const struct magazine_none magazine_none = {
    .slots = {0, (uintptr_t)&end_marks[MAGAZINE_LOG_MOST + 1]},
};

#define TOP1 NO_MAGAZINE
#define TOP4 TOP1, TOP1, TOP1, TOP1
#define TOP16 TOP4, TOP4, TOP4, TOP4
_Static_assert(CLASS_COUNT == 65, "the row below has one entry for each class");
const struct cache cache_none = {
    .top = {TOP16, TOP16, TOP16, TOP16, TOP1},
    .quick = (struct quick *)&quick_none,
};

BULKY struct heap_slot heap_slots_none[HEAP_SLOTS];

__thread struct thread thread_self = {
    .cache = (struct cache *)&cache_none, .slots = heap_slots_none, .last = heap_slots_none};

/* ---- Magazines of a cache ---- */

/* The largest magazine of a class: about 16 KiB of objects. */
static unsigned magazine_log_most(size_t class)
{
    return size_classes[class].magazine_log;
}

/* A magazine, if the limits allow it, in place of `old`, which goes (NULL: it does not replace
 * one); NULL otherwise. */
static struct magazine *cache_magazine_new(struct cache *cache, size_t class, unsigned log,
                                           const struct magazine *old)
{
    size_t bytes = cache_magazine_bytes(class, log);
    size_t room = room_below(cache, bytes <= ALWAYS_HELD ? cache_limit(cache) : cache_part(cache));
    if (old != NULL)
        room += cache_magazine_bytes(class, old->log);
    if (bytes > room)
        return NULL;
    struct magazine *magazine = magazine_new(log);
    if (magazine != NULL)
        cache_hold(cache, bytes);
    return magazine;
}

/* An empty magazine in place of one of the same size that left: `empty`, or a new one if that is
 * NULL. NULL: the thread holds too much, or there is no memory; the magazine that left is counted
 * no more. */
static struct magazine *cache_magazine_renew(struct cache *cache, size_t class, unsigned log,
                                             struct magazine *empty)
{
    bool wanted = !cache_holds_too_much(cache);
    if (LIKELY(wanted && empty != NULL))
        return empty;
    if (empty != NULL)
        magazine_free(empty);
    struct magazine *magazine = wanted ? magazine_new(log) : NULL;
    if (UNLIKELY(magazine == NULL))
        cache_unhold(cache, cache_magazine_bytes(class, log));
    return magazine;
}

/* ---- Refilling ---- */

/* Where a refill came from. */
enum refill { REFILL_SPARE, REFILL_DEPOT, REFILL_SLABS };

static ALWAYS_INLINE void count_refill_in(struct tally *own, enum refill from, size_t class,
                                          size_t count)
{
    COUNT_IN(own, refills, 1);
    if (from == REFILL_SPARE)
        COUNT_IN(own, refills_spare, 1);
    if (from == REFILL_DEPOT)
        COUNT_IN(own, refills_depot, 1);
    COUNT_IN(own, refill_objects, count);
    COUNT_IN(own, refill_bytes, count * class_bytes(class));
}

/* Notes a refill with objects of a class. */
static ALWAYS_INLINE void count_refill(enum refill from, size_t class, size_t count)
{
    struct tally *own = tally_own;
    if (LIKELY(own != NULL))
        count_refill_in(own, from, class, count);
    else
        count_refill_in(NULL, from, class, count);
}

/* Loads a full magazine, with an empty spare or none. */
static inline void load_full(struct cache *cache, size_t class, struct magazine *full)
{
    cache_load_shape(cache, class, magazine_begin(full), full->log + 1, 0);
}

/* The empty magazine changes places with the spare, which is full. */
static inline void refill_from_spare(struct cache *cache, size_t class, struct magazine *empty)
{
    struct magazine *spare = empty->link;
    empty->link = NULL;
    empty->count = 0;
    count_refill(REFILL_SPARE, class, spare->count);
    spare->link = empty;
    load_full(cache, class, spare);
}

/* Takes a full magazine from the depot. All there are of the largest size, and so are both of two
 * empty ones: `empty` goes there for it. So it does if it is a single one and the thread may hold
 * no more: what it put into the depot would stay there otherwise, while memory grows. A single one
 * becomes the spare if there is room, or goes if it is smaller. False: there is none. */
static bool refill_from_depot(struct cache *cache, size_t class, struct magazine *empty)
{
    size_t most = cache_magazine_bytes(class, magazine_log_most(class));
    bool room = most <= cache_may_hold(cache);
    struct magazine *spare = empty == NULL ? NULL : empty->link, *given = NULL;
    bool largest = empty != NULL && empty->log == magazine_log_most(class);
    bool exchange = spare != NULL || (largest && !room);
    if (!exchange && !room)
        return false;
    if (exchange) { /* first, as in room_by_spare */
        cache_load(cache, class, spare, spare != NULL ? magazine_end(spare) : NO_MAGAZINE);
        empty->link = NULL;
        given = empty;
    }
    struct magazine *full = arenas_get_full(cache->arenas, class, &given);
    if (full == NULL && exchange) {
        empty->link = spare;
        cache_load(cache, class, empty, magazine_end(empty));
    }
    if (full == NULL)
        return false;
    CHECK(!exchange || empty->log == full->log);
    if (!exchange && largest)
        spare = empty;
    if (spare != NULL)
        spare->count = 0; /* one that was loaded still says what it had in the depot */
    full->link = spare;
    load_full(cache, class, full);
    if (!exchange) {
        cache_hold(cache, cache_magazine_bytes(class, full->log));
        cache_magazine_free(cache, class, spare == empty ? NULL : empty);
    } else if (given != NULL) {
        magazine_free(given); /* what the thread holds is as much as before */
    }
    count_refill(REFILL_DEPOT, class, magazine_capacity(full->log));
    return true;
}

/* A larger magazine instead of the empty one `old` (which may be NULL), if there may be one. */
static struct magazine *grow_empty(struct cache *cache, size_t class, struct magazine *old)
{
    unsigned log = old == NULL ? 0 : old->log + 1;
    if (log > magazine_log_most(class))
        return old;
    struct magazine *grown = cache_magazine_new(cache, class, log, old);
    if (grown == NULL)
        return old;
    CHECK(old == NULL || old->link == NULL);
    cache_load(cache, class, grown, magazine_end(grown));
    cache_magazine_free(cache, class, old);
    return grown;
}

/* False: there is no memory. */
static bool refill_from_slabs(struct cache *cache, size_t class, struct magazine *magazine)
{
    /* Half of it is filled: the next call may as well be a free. */
    size_t wanted = magazine_capacity(magazine->log) / 2;
    uintptr_t *top = magazine_end(magazine) - wanted;
    size_t taken = arenas_refill(cache->arenas, class, top, wanted);
    if (taken == 0)
        return false;
    if (taken != wanted) {
        memmove(top + wanted - taken, top, taken * sizeof(*top));
        top += wanted - taken;
    }
    cache_set_top(cache, class, top);
    count_refill(REFILL_SLABS, class, taken);
    return true;
}

/* Takes an object without its key off the top of a magazine, and reports it. */
static NOINLINE void drop_top(struct cache *cache, size_t class)
{
    uintptr_t *top = cache->top[class];
    struct misuse misuse = misuse_of_object(MISUSE_STALE, *top, class_bytes(class));
    cache_set_top(cache, class, top + 1);
    misuse_report("malloc", &misuse);
}

/* The magazine may have objects after all: the one on top of it may have been misused. */
static NOINLINE void *refill_from_loaded(struct cache *cache, size_t class)
{
    while (!cache_is_empty(cache, class)) {
        void *object = cache_pop(cache, class);
        if (LIKELY(object != NULL))
            return object;
        drop_top(cache, class);
    }
    return cache_refill(cache, class);
}

/* Refills from the depot or the slabs. Returns an object, or NULL: the class gets no magazine, or
 * there is no memory. */
static NOINLINE void *refill_from_outside(struct cache *cache, size_t class)
{
    struct misuse_waits waits;
    misuse_hold(&waits); /* a handler that allocates would fill the same magazine */
    struct magazine *empty = loaded_at_end(cache, class);
    bool filled = refill_from_depot(cache, class, empty);
    if (!filled) {
        struct magazine *magazine = grow_empty(cache, class, empty);
        filled = magazine != NULL && refill_from_slabs(cache, class, magazine);
    }
    if (filled)
        cache_note_moved(cache, class);
    misuse_let_go(&waits);
    return filled ? refill_from_loaded(cache, class) : NULL;
}

void *cache_refill(struct cache *cache, size_t class)
{
    if (UNLIKELY(!cache_is_empty(cache, class)))
        return refill_from_loaded(cache, class);
    struct magazine *empty = magazine_of_end(cache->top[class]); /* or magazine_none */
    if (empty->link == NULL || empty->link->count == 0)
        return refill_from_outside(cache, class);
    refill_from_spare(cache, class, empty);
    return refill_from_loaded(cache, class);
}

/* ---- Making room ---- */

/* Moves all objects of a full magazine into a larger one, if the class and the limits allow it. */
static bool cache_grow_full(struct cache *cache, size_t class, struct magazine *full)
{
    unsigned log = full->log + 1;
    if (log > magazine_log_most(class))
        return false;
    struct magazine *grown = cache_magazine_new(cache, class, log, full);
    if (grown == NULL)
        return false;
    size_t count = magazine_capacity(full->log);
    uintptr_t *top = magazine_end(grown) - count;
    memcpy(top, magazine_begin(full), count * sizeof(*top));
    cache_load(cache, class, grown, top);
    cache_magazine_free(cache, class, full);
    return true;
}

/* Gives the older half of a full magazine back. The halves change places in it: a copy would be a
 * kilobyte of each thread's stack. */
static NOINLINE void flush_half(struct cache *cache, size_t class, struct magazine *full)
{
    size_t half = magazine_capacity(full->log) / 2;
    uintptr_t *older = magazine_begin(full), *kept = older + half;
    for (size_t i = 0; i < half; i++) {
        uintptr_t newer = older[i];
        older[i] = kept[i];
        kept[i] = newer;
    }
    cache_load(cache, class, full, kept);
    slabs_free(older, half, "free");
}

/* Log2: a magazine of a sparse class has 12 slots at most, as each object in it may keep a slab. */
enum { SPARSE_LOG = 1 };

/* Gives everything back, what others have handed over as well, and leaves a small magazine. */
static NOINLINE void flush_all(struct cache *cache, size_t class, struct magazine *full)
{
    struct magazine *spare = full->link;
    size_t count = spare == NULL ? 0 : spare->count;
    if (count != 0)
        spare->count = 0;
    cache_load(cache, class, full, magazine_end(full)); /* first, as in class_flush */
    slabs_free(magazine_begin(full), magazine_capacity(full->log), "free");
    if (count != 0)
        slabs_free(magazine_begin(spare), count, "free");
    arenas_empty_depots(cache->arenas, class);
    struct magazine *small =
        full->log > SPARSE_LOG ? cache_magazine_new(cache, class, SPARSE_LOG, full) : NULL;
    if (small == NULL)
        return;
    cache_load(cache, class, small, magazine_end(small));
    cache_magazine_free(cache, class, full);
    cache_magazine_free(cache, class, spare);
}

static bool is_sparse(const struct cache *cache, size_t class, const struct magazine *full)
{
    return UNLIKELY(full->log >= SPARSE_LOG && arenas_class_is_sparse(cache->arenas, class));
}

/* Loads an empty magazine, and makes the full one, which has none, the spare; without one the full
 * one gives half of its objects back. */
static inline void load_empty(struct cache *cache, size_t class, struct magazine *full,
                              struct magazine *empty)
{
    if (empty == NULL) {
        flush_half(cache, class, full);
        return;
    }
    full->count = (uint32_t)magazine_capacity(full->log);
    empty->link = full;
    cache_load_shape(cache, class, magazine_end(empty), empty->log + 1, full->log + 1);
}

/* The loaded magazine is full, and so is the spare, which goes to the depot, or its objects to the
 * slabs. The depot refuses what is of a sparse class. */
static NOINLINE void room_by_spare(struct cache *cache, size_t class, struct magazine *full)
{
    struct magazine *spare = full->link;
    unsigned log = spare->log;
    COUNT(flushes, 1);
    struct magazine *empty;
    full->link = NULL; /* it is out of the cache before it is the depot's */
    if (arenas_put_full(cache->arenas, class, spare, &empty)) {
        COUNT(flushes_depot, 1);
        load_empty(cache, class, full, cache_magazine_renew(cache, class, log, empty));
    } else if (is_sparse(cache, class, full)) {
        full->link = spare;
        flush_all(cache, class, full);
    } else {
        slabs_free(magazine_begin(spare), magazine_capacity(log), "free");
        spare->count = 0;
        load_empty(cache, class, full, spare);
    }
}

/* The loaded magazine is full, and there is no spare. */
static NOINLINE void room_without_spare(struct cache *cache, size_t class, struct magazine *full)
{
    bool sparse = is_sparse(cache, class, full);
    if (!sparse && cache_grow_full(cache, class, full))
        return;
    COUNT(flushes, 1);
    if (sparse) {
        flush_all(cache, class, full);
        return;
    }
    bool largest = full->log == magazine_log_most(class);
    load_empty(cache, class, full,
               largest ? cache_magazine_new(cache, class, full->log, NULL) : NULL);
}

static NOINLINE bool room_by_first(struct cache *cache, size_t class)
{
    struct magazine *first = cache_magazine_new(cache, class, 0, NULL);
    if (first != NULL)
        cache_load(cache, class, first, magazine_end(first));
    return first != NULL;
}

/* The same with what others have to do. */
static NOINLINE bool room_outside(struct cache *cache, size_t class, struct magazine *full)
{
    struct misuse_waits waits;
    misuse_hold(&waits); /* a handler that frees would make room in the same magazine */
    cache_note_moved(cache, class);
    if (full->link != NULL)
        room_by_spare(cache, class, full);
    else
        room_without_spare(cache, class, full);
    misuse_let_go(&waits);
    return !cache_is_full(cache, class); /* which a handler may have made it again */
}

bool cache_make_room(struct cache *cache, size_t class)
{
    struct magazine *full = loaded_at_full(cache, class);
    if (full == NULL)
        return room_by_first(cache, class);
    struct magazine *spare = full->link;
    if (spare == NULL || spare->count != 0)
        return room_outside(cache, class, full);
    COUNT(flushes, 1);
    full->link = NULL;
    load_empty(cache, class, full, spare);
    return true;
}
