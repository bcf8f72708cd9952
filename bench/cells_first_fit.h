/*
 * cells_first_fit.h - boundary tags with a walk over the free cells: what bins are compared with.
 */
#ifndef SNUG_BENCH_CELLS_FIRST_FIT_H
#define SNUG_BENCH_CELLS_FIRST_FIT_H

#include "cells.h"

/* From the first free cell on, each time. */
extern const struct method first_fit;

/* From where the last walk ended, and around. */
extern const struct method next_fit;

#endif
