/*
 * empty_calls.c - see empty_calls.h.
 */
#include "empty_calls.h"

void *empty_malloc(size_t size)
{
    return (void *)size;
}

void empty_free(void *block)
{
    (void)block;
}
