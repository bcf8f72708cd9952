/*
 * Making arenas and their classes ready, and homes. See arena_place.h.
 */
#include "magazine/arena_place.h"

#include <string.h>

#include "meta/meta.h"

struct arena *arena_new(struct arenas *arenas, unsigned index)
{
    struct arena *fresh = meta_map(sizeof(*fresh));
    struct arena *expected = NULL;
    if (fresh == NULL)
        return arena_at(arenas, 0);
    unsigned end = __atomic_load_n(&arenas->end, __ATOMIC_RELAXED);
    /* relaxed: who looks there meanwhile finds nothing */
    while (end <= index && !__atomic_compare_exchange_n(&arenas->end, &end, index + 1, false,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    /* release: who finds the arena finds it zero. The loser of a race leaves its pages mapped and
     * untouched. */
    if (__atomic_compare_exchange_n(&arenas->list[index], &expected, fresh, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return fresh;
    return expected;
}

void arena_class_make(struct arenas *arenas, struct arena *arena, size_t class)
{
    struct arena_class *at = &arena->classes[class];
    lock_acquire(&arenas->lock);
    if (at->bin.page_heap == NULL) {
        depot_init(&at->depot, class_bytes(class), &arena->waiting);
        bin_init(&at->bin, arenas->page_heap, class);
    }
    lock_release(&arenas->lock);
}

/* ---- Homes ---- */

__thread uint32_t arena_home __attribute__((tls_model("initial-exec")));

/* How many threads have theirs there, of all heaps. Atomic and relaxed: a hint. */
static uint32_t homes[ARENAS_MOST];

void arena_home_choose(unsigned processors)
{
    if (arena_home != 0)
        return;
    unsigned end = (unsigned)size_min(THREADS_OF_ARENA * processors, ARENAS_MOST), best = 0;
    for (unsigned i = 1; i < end; i++)
        if (__atomic_load_n(&homes[i], __ATOMIC_RELAXED) <
            __atomic_load_n(&homes[best], __ATOMIC_RELAXED))
            best = i;
    __atomic_fetch_add(&homes[best], 1, __ATOMIC_RELAXED);
    arena_home = best + 1;
}

void arena_home_leave(void)
{
    if (arena_home != 0)
        __atomic_fetch_sub(&homes[arena_home - 1], 1, __ATOMIC_RELAXED);
    arena_home = 0;
}

void arena_home_keep_own(void)
{
    memset(homes, 0, sizeof(homes));
    if (arena_home != 0)
        homes[arena_home - 1] = 1;
}

struct arena *arena_for_many(struct arenas *arenas, size_t class)
{
    bool home = arenas->homes && arena_home != 0 && class_shares_lines(class);
    return home ? arena_made(arenas, arena_home - 1) : arena_here(arenas);
}
