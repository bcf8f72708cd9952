/*
 * next.h - the malloc that the recorder stands in front of: that of the next library in the order
 * of symbol look-up, libc's if nothing else is preloaded.
 *
 * dlsym, which finds it, may allocate itself; it is served from a small static buffer. Such blocks
 * are never given back.
 */
#ifndef SNUG_TRACE_NEXT_H
#define SNUG_TRACE_NEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct next {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
};

extern struct next next;

/* Not 0 while the process has one thread, where libc says it: glibc from 2.32 on. */
extern const char *next_single_threaded;

/* Fills `next`, once; false while it is at it, which is when dlsym allocates. The first allocation
 * of a program comes from the dynamic linker or libc, before there is a second thread. */
bool next_find(void);

static inline bool next_ready(void)
{
    return __builtin_expect(next.malloc != NULL, true) || next_find();
}

enum { BOOTSTRAP_SIZE = 32 * 1024 };

extern char bootstrap[];

/* Zeroed memory for dlsym; NULL when the buffer is used up. */
void *bootstrap_take(size_t size, size_t alignment);
static inline bool bootstrap_has(const void *pointer)
{
    return (uintptr_t)pointer - (uintptr_t)bootstrap < BOOTSTRAP_SIZE;
}

/* The bytes of a block of the buffer, for realloc. */
size_t bootstrap_size(const void *pointer);

#endif
