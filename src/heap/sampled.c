/*
 * Taking a profile. See sampled.h.
 *
 * The heap of samples is made with the first profile, and stays: blocks of the program are in it.
 * No thread has a cache of it, so that every block in it is freed the long way, where it is noted.
 */
#include "heap/sampled.h"

#include "heap/place.h"
#include "heap/user_heaps.h"
#include "options/options.h"
#include "platform/thread.h"

static bool make_heap(void)
{
    struct heap_settings settings = {.name = "profile"};
    struct heap *made = heap_create(&settings), *none = NULL;
    if (made == NULL)
        return false;
    made->record->caching = false;
    /* release: who sees it sees it made */
    if (!__atomic_compare_exchange_n(&heap_samples, &none, made, false, __ATOMIC_RELEASE,
                                     __ATOMIC_RELAXED))
        heap_destroy(made); /* another thread was first */
    return true;
}

static void serve(void)
{
    heap_serve(watch_is_on() ? HEAP_COUNTED : HEAP_FAST);
}

bool sampled_begin(void)
{
    if (__atomic_load_n(&heap_samples, __ATOMIC_ACQUIRE) == NULL && !make_heap()) {
        serve(); /* somebody outside may have stopped it */
        return false;
    }
    profile_prepare(options.profile_bytes, os_random());
    profile_begin();
    misuse_set_source(profile_tell);
    heap_serve(HEAP_COUNTED);
    return true;
}

void sampled_end(void)
{
    profile_end();
    serve();
}

void sampled_begin_guards(void)
{
    profile_prepare(options.profile_bytes, os_random());
    if (guard_begin(options.guard_every, options.guard_blocks, os_random()))
        heap_serve(HEAP_COUNTED);
}

void sampled_obey_request(void)
{
    /* relaxed: nothing is told by it but what it says */
    switch (__atomic_exchange_n(&events.wanted.profile, PROFILE_NOTHING, __ATOMIC_RELAXED)) {
    case PROFILE_ON:
        sampled_begin();
        break;
    case PROFILE_OFF:
        sampled_end();
        break;
    default:
        break;
    }
}
