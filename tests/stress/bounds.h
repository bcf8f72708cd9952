/*
 * Memory that may not grow: a mark is set once the test has warmed up, and from then on the heap
 * and the process are compared with it.
 */
#ifndef SNUG_TESTS_BOUNDS_H
#define SNUG_TESTS_BOUNDS_H

#include <stddef.h>

/* What is looked at, in bytes. */
struct bounds {
    size_t segments; /* of the heap, huge blocks included */
    size_t meta;     /* in use for the allocator itself */
    size_t resident; /* of the process; 0 where a sanitizer makes it useless */
};

struct bounds bounds_now(void);

/* Keeps the largest of each. */
void bounds_raise(struct bounds *most, struct bounds now);

/* No more than `mark` and `slack` bytes of each (a quarter of it of metadata); `when` is for the
 * message. */
void expect_within(struct bounds now, struct bounds mark, size_t slack, const char *when);

/* Prints a line with both. */
void bounds_print(const char *test, struct bounds mark, struct bounds most);

#endif
