/*
 * Full magazines in a list. See depot.h.
 */
#include "magazine/depot.h"

#include "slab/slab.h"

void depot_init(struct depot *depot, size_t object_bytes, size_t *waiting)
{
    lock_init(&depot->lock, RANK_DEPOT);
    depot->object_bytes = (uint16_t)object_bytes;
    depot->waiting = waiting;
    retention_init(&depot->retention, RETENTION_OBJECT_PRICE);
}

/* Counts magazines and their objects that came, or with negative numbers went. The lock must be
 * held. */
static void depot_count(struct depot *depot, uint16_t magazines, size_t objects)
{
    GAUGE_ADD(depot->count, magazines);
    GAUGE_ADD(depot->objects, objects);
    /* relaxed: a sum that is only compared with a bound */
    __atomic_fetch_add(depot->waiting, objects * depot->object_bytes, __ATOMIC_RELAXED);
}

/* Keeps an empty magazine, if there is room. All have the largest size of their class. The lock
 * must be held, here and below. */
static void keep_empty(struct depot *depot, struct magazine **empty)
{
    if (*empty == NULL || depot->empties + depot->count >= depot->high)
        return;
    (*empty)->link = depot->empty;
    (*empty)->count = 0;
    depot->empty = *empty;
    GAUGE_ADD(depot->empties, 1);
    *empty = NULL;
}

static struct magazine *take_empty(struct depot *depot)
{
    struct magazine *empty = depot->empty;
    if (empty == NULL)
        return NULL;
    depot->empty = empty->link;
    empty->link = NULL;
    GAUGE_ADD(depot->empties, (uint16_t)-1);
    return empty;
}

static struct magazine *alloc_locked(struct depot *depot, struct magazine **empty)
{
    struct magazine *magazine = depot->full;
    if (magazine == NULL)
        return NULL;
    depot->full = magazine->link;
    depot_count(depot, (uint16_t)-1, -magazine_capacity(magazine->log));
    keep_empty(depot, empty);
    retention_see(&depot->retention, depot->objects, 0);
    if (depot->count < depot->stock)
        GAUGE_SET(depot->stock, depot->count);
    return magazine;
}

struct magazine *depot_get(struct depot *depot, struct magazine **empty)
{
    /* An empty depot is not worth its lock, and a miss is no error. */
    if (depot_is_empty(depot))
        return NULL;
    lock_acquire(&depot->lock);
    struct magazine *magazine = alloc_locked(depot, empty);
    lock_release(&depot->lock);
    return magazine;
}

struct magazine *depot_get_shared(struct depot *depot, struct magazine **empty)
{
    /* relaxed: hints, as above */
    if (depot_magazines(depot) <= __atomic_load_n(&depot->stock, __ATOMIC_RELAXED))
        return NULL;
    lock_acquire(&depot->lock);
    struct magazine *magazine = depot->count > depot->stock ? alloc_locked(depot, empty) : NULL;
    lock_release(&depot->lock);
    return magazine;
}

static NOINLINE bool put(struct depot *depot, struct magazine *magazine, size_t most,
                         uint16_t stock, struct magazine **empty)
{
    lock_acquire(&depot->lock);
    bool fits = depot->count < most;
    if (fits) {
        magazine->link = depot->full;
        depot->full = magazine;
        depot_count(depot, 1, magazine_capacity(magazine->log));
        GAUGE_ADD(depot->stock, stock);
        if (empty != NULL)
            *empty = take_empty(depot);
        GAUGE_SET(depot->high, (uint16_t)size_max(depot->high, depot->count + depot->empties));
    }
    lock_release(&depot->lock);
    return fits;
}

bool depot_put(struct depot *depot, struct magazine *magazine, size_t most, struct magazine **empty)
{
    return put(depot, magazine, most, 0, empty);
}

bool depot_put_stock(struct depot *depot, struct magazine *magazine, size_t most)
{
    return put(depot, magazine, most, 1, NULL);
}

struct magazine *depot_get_empty(struct depot *depot)
{
    /* relaxed: a hint */
    if (__atomic_load_n(&depot->empties, __ATOMIC_RELAXED) == 0)
        return NULL;
    lock_acquire(&depot->lock);
    struct magazine *empty = take_empty(depot);
    lock_release(&depot->lock);
    return empty;
}

/* Gives a list of magazines back to metadata. */
static void free_all(struct magazine *magazine)
{
    for (struct magazine *next; magazine != NULL; magazine = next) {
        next = magazine->link;
        magazine_free(magazine);
    }
}

/* The empty magazines go, and what was seen of the depot counts no more. */
static void begin_epoch(struct depot *depot)
{
    /* relaxed: a hint */
    if (__atomic_load_n(&depot->high, __ATOMIC_RELAXED) == 0)
        return;
    lock_acquire(&depot->lock);
    struct magazine *empty = depot->empty;
    depot->empty = NULL;
    GAUGE_SET(depot->high, depot->count);
    GAUGE_SET(depot->two_way, false);
    GAUGE_SET(depot->empties, 0);
    lock_release(&depot->lock);
    free_all(empty);
}

void depot_flush(struct depot *depot, size_t objects)
{
    struct magazine *magazine, *none = NULL;
    begin_epoch(depot);
    while (objects != 0 && (magazine = depot_get(depot, &none)) != NULL) {
        size_t count = magazine_capacity(magazine->log);
        slabs_free(magazine_begin(magazine), count, "free");
        magazine_free(magazine);
        objects -= size_min(objects, count);
    }
}

void depot_tick(struct depot *depot, uint64_t now)
{
    begin_epoch(depot);
    if (depot_is_empty(depot))
        return;
    size_t idle;
    lock_acquire(&depot->lock);
    bool over = retention_tick(&depot->retention, depot->objects, 0, 0, now, &idle);
    lock_release(&depot->lock);
    if (over)
        depot_flush(depot, idle);
}

COLD void depot_clear(struct depot *depot)
{
    free_all(depot->full);
    free_all(depot->empty);
    depot->empty = NULL;
    GAUGE_SET(depot->empties, 0);
    GAUGE_SET(depot->high, 0);
    GAUGE_SET(depot->two_way, false);
    depot->full = NULL;
    GAUGE_SET(depot->stock, 0);
    depot_count(depot, (uint16_t)-depot->count, -(size_t)depot->objects);
    retention_see(&depot->retention, 0, 0);
}

COLD const char *depot_check(struct depot *depot, const struct page_heap *page_heap, size_t class)
{
    const char *wrong = NULL;
    uint32_t count = 0;
    size_t objects = 0;
    lock_acquire(&depot->lock);
    for (struct magazine *m = depot->full; m != NULL; m = m->link, count++) {
        objects += magazine_capacity(m->log);
        if (wrong == NULL)
            wrong = objects_check(page_heap, class, magazine_begin(m), magazine_capacity(m->log));
    }
    uint32_t empties = 0;
    bool all_empty = true;
    for (struct magazine *m = depot->empty; m != NULL && empties <= depot->empties; m = m->link) {
        all_empty &= m->count == 0 && m->log == size_classes[class].magazine_log;
        empties++;
    }
    bool adds_up = count == depot->count && objects == depot->objects && depot->stock <= count &&
                   all_empty && empties == depot->empties && count + empties <= depot->high;
    if (wrong == NULL && !adds_up)
        wrong = "a depot's count of magazines is wrong";
    lock_release(&depot->lock);
    return wrong;
}
