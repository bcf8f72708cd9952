/*
 * Who made a hardened block, and who may free it. See meta/maker.h.
 *
 * The idea: operator new takes a block as malloc does, and notes itself afterwards, while nobody
 * else has the block. So the way of malloc knows nothing of it.
 *
 * A program that is right may free by delete what malloc made, and the other way round: a library
 * that has the C++ runtime in it calls the runtime's own operator new, which calls malloc, and its
 * users call this library's delete. So what malloc made, or what free frees, is judged only if that
 * is asked for (SNUG_CHECK_DELETE=all). The runtime's own new[] calls new, and its delete[] calls
 * delete, which may be this library's, if a library has only some of the runtime in it. So new and
 * new[] are told apart only in processes that have no such library, which is looked for before the
 * first report of that kind.
 */
#ifndef SNUG_HARDENED_HARD_MAKER_H
#define SNUG_HARDENED_HARD_MAKER_H

#include "meta/maker.h"

/* Whether malloc and free are judged as well. Written before the program's own code runs. */
extern INTERNAL bool hard_makers_all;

/* Whether new and new[] cannot be told apart. Goes from false to true. */
extern INTERNAL bool hard_arrays_alike;

/* Whether one is new, the other new[]. */
static inline bool hard_makers_are_arrays(enum maker made, enum maker said)
{
    return (made == MADE_BY_NEW && said == MADE_BY_NEW_ARRAY) ||
           (made == MADE_BY_NEW_ARRAY && said == MADE_BY_NEW);
}

/* Whether what `made` a block lets it be freed as what the program `said`. */
static inline bool hard_maker_fits(enum maker made, enum maker said)
{
    bool of_c = made == MADE_BY_MALLOC || said == MADE_BY_MALLOC;
    /* relaxed: who sees it late looks for itself */
    return made == said || (of_c && !hard_makers_all) ||
           (hard_makers_are_arrays(made, said) &&
            __atomic_load_n(&hard_arrays_alike, __ATOMIC_RELAXED));
}

#endif
