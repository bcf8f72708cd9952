/*
 * empty_calls.h - two functions in a shared library that do nothing: what a call there and back
 * costs, to be taken off the cost of malloc and free.
 */
#ifndef SNUG_BENCH_EMPTY_CALLS_H
#define SNUG_BENCH_EMPTY_CALLS_H

#include <stddef.h>

void *empty_malloc(size_t size);
void empty_free(void *block);

#endif
