/*
 * A directory for the files of a test, new for each, which the test has to leave empty.
 */
#ifndef SNUG_TESTS_UNIT_SCRATCH_H
#define SNUG_TESTS_UNIT_SCRATCH_H

#include "support.h"

/* Its path. */
extern char scratch[64];

/* Setup and teardown: the directory and the options. The latter fails if a file is left. */
int scratch_begin(void **state);
int scratch_end(void **state);

/* How many files are in it. */
size_t scratch_count(void);

#endif
