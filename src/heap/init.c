/*
 * How malloc's heap begins.
 *
 * The heap is made by whichever slow path comes first: that may be before libc and the library's
 * own constructor are ready, from the loader or from another library's constructor, and in a
 * program that takes no memory it is never. What a heap needs of libc is registered when both are
 * there, the heap and libc (start.c).
 */
#include "hardened/canary.h"
#include "heap/harden.h"
#include "heap/source.h"
#include "magazine/cache.h"
#include "options/options.h"
#include "platform/clock.h"
#include "platform/thread.h"
#include "provider/limit.h"
#include "stats/event.h"
#include "stats/stats.h"

/* Both begin with a page, so that what every program has of them is in as few as can be. */
BULKY _Alignas(PAGE_BYTES) struct heap heap_default;

BULKY static _Alignas(PAGE_BYTES) struct arena first_arena;
static struct lock init_lock = LOCK_INIT(RANK_INIT);
bool heap_made; /* see heap_is_made */
static bool options_done;
static void (*when_made)(void); /* guarded by init_lock */

/* Where the environment may be that of somebody with fewer rights nothing in it counts, and nothing
 * is said about it: files would be opened, and lines be written, with rights that he does not have.
 * The variables are removed as well, as libc does with its own: if the process becomes another user
 * for good, a program that it starts cannot tell any more whose the environment was. */
AT_START bool heap_read_options(char **environment)
{
    if (options_done || environment == NULL)
        return false;
    options_done = true;
    if (!options_are_given((const char *const *)environment))
        return false;
    if (os_is_privileged())
        os_environment_remove(environment, "SNUG_");
    else
        options_read((const char *const *)environment, 2);
    return true;
}

static void make(void)
{
    thread_self_begin(); /* before anything else may look at it */
    tally_begin();       /* mostly the first thread, which may never have a cache */
    heap_read_options(os_environment());
    size_classes_init();
    heap_serve(HEAP_FAST);
    page_map_set_key(os_random());
    limit_begin();
    page_heap_init(&heap_default.page_heap, heap_source());
    page_heap_prepare(&heap_default.page_heap); /* and with it the home of the page map */
    unsigned arenas = options.arenas != 0 ? (unsigned)options.arenas : os_cpu_count();
    nearby_begin(&heap_default.page_heap, os_cpu_count());
    arenas_init(&heap_default.arenas, &heap_default.page_heap, &first_arena, arenas);
    heap_default.arenas.held_most = limit_bytes() / ONE_OF_MANY; /* as of a heap with a quota */
    heap_default.arenas.homes = true;
    /* What complete checks are for would be missed in a magazine, whoever has it. */
    heap_default.arenas.shares =
        options.thread_cache != 0 && options.processor_cache != 0 && options.check != CHECK_FULL;
    if (options.preset == PRESET_HARDENED && heap_harden(&heap_default))
        heap_serve(HEAP_FAST);                                       /* where sizes go differs */
    __atomic_fetch_sub(&events.wanted.ticking, 1, __ATOMIC_RELAXED); /* see heap/tick.c */
    /* release: who sees the heap ready sees it whole */
    __atomic_store_n(&heap_made, true, __ATOMIC_RELEASE);
}

void heap_init(void)
{
    if (heap_is_made())
        return;
    os_clock_begin();
    lock_acquire(&init_lock);
    bool first = !heap_made;
    if (first)
        make();
    void (*act)(void) = when_made;
    lock_release(&init_lock);
    if (first && act != NULL)
        act();
}

AT_START void heap_when_made(void (*act)(void))
{
    lock_acquire(&init_lock);
    when_made = act;
    bool made = heap_made;
    lock_release(&init_lock);
    if (made)
        act();
}

void heap_serve(enum heap_way way)
{
    bool hardened = heap_default.hardened != NULL;
    bool fast = way == HEAP_FAST && !hardened, counted = way == HEAP_COUNTED && !hardened;
    /* relaxed: a thread that sees it late goes the other way for a moment, which is right too */
    __atomic_store_n(&page_map.small_sizes, fast ? SMALL_MOST + 1 : 0, __ATOMIC_RELAXED);
    __atomic_store_n(&page_map.form_sizes, fast && !page_map.forms_replaced ? SMALL_MOST + 1 : 0,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&page_map.cell_sizes, fast ? CELL_MOST - SMALL_MOST : 0, __ATOMIC_RELAXED);
    bool hard_fast = way == HEAP_FAST && hardened;
    __atomic_store_n(&hard_short_sizes, hard_fast ? OBJECT_LONG - 1 : 0, __ATOMIC_RELAXED);
    __atomic_store_n(&hard_fast_sizes, hard_fast ? HARD_FAST_MOST - 1 : 0, __ATOMIC_RELAXED);
    __atomic_store_n(&page_map.counted_sizes, counted ? CELL_MOST + 1 : 0, __ATOMIC_RELAXED);
}

struct lock *heap_init_lock(void)
{
    return &init_lock;
}
