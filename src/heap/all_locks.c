/*
 * Every lock of every heap. See all_locks.h.
 */
#include "heap/all_locks.h"

#include "heap/harden.h"
#include "heap/placed.h"
#include "meta/meta.h"
#include "profile/watch.h"
#include "provider/provider_lock.h"

/* Layout: the locks of a stage guard the lists of those of the next. */
enum { STAGES = 4 };

static void each_of_heaps(void (*act)(struct lock *lock))
{
    static const enum lock_rank ranks[] = {RANK_DEPOT, RANK_BIN, RANK_CELLS};
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        arenas_each_lock_of(&heap_default.arenas, ranks[i], act);
        heaps_each_lock_of(ranks[i], act);
    }
    for (enum lock_rank rank = RANK_HARD_WAIT; rank <= RANK_HARD_ZONE; rank++) {
        heap_harden_each_lock(&heap_default, rank, act);
        heaps_each_lock_of(rank, act);
    }
    act(&heap_default.page_heap.purge_lock);
    heaps_each_lock_of(RANK_PURGE, act);
    act(&heap_default.page_heap.lock);
    heaps_each_lock_of(RANK_PAGE_HEAP, act);
}

/* In the order of the ranks, within a stage and from stage to stage. */
static void each_of_stage(unsigned stage, void (*act)(struct lock *lock))
{
    switch (stage) {
    case 0:
        act(heap_init_lock());
        heaps_each_lock_of(RANK_HEAPS, act);
        break;
    case 1:
        act(&heap_default.arenas.lock);
        heaps_each_lock_of(RANK_ARENAS, act);
        break;
    case 2:
        each_of_heaps(act);
        act(provider_locks_lock());
        break;
    default:
        nearby_each_lock(&heap_default.page_heap, act);
        provider_locks_each(act);
        act(&profile.lock);
        act(&guard.lock);
        heaps_each_lock_of(RANK_META, act);
        act(&meta_system.lock);
        break;
    }
}

void all_locks_take(void)
{
    lock_rank_allow_many(true);
    for (unsigned stage = 0; stage < STAGES; stage++) {
        each_of_stage(stage, lock_acquire);
        if (stage == 0) /* which locks there are to take */
            placed_set_forking(true);
    }
    lock_fork_begin();
}

void all_locks_release(void (*release)(struct lock *lock))
{
    lock_fork_end();
    for (unsigned stage = STAGES; stage-- > 0;) {
        if (stage == 0) /* before another thread forks */
            placed_set_forking(false);
        each_of_stage(stage, release);
    }
    lock_rank_allow_many(false);
}

/* ---- Trying ---- */

static struct lock *missed; /* the first that was not free; NULL: all were */
static bool past_missed;

static void try_one(struct lock *lock)
{
    if (missed == NULL && !lock_try(lock))
        missed = lock;
}

static void undo_one(struct lock *lock)
{
    past_missed = past_missed || lock == missed;
    if (!past_missed)
        lock_release(lock);
}

bool all_locks_try(void)
{
    unsigned stage = 0;
    missed = NULL;
    past_missed = false;
    lock_rank_allow_many(true);
    for (; stage < STAGES && missed == NULL; stage++)
        each_of_stage(stage, try_one);
    if (missed == NULL) {
        lock_fork_begin();
        return true;
    }
    each_of_stage(--stage, undo_one);
    while (stage-- > 0)
        each_of_stage(stage, lock_release);
    lock_rank_allow_many(false);
    return false;
}
