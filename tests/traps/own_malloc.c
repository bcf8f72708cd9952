/*
 * own_malloc.c - trap 7: a library that brings its own allocator, which hands out blocks from a
 * static region, from a mapping and from libc's own malloc. foreign.c frees them through the
 * process's free, as programs do by mistake.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))

static char region[1 << 16] __attribute__((aligned(64)));
static size_t used;

EXPORT void *own_static(size_t size)
{
    void *block = region + 64 + used;
    used += (size + 15) & ~(size_t)15;
    return block;
}

EXPORT void *own_mapped(size_t size)
{
    char *start =
        mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return start == MAP_FAILED ? NULL : start + 64;
}

/* Found by libc's own table: every name that leads there is taken over. */
EXPORT void *own_libc(size_t size)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void *(*take)(size_t) = libc == NULL ? NULL : (void *(*)(size_t))dlsym(libc, "malloc");
    return take == NULL || take == malloc ? NULL : take(size);
}
