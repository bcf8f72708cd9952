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
#include "heap/all_locks.h"
#include "heap/harden.h"
#include "heap/placed.h"
#include "heap/purge_thread.h"
#include "heap/user_heaps.h"
#include "magazine/shared.h"
#include "profile/guard.h"
#include "provider/provider_file.h"
#include "stats/event.h"
#include "stats/stats.h"

/* Whether the forking thread has taken the locks, by which this is guarded. The only thread of a
 * process does not take them: nobody else holds one, but if it forks in a signal handler it may
 * itself hold those that the interrupted call goes on with, in the child as well. */
static bool locks_taken;

void heap_fork_before(void)
{
    if (!lock_is_alone()) {
        all_locks_take();
        locks_taken = true;
    } else {
        placed_set_forking(true);
    }
    provider_files_fork_before();
}

static void fork_after(void (*release)(struct lock *lock))
{
    bool taken = locks_taken;
    locks_taken = false;
    if (taken)
        all_locks_release(release);
    else
        placed_set_forking(false);
}

void heap_fork_in_parent(void)
{
    provider_files_fork_in_parent();
    fork_after(lock_release);
}

void heap_fork_in_child(void)
{
    provider_files_fork_in_child(); /* before anything of the heap is written to */
    heaps_fork_in_child();
    purge_thread_forget();
    events_fork_in_child();
    guard_fork_in_child();
    heaps_fork_dice();
    if (!locks_taken) {
        fork_after(lock_reset);
        return;
    }
    /* The caches of other threads are nobody's now. This comes before the locks are released: no
     * other thread is there yet. */
    caches_orphan();
    arenas_orphan(&heap_default.arenas, arenas_end_orphans);
    shared_orphan(&heap_default.arenas, arenas_end_orphans);
    heaps_orphan();
    heap_harden_forked(&heap_default);
    heap_keep_caches();
    tally_keep_own();
    arena_home_keep_own();
    fork_after(lock_reset);
    lock_rank_forget();
}
