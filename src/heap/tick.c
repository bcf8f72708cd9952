/*
 * The tick of a heap. See tick.h.
 */
#include "heap/tick.h"

#include <errno.h>

#include "heap/sampled.h"
#include "magazine/shared.h"

void (*heap_taking_handler)(void);

void heap_tick(struct heap *heap)
{
    int error = errno; /* the program's; see event.h, and a provider of its own may write it */
    if (events_requested()) {
        struct misuse_waits waits;
        misuse_hold(&waits); /* a handler that jumps out would leave requests under way */
        sampled_obey();
        events_run();
        misuse_let_go(&waits);
    }
    /* Several threads may come at the same time: page_heap_tick lets one of them go on. */
    if (page_heap_tick_is_due(&heap->page_heap) && page_heap_tick(&heap->page_heap)) {
        arenas_tick(&heap->arenas);
        shared_do_all(&heap->arenas, SHARED_TICK);
    }
    errno = error;
}

/* A poll that finds something to do: a tick, if it `looks`, or what is not yet begun. */
static NOINLINE struct polled polled_now(size_t bytes, struct heap *heap, bool looks)
{
    if (UNLIKELY(!heap_is_made()))
        heap_init();
    if (looks)
        heap_tick(heap);
    if (UNLIKELY(heap_taking_handler != NULL) && bytes != 0)
        heap_taking_handler();
    return (struct polled){bytes, heap};
}

/* Mostly no more is wanted than a tick some time. */
struct polled heap_polled(size_t bytes, struct heap *heap)
{
    bool looks = events_requested() || ++thread_self.polls % POLLS_PER_LOOK == 0;
    return LIKELY(!looks && heap_taking_handler == NULL && heap_is_made())
               ? (struct polled){bytes, heap}
               : polled_now(bytes, heap, looks);
}
