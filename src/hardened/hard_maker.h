/*
 * Who made a hardened block, and who may free it. See meta/maker.h.
 *
 * The idea: operator new takes a block as malloc does, and notes itself afterwards, while nobody
 * else has the block. So the way of malloc knows nothing of it.
 *
 * A program that is right may free by delete what malloc made, and the other way round: a library
 * that has the C++ runtime in it calls the runtime's own operator new, which calls malloc, and its
 * users call this library's delete. Forms of new are never mixed like that. So what malloc made, or
 * what free frees, is judged only if that is asked for (SNUG_CHECK_DELETE=all).
 */
#ifndef SNUG_HARDENED_HARD_MAKER_H
#define SNUG_HARDENED_HARD_MAKER_H

#include "meta/maker.h"

/* Whether malloc and free are judged as well. Written before the program's own code runs. */
extern INTERNAL bool hard_makers_all;

/* Whether what `made` a block lets it be freed as what the program `said`. */
static inline bool hard_maker_fits(enum maker made, enum maker said)
{
    bool of_c = made == MADE_BY_MALLOC || said == MADE_BY_MALLOC;
    return made == said || (of_c && !hard_makers_all);
}

#endif
