/*
 * The numbers of a report in the order of their tables: the gauges, then the counters. Each form of
 * a report walks them, so a number costs a form no code of its own.
 */
#ifndef SNUG_REPORT_NUMBERS_H
#define SNUG_REPORT_NUMBERS_H

#include "report/values.h"

/* What a number counts; the last two only grow. */
enum number_unit { BYTES, COUNT, BYTES_EVER, COUNT_EVER };

struct number {
    const char *group; /* the gauge's, or "events" */
    const char *name, *text;
    uint64_t value; /* UNKNOWN: it is not known */
    enum number_unit unit;
    unsigned place; /* of the number that comes next */
};

/* Goes on to the next number; begins with one that is all zero. False: there are no more. */
bool number_next(struct number *number, const struct values *values);

#endif
