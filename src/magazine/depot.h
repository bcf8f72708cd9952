/*
 * Depots: full magazines of one class that wait in an arena for any thread.
 *
 * A thread that takes a full magazine leaves an empty one, and the next that brings a full one
 * takes it along. So neither needs metadata, which has one lock for all and would hand a magazine
 * from one processor to another. There are never more than were full at once since the last tick,
 * so they make nothing larger than it was; at each tick they go.
 *
 * What waits here is handed out as it came. So what lies in no order should not come here: a
 * program would build its next tree of nodes from all over the heap.
 *
 * Handing one over or taking one is O(1). What a depot may hold is the caller's matter; all depots
 * of an arena add what they hold to one sum. What nobody took through an epoch (retention.h) goes
 * back to the slabs.
 *
 * Thread-safe; takes RANK_DEPOT.
 */
#ifndef SNUG_MAGAZINE_DEPOT_H
#define SNUG_MAGAZINE_DEPOT_H

#include "base/peek.h"
#include "magazine/magazine.h"
#include "platform/lock.h"
#include "retention/retention.h"

struct page_heap;

/* Magazines (table): the most that wait in a depot, so that these and as many empty ones are
 * counted in 16 bits. */
enum { DEPOT_MOST = UINT16_MAX / 2 };

struct depot {
    struct lock lock;
    uint32_t objects; /* in all magazines of the list */
    uint16_t count;   /* of these magazines; all are full */
    uint16_t stock;   /* of `count`: those of new objects, which are for the arena's own threads */
    uint16_t empties; /* in the list of empty magazines; empties + count <= high */
    uint16_t high;    /* the most of both at once since the last tick */
    uint16_t object_bytes; /* of one */
    bool two_way;          /* its own arena has taken from it since the last tick */
    struct magazine *full;
    struct magazine *empty;     /* these wait for threads that bring full ones */
    size_t *waiting;            /* bytes in all depots of the arena */
    struct retention retention; /* in objects; all that wait are kept through an epoch */
};

void depot_init(struct depot *depot, size_t object_bytes, size_t *waiting);

/* Takes the magazine that was put last; NULL if there is none. The depot may take *empty for it, a
 * magazine of the same size without objects; then it writes NULL there. */
struct magazine *depot_get(struct depot *depot, struct magazine **empty);

/* The same for a thread of another arena, which leaves the stock alone. */
struct magazine *depot_get_shared(struct depot *depot, struct magazine **empty);

/* Puts a full magazine into the depot, unless `most` or more wait there. *empty becomes a magazine
 * of the same size without objects, or NULL if the depot has none. */
bool depot_put(struct depot *depot, struct magazine *magazine, size_t most,
               struct magazine **empty);

/* The same with a magazine of new objects, for which the caller gets no empty one. */
bool depot_put_stock(struct depot *depot, struct magazine *magazine, size_t most);

/* An empty magazine of the largest size of the class, or NULL if none waits. */
struct magazine *depot_get_empty(struct depot *depot);

/* Gives magazines back to the slabs, as many as hold so many objects. */
void depot_flush(struct depot *depot, size_t objects);

/* Gives back what nobody took through an epoch that is over now. */
void depot_tick(struct depot *depot, uint64_t now);

/* Forgets all magazines; the objects in them are gone already. */
void depot_clear(struct depot *depot);

/* `page_heap` and `class` are those of its objects. */
const char *depot_check(struct depot *depot, const struct page_heap *page_heap, size_t class);

/* How many magazines wait, read without the lock: a hint. */
static inline size_t depot_magazines(const struct depot *depot)
{
    return __atomic_load_n(&depot->count, __ATOMIC_RELAXED);
}

static inline bool depot_is_empty(const struct depot *depot)
{
    return depot_magazines(depot) == 0;
}

/* Whether what comes to it is taken by its own arena again, read without the lock: a hint. */
static inline bool depot_is_two_way(const struct depot *depot)
{
    return __atomic_load_n(&depot->two_way, __ATOMIC_RELAXED);
}

#endif
