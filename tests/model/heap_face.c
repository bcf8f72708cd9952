/*
 * The heap of a test. See heap_face.h; this file sees the real names.
 */
#include "heap_face.h"

#undef snug_malloc
#undef snug_calloc
#undef snug_aligned_alloc

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "expect.h"

#define BUFFER_BYTES (256 * MIB)

static snug_heap *heap;

/* Not of malloc: a child of fork would wait for a lock that another thread had in a sanitizer's. */
static void *own_take(void *context, size_t bytes, size_t alignment)
{
    (void)context;
    char *mapped =
        mmap(NULL, bytes + alignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)mapped % alignment;
    char *start = mapped + before;
    if (before != 0)
        munmap(mapped, before);
    munmap(start + bytes, alignment - before);
    memset(start, 0xdd, bytes); /* it need not be zero */
    return start;
}

static int own_give(void *context, void *start, size_t bytes)
{
    (void)context;
    return munmap(start, bytes) == 0;
}

/* A fault of a provider's: it says that its memory is zero, and it is not. */
static bool lies_about_zero(void)
{
    const char *fault = getenv("PLANTED");
    return fault != NULL && strcmp(fault, "not_zero") == 0;
}

static snug_provider *make_provider(const char *kind)
{
    struct snug_file_config file = {.size = sizeof(file), .bytes = 8 * MIB, .grow_factor = 1.6};
    struct snug_provider_functions own = {
        .size = sizeof(own), .take = own_take, .give = own_give, .zeroed = lies_about_zero()};
    if (strcmp(kind, "prealloc") == 0)
        return snug_provider_prealloc(256 * MIB, 0);
    if (strcmp(kind, "file") == 0)
        return snug_provider_file(&file);
    return snug_provider_create(&own);
}

static void make(void)
{
    const char *kind = getenv("SNUG_TEST_HEAP");
    struct snug_heap_config config = {.size = sizeof(config), .name = kind};
    kind = kind == NULL ? "os" : kind;
    if (strcmp(kind, "quota") == 0) {
        config.quota = 512 * MIB;
    } else if (strcmp(kind, "buffer") == 0 || strcmp(kind, "outside") == 0) {
        char *buffer = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        EXPECT(buffer != MAP_FAILED, "no buffer");
        config.buffer = buffer + 77;
        config.buffer_bytes = BUFFER_BYTES - 100;
        config.flags = strcmp(kind, "outside") == 0 ? SNUG_HEAP_OUTSIDE : 0;
    } else if (strcmp(kind, "hardened") == 0) {
        config.flags = SNUG_HEAP_HARDENED;
    } else if (strcmp(kind, "os") != 0) {
        config.provider = make_provider(kind);
        EXPECT(config.provider != NULL, "no provider %s", kind);
    }
    heap = snug_heap_create(&config);
    EXPECT(heap != NULL, "no heap on %s", kind);
}

snug_heap *face_heap(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make);
    return heap;
}

void *face_memalign(size_t alignment, size_t size)
{
    size_t power = 16;
    while (power < alignment)
        power *= 2;
    return snug_heap_aligned_alloc(face_heap(), power, size);
}

int face_posix_memalign(void **result, size_t alignment, size_t size)
{
    void *block = snug_heap_aligned_alloc(face_heap(), alignment, size);
    if (block == NULL)
        return 12;
    *result = block;
    return 0;
}
