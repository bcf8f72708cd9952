/*
 * Work for another process. See outside_call.h.
 */
#include "heap/outside_call.h"

#include <errno.h>

#include "hardened/hardened.h"
#include "heap/all_locks.h"
#include "heap/user_heaps.h"
#include "magazine/shared.h"
#include "platform/check.h"
#include "stats/event.h"

BULKY struct outside_area outside_area;
uint64_t outside_self;

static void trim(const struct outside_call *call)
{
    for (uint64_t i = 0; i < call->cache_count; i++)
        if (call->caches[i]->arenas == &heap_default.arenas)
            cache_flush(call->caches[i]);
    shared_do_all(&heap_default.arenas, SHARED_FLUSH);
    arenas_end_orphans_once(&heap_default.arenas);
    arenas_trim(&heap_default.arenas);
    if (heap_default.hardened != NULL)
        hard_trim(heap_default.hardened);
    page_heap_purge(&heap_default.page_heap, 0);
    __atomic_fetch_add(&events.trims, 1, __ATOMIC_RELEASE);
}

static const char *check(const struct outside_call *call)
{
    check_begin();
    for (uint64_t i = 0; i < call->cache_count; i++) {
        const char *wrong = cache_check(call->caches[i]);
        if (wrong != NULL)
            return wrong;
    }
    return heap_check_shared();
}

static void check_into(struct outside_call *call)
{
    call->wrong = check(call);
    call->place = call->wrong == NULL ? 0 : check_place();
}

static bool run(struct outside_call *call)
{
    if (!heap_is_made())
        return true; /* there is nothing yet */
    /* A thread that forks has all locks itself, in the middle of what it does with them. */
    if (lock_all_held() || !all_locks_try())
        return false;
    struct misuse_waits waits; /* what a trim finds is said when no lock is held */
    misuse_hold(&waits);
    if (call->what == OUTSIDE_TRIM)
        trim(call);
    else
        check_into(call);
    all_locks_release(lock_release);
    misuse_let_go(&waits);
    return true;
}

void outside_call_run(struct borrow *borrow)
{
    int error = errno;
    struct outside_call *call = CONTAINER_OF(borrow, struct outside_call, borrow);
    call->outcome = run(call) ? OUTSIDE_MADE : OUTSIDE_BUSY;
    errno = error;
}

AT_START void outside_call_init(void)
{
    outside_self = (uintptr_t)&thread_self - borrow_thread_pointer();
}
