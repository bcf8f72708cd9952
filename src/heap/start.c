/*
 * What happens once libc is up, and when the process ends. Until a thread's end can be noticed it
 * gets no cache; all else works before.
 */
#include "heap/purge_thread.h"
#include "heap/thread.h"
#include "platform/thread.h"

void heap_start(char **environment)
{
    heap_init();
    heap_read_options(environment);
    purge_thread_init();
    os_fork_init(heap_fork_before, heap_fork_in_parent, heap_fork_in_child);
    os_fork_libc_first();
    os_thread_exit_init(heap_thread_end);
}

void heap_exit(void)
{
    /* Objects in these magazines, and in depots, are checked as they go back to their slabs. What
     * is wrong with one has to be reported now, as the process ends. */
    struct cache *cache = thread_self.cache;
    if (cache_exists(cache))
        cache_flush(cache);
    for (size_t class = 1; class < CLASS_COUNT; class++)
        arenas_empty_depots(&heap_default.arenas, class);
}
