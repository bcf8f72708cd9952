/*
 * Taking a profile: on and off, at any time, for all threads at once. See profile/profile.h for
 * what it is, and alloc.c for where samples are taken.
 */
#ifndef SNUG_HEAP_SAMPLED_H
#define SNUG_HEAP_SAMPLED_H

#include "stats/event.h"

/* False: there is no memory for it. No lock may be held, here and below. */
bool sampled_begin(void);
void sampled_end(void);

/* Guarded blocks, from here on; none if there is no memory for them. Called once. */
void sampled_begin_guards(void);

COLD void sampled_obey_request(void);

/* Does what was asked for from outside. */
static inline void sampled_obey(void)
{
    if (UNLIKELY(__atomic_load_n(&events.wanted.profile, __ATOMIC_RELAXED) != 0))
        sampled_obey_request();
}

#endif
