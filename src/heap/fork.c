/*
 * Fork in a threaded program.
 *
 * The forking thread takes every lock of the heap, in the order of their ranks, so that no other
 * thread is in the middle of anything that others see; the child releases them and goes on. What
 * waits in the caches of threads that the child does not have is taken back when the child would
 * take fresh memory; see magazine/orphans.c.
 *
 * The handlers should be the first that a process registers: then they take the locks after all
 * other libraries' handlers have done their work, and release them before. The library asks the
 * loader to be initialised first for that reason. Handlers that run in between all the same may
 * allocate; see platform/lock.h.
 */
#include "heap/purge_thread.h"
#include "heap/user_heaps.h"
#include "meta/meta.h"
#include "provider/provider_file.h"
#include "stats/event.h"
#include "stats/stats.h"

/* Calls `act` for all locks but those of lists of locks, which are taken first and released last.
 */
static void each_lock(void (*act)(struct lock *lock))
{
    static const enum lock_rank ranks[] = {RANK_DEPOT, RANK_BIN, RANK_CELLS};
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        arenas_each_lock_of(&heap_default.arenas, ranks[i], act);
        heaps_each_lock_of(ranks[i], act);
    }
    act(&heap_default.page_heap.lock);
    heaps_each_lock_of(RANK_PAGE_HEAP, act);
    provider_files_each_lock(act);
    act(&meta_system.lock);
}

/* Whether the forking thread has taken the locks, by which this is guarded. The only thread of a
 * process does not take them: nobody else holds one, but if it forks in a signal handler it may
 * itself hold those that the interrupted call goes on with, in the child as well. */
static bool locks_taken;

static void locks_take(void)
{
    lock_rank_allow_many(true);
    lock_acquire(heap_init_lock());
    heaps_each_lock_of(RANK_HEAPS, lock_acquire);
    lock_acquire(&heap_default.arenas.lock);
    heaps_each_lock_of(RANK_ARENAS, lock_acquire);
    each_lock(lock_acquire);
    lock_fork_begin();
    locks_taken = true;
}

void heap_fork_before(void)
{
    if (!lock_is_alone())
        locks_take();
    provider_files_fork_before();
}

static void fork_after(void (*release)(struct lock *lock))
{
    if (!locks_taken)
        return;
    locks_taken = false;
    lock_fork_end();
    each_lock(release);
    heaps_each_lock_of(RANK_ARENAS, release);
    release(&heap_default.arenas.lock);
    heaps_each_lock_of(RANK_HEAPS, release);
    release(heap_init_lock());
    lock_rank_allow_many(false);
}

void heap_fork_in_parent(void)
{
    provider_files_fork_in_parent();
    fork_after(lock_release);
}

void heap_fork_in_child(void)
{
    provider_files_fork_in_child(); /* before anything of the heap is written to */
    purge_thread_forget();
    events_fork_in_child();
    if (!locks_taken)
        return;
    /* Of the threads' caches only the caller's are left. Before the locks: nobody else is there. */
    caches_orphan();
    arenas_orphan(&heap_default.arenas, arenas_end_orphans);
    heaps_orphan();
    heap_keep_caches();
    tally_keep_own();
    fork_after(lock_reset);
}
