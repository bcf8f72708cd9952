/*
 * What happens once libc is up, and when the process ends. Until a thread's end can be noticed it
 * gets no cache; all else works before.
 *
 * The idea: a program that takes no memory has no heap, and nothing of libc is called for it. With
 * the first block comes what a heap needs. A program that was given options gets its heap at once:
 * memory may be asked for ahead, and reports are about something.
 */
#include "heap/harden.h"
#include "heap/outside_call.h"
#include "heap/purge_thread.h"
#include "heap/sampled.h"
#include "heap/thread.h"
#include "magazine/shared.h"
#include "options/options.h"
#include "platform/clock.h"
#include "platform/thread.h"
#include "stats/event.h"

/* The handlers of fork must be the first that a process registers (fork.c). A call that registers
 * others makes the heap before: api/atfork.c. */
static void begin(void)
{
    /* relaxed: nothing else is told by it */
    __atomic_store_n(&events.started, os_clock(), __ATOMIC_RELAXED);
    purge_thread_init();
    outside_call_init();
    os_fork_init(heap_fork_before, heap_fork_in_parent, heap_fork_in_child);
    os_fork_libc_first();
    os_thread_exit_init(heap_thread_end);
    if (options.guard != 0)
        sampled_begin_guards();
    if (options.profile != 0)
        sampled_begin();
}

AT_START void heap_start(char **environment)
{
    if (heap_read_options(environment))
        heap_init();
    heap_when_made(begin);
}

AT_START void heap_exit(void)
{
    if (!heap_is_made())
        return;
    /* Objects in these magazines, and in depots, are checked as they go back to their slabs. A
     * wrong one has to be reported now, as the process ends. */
    heap_harden_exit();
    struct cache *cache = thread_self.cache;
    if (cache_exists(cache)) {
        cache_inspect(cache);
        cache_flush(cache);
    }
    shared_do_all(&heap_default.arenas, SHARED_INSPECT);
    for (size_t class = 1; class < CLASS_COUNT; class++)
        arenas_empty_depots(&heap_default.arenas, class);
    arenas_inspect(&heap_default.arenas);
    struct misuse misuse = large_inspect(&heap_default.page_heap);
    misuse_report("exit", &misuse);
}
