/*
 * What src/report/gauges.def promises of the group `memory`: what follows `mapped` adds up to it.
 */
#ifndef SNUG_TESTS_VALUES_SUM_H
#define SNUG_TESTS_VALUES_SUM_H

#include <string.h>

#include "report/values.h"

/* The sum of all parts of what is mapped. */
static inline uint64_t values_sum(const struct values *values)
{
    uint64_t sum = 0;
#define GAUGE(group, name, unit, source, text) \
    if (strcmp(#group, "memory") == 0 && strcmp(#name, "mapped") != 0) \
        sum += values->name;
#include "report/gauges.def"
#undef GAUGE
    return sum;
}

#endif
