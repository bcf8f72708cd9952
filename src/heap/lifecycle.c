/*
 * How a heap and its threads begin and end.
 *
 * The first malloc may come before libc and the library's own constructor are ready: from the
 * loader, or from another library's constructor. So the heap is made by whichever slow path comes
 * first, and what needs libc (thread exit, fork) is registered by the constructor later. Until a
 * thread's end can be noticed it gets no cache; all else works.
 *
 * A thread's end: libc calls the destructor of a key, perhaps before other destructors that
 * allocate and free. From then on the thread works without a cache, straight on the slabs, however
 * long it goes on. Nothing is made twice, nothing is left behind.
 */
#include <unistd.h>

#include "heap/heaps.h"
#include "heap/purge_thread.h"
#include "heap/source.h"
#include "options/options.h"
#include "platform/thread.h"

/* A thread gets its cache at this many slow calls. A cache costs about a kilobyte, what it saves
 * per call is about 50 ns: those who call less often are better off without. */
enum { CALLS_BEFORE_CACHE = 24 };

struct heap heap_default;

static struct arena first_arena;
static struct lock init_lock = LOCK_INIT(RANK_INIT);
static bool init_done;
static bool options_done;

/* Set by hand where environ is not there yet: see heap_start.
 *
 * Where the environment may be that of somebody with fewer rights nothing in it counts, and nothing
 * is said about it: files would be opened, and lines be written, with rights that he does not have.
 * The variables are removed as well, as libc does with its own: if the process becomes another user
 * for good, a program that it starts cannot tell any more whose the environment was. */
static void read_options(char **environment)
{
    if (options_done || environment == NULL)
        return;
    if (os_is_privileged())
        os_environment_remove(environment, "SNUG_");
    else
        options_read((const char *const *)environment, 2);
    options_done = true;
}

void heap_init(void)
{
    /* acquire: pairs with the release below */
    if (__atomic_load_n(&init_done, __ATOMIC_ACQUIRE))
        return;
    lock_take(&init_lock);
    if (!init_done) {
        read_options(os_environment());
        size_classes_init();
        /* Bits 62 and 63 make the key of any address no address, no small number and no text. */
        page_map.key = (os_random() & ~((uint64_t)3 << 62)) | (uint64_t)1 << 62;
        spans_init(&heap_default.spans, heap_source());
        spans_prepare(&heap_default.spans); /* and with it the home of the page map */
        unsigned arenas = options.arenas != 0 ? (unsigned)options.arenas : os_cpu_count();
        arenas_init(&heap_default.arenas, &heap_default.spans, &first_arena, arenas);
        /* release: who sees the heap ready sees it whole */
        __atomic_store_n(&init_done, true, __ATOMIC_RELEASE);
    }
    lock_release(&init_lock);
}

static COLD struct cache *thread_begin(void)
{
    /* Arming may allocate, in this thread: that call finds it ended, and does without. */
    thread_self.ended = true;
    struct cache *cache = cache_new(&heap_default.arenas);
    if (cache != NULL && !os_thread_exit_arm(cache)) {
        cache_free(cache);
        cache = NULL;
    }
    thread_self.ended = false;
    thread_self.slow_calls = 0;
    if (cache != NULL)
        thread_self.cache = cache;
    return thread_self.cache;
}

bool heap_thread_may_cache(void)
{
    return !thread_self.ended && options.thread_cache != 0 && options.check != CHECK_FULL;
}

struct cache *heap_thread_cache(void)
{
    struct cache *cache = thread_self.cache;
    if (LIKELY(cache_exists(cache)))
        return cache;
    /* acquire: pairs with heap_init */
    if (UNLIKELY(!__atomic_load_n(&init_done, __ATOMIC_ACQUIRE)))
        heap_init();
    if (!heap_thread_may_cache())
        return cache;
    if (++thread_self.slow_calls < CALLS_BEFORE_CACHE)
        return cache;
    return thread_begin();
}

static void thread_end(void *argument)
{
    (void)argument; /* some word that is not NULL, or this would not be called */
    struct cache *cache = thread_self.cache;
    thread_self.cache = (struct cache *)&cache_none;
    thread_self.ended = true;
    heaps_thread_end();
    if (cache_exists(cache))
        cache_free(cache);
}

void heap_start(char **environment)
{
    heap_init();
    read_options(environment);
    purge_thread_init();
    os_fork_init(heap_fork_before, heap_fork_in_parent, heap_fork_in_child);
    os_fork_libc_first();
    os_thread_exit_init(thread_end);
}

void heap_exit(void)
{
    /* Whatever is wrong in these magazines, and in those that were handed over, is said now: there
     * is no later. */
    struct cache *cache = thread_self.cache;
    if (cache_exists(cache))
        cache_flush(cache);
    for (size_t class = 1; class < CLASS_COUNT; class++)
        arenas_empty_depots(&heap_default.arenas, class);
}

struct lock *heap_init_lock(void)
{
    return &init_lock;
}
