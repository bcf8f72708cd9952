/*
 * What glibc's malloc.h declares and musl's does not. The library has these functions on every
 * libc, so the tests call them there as well. suite.sh puts this folder before musl's headers.
 */
#ifndef SNUG_TESTS_PORTS_MUSL_MALLOC_H
#define SNUG_TESTS_PORTS_MUSL_MALLOC_H

#include_next <malloc.h>
#include <stdio.h>

struct mallinfo {
    int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct mallinfo2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
enum {
    M_ARENA_MAX = -8,
    M_ARENA_TEST,
    M_PERTURB,
    M_CHECK_ACTION,
    M_MMAP_MAX,
    M_MMAP_THRESHOLD,
    M_TOP_PAD,
    M_TRIM_THRESHOLD,
    M_MXFAST = 1
};

void *pvalloc(size_t size);
int malloc_trim(size_t pad);
void malloc_stats(void);
int malloc_info(int options, FILE *stream);
int mallopt(int parameter, int value);
struct mallinfo mallinfo(void);
struct mallinfo2 mallinfo2(void);

#endif
