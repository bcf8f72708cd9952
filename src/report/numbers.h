/*
 * All numbers of a report in the order of their tables: the gauges, then the counters. Each format
 * walks this list, so none of them has code for a single number.
 */
#ifndef SNUG_REPORT_NUMBERS_H
#define SNUG_REPORT_NUMBERS_H

#include "report/values.h"

/* The unit of a number. Numbers of the last two only grow. */
enum number_unit { BYTES, COUNT, BYTES_EVER, COUNT_EVER };

struct number {
    const char *group; /* the gauge's, or "events" */
    const char *name, *text;
    uint64_t value; /* UNKNOWN: it is not known */
    enum number_unit unit;
    unsigned place; /* index of the next number */
};

/* Goes on to the next number. A structure that is all zero stands before the first. False: there
 * are no more. */
bool number_next(struct number *number, const struct values *values);

#endif
