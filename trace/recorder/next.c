/*
 * next.c - finds the next malloc; see next.h.
 */
#include "next.h"

#include <dlfcn.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { SIZE_ROOM = 16 };

struct next next;
static bool finding;

static const char unknown;
const char *next_single_threaded = &unknown;

alignas(64) char bootstrap[BOOTSTRAP_SIZE];
static size_t bootstrap_used;

/* A function pointer from dlsym. Without malloc nothing can go on, and nothing can be said with
 * stdio. */
static void find(void *place, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        static const char words[] = "snug record: the program has no malloc to record\n";
        if (write(STDERR_FILENO, words, sizeof words - 1) < 0)
            _exit(126);
        _exit(125);
    }
    memcpy(place, &found, sizeof found);
}

bool next_find(void)
{
    if (finding)
        return false;
    finding = true;
    struct next found;
    find(&found.malloc, "malloc");
    find(&found.calloc, "calloc");
    find(&found.realloc, "realloc");
    find(&found.free, "free");
    find(&found.aligned_alloc, "aligned_alloc");
    find(&found.memalign, "memalign");
    find(&found.posix_memalign, "posix_memalign");
    /* Looked up by name, or the recorder would need that version of glibc. */
    const char *single_threaded = dlsym(RTLD_DEFAULT, "__libc_single_threaded");
    if (single_threaded != NULL)
        next_single_threaded = single_threaded;
    next = found;
    finding = false;
    return true;
}

void *bootstrap_take(size_t size, size_t alignment)
{
    if (alignment < SIZE_ROOM)
        alignment = SIZE_ROOM;
    size_t start = (bootstrap_used + SIZE_ROOM + alignment - 1) & ~(alignment - 1);
    if (size > BOOTSTRAP_SIZE || start > BOOTSTRAP_SIZE - size)
        return NULL;
    bootstrap_used = start + size;
    memcpy(bootstrap + start - sizeof size, &size, sizeof size);
    return bootstrap + start;
}

size_t bootstrap_size(const void *pointer)
{
    size_t size;
    memcpy(&size, (const char *)pointer - sizeof size, sizeof size);
    return size;
}
