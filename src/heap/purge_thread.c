/*
 * Waiting for memory to become old. See purge_thread.h.
 */
#include "heap/purge_thread.h"

#include <errno.h>

#include "heap/tick.h"
#include "options/options.h"
#include "platform/clock.h"
#include "platform/thread.h"

static uint32_t running;
static uint64_t refused_until; /* by os_clock() */

static bool begin_running(void)
{
    /* relaxed: it guards nothing but the number of threads */
    return __atomic_exchange_n(&running, 1, __ATOMIC_RELAXED) == 0;
}

static uint64_t due_of(const struct page_heap *page_heap)
{
    return __atomic_load_n(&page_heap->tick_due, __ATOMIC_RELAXED);
}

/* Whether something is kept, or will be when what is in use is freed: it is more than a heap keeps
 * in any case. */
static bool is_wanted(const struct page_heap *page_heap)
{
    return due_of(page_heap) != UINT64_MAX ||
           page_heap_in_use_hint(page_heap) > options.dirty >> PAGE_SHIFT;
}

static void *run(void *argument)
{
    struct page_heap *page_heap = argument;
    do {
        while (is_wanted(page_heap)) {
            uint64_t due = due_of(page_heap), now = page_heap->now();
            uint64_t left = due > now ? due - now : 0;
            /* It never sleeps longer than ASK_AGAIN: a tick may be wanted earlier than it
             * seemed. */
            os_sleep(size_min(size_max(left, RETENTION_TICK), ASK_AGAIN));
            heap_tick(&heap_default); /* and what others ask for, in a program that sleeps itself */
        }
        __atomic_store_n(&running, 0, __ATOMIC_RELAXED);
        /* It goes on if something is kept again, and no other was started meanwhile. */
    } while (is_wanted(page_heap) && begin_running());
    return NULL;
}

/* What pthread_create allocates may lead here again: then it finds one running. */
static void start(void)
{
    if (__atomic_load_n(&running, __ATOMIC_RELAXED) != 0 || !is_wanted(&heap_default.page_heap))
        return;
    int error = errno;
    uint64_t now = os_clock();
    if (now < __atomic_load_n(&refused_until, __ATOMIC_RELAXED) || !begin_running())
        return;
    if (!os_thread_start(run, &heap_default.page_heap)) {
        /* A limit or a sandbox may refuse it. The program's own calls do its work meanwhile. */
        __atomic_store_n(&refused_until, now + ASK_AGAIN, __ATOMIC_RELAXED);
        __atomic_store_n(&running, 0, __ATOMIC_RELAXED);
    }
    errno = error;
}

AT_START void purge_thread_init(void)
{
    if (options.purge_thread == 0)
        return;
    heap_taking_handler = start;
    /* All slow paths poll from now on. relaxed: the first ones need not */
    __atomic_fetch_add(&events.wanted.ticking, 1, __ATOMIC_RELAXED);
}

void purge_thread_forget(void)
{
    running = 0;
}
