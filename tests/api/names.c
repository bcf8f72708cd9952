/*
 * names.c - every name of snug.h has the contract of its namesake, and blocks pass freely between
 * both sets of names.
 *
 * Each snug_ function is called once for what it does, once with a block of the other set, and, if
 * it can fail, once so that it does.
 */
#include "snug/snug.h"

#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

/* With snug preloaded they are there although nothing was linked. */
#pragma weak snug_malloc
#pragma weak snug_calloc
#pragma weak snug_realloc
#pragma weak snug_reallocarray
#pragma weak snug_free
#pragma weak snug_free_sized
#pragma weak snug_free_aligned_sized
#pragma weak snug_aligned_alloc
#pragma weak snug_memalign
#pragma weak snug_posix_memalign
#pragma weak snug_valloc
#pragma weak snug_pvalloc
#pragma weak snug_malloc_usable_size
#pragma weak snug_malloc_trim
#pragma weak snug_mallopt
#pragma weak snug_mallinfo2
#pragma weak snug_malloc_info
#pragma weak snug_malloc_stats
#pragma weak snug_check
#pragma weak snug_version

/* C23; declared by no header of this age. */
extern void free_sized(void *block, size_t size) __attribute__((weak));
extern void free_aligned_sized(void *block, size_t alignment, size_t size) __attribute__((weak));
/* Older than C89; programs of that age still call it. */
extern void cfree(void *block) __attribute__((weak));

/* glibc's private names for the same; wrappers around malloc call them. Other libcs have none that
 * a program could call. */
#if defined(__GLIBC__)
extern void *__libc_malloc(size_t size) __attribute__((weak));
extern void *__libc_calloc(size_t count, size_t size) __attribute__((weak));
extern void *__libc_realloc(void *block, size_t size) __attribute__((weak));
extern void *__libc_reallocarray(void *block, size_t count, size_t size) __attribute__((weak));
extern void __libc_free(void *block) __attribute__((weak));
extern void *__libc_memalign(size_t alignment, size_t size) __attribute__((weak));
extern void *__libc_valloc(size_t size) __attribute__((weak));
extern void *__libc_pvalloc(size_t size) __attribute__((weak));
extern int __libc_mallopt(int parameter, int value) __attribute__((weak));
extern struct mallinfo __libc_mallinfo(void) __attribute__((weak));
#endif

static const size_t sizes[] = {1, 24, 64, 1000, 1025, 5000, 70000, 1 << 20, 10 << 20};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void *filled(void *block, size_t size)
{
    CHECK(block != NULL && is_aligned(block, 16));
    pattern_fill(block, size, size);
    return opaque(block);
}

static void taken_by_snug_freed_by_libc(void)
{
    for (size_t i = 0; i < SIZES; i++) {
        size_t size = sizes[i];
        free(filled(snug_malloc(size), size));
        void *zeroed = snug_calloc(1, size);
        CHECK(zeroed != NULL && all_zero(zeroed, size));
        free(filled(zeroed, size));
        free(filled(snug_realloc(NULL, size), size));
        free(filled(snug_reallocarray(NULL, 1, size), size));
        free(filled(snug_aligned_alloc(256, size), size));
        free(filled(snug_memalign(4096, size), size));
        free(filled(snug_valloc(size), size));
        free(filled(snug_pvalloc(size), size));
        void *block = NULL;
        CHECK(snug_posix_memalign(&block, 1024, size) == 0 && is_aligned(block, 1024));
        free(filled(block, size));
    }
}

static void taken_by_libc_freed_by_snug(void)
{
    for (size_t i = 0; i < SIZES; i++) {
        size_t size = sizes[i];
        snug_free(filled(malloc(size), size));
        snug_free_sized(filled(malloc(size), size), size);
        snug_free_aligned_sized(filled(aligned_alloc(64, size), size), 64, size);
        CHECK(snug_malloc_usable_size(NULL) == 0);
        void *block = filled(malloc(size), size);
        CHECK(snug_malloc_usable_size(block) == malloc_usable_size(block));
        block = snug_realloc(block, size * 2);
        CHECK(block != NULL && pattern_holds(block, size, size, size));
        block = opaque(realloc(block, size * 3));
        CHECK(block != NULL && pattern_holds(block, size, size, size));
        block = snug_reallocarray(block, 4, size);
        CHECK(block != NULL && pattern_holds(block, size, size, size));
        CHECK(snug_realloc(block, opaque_size(0)) == NULL);
    }
    snug_free(NULL);
    snug_free_sized(NULL, 10);
    snug_free_aligned_sized(NULL, 16, 10);
}

/* The statement of the size is not trusted: a wrong one does no harm. */
static void names_without_a_declaration(void)
{
    CHECK(free_sized != NULL && free_aligned_sized != NULL);
    for (size_t i = 0; i < SIZES; i++) {
        free_sized(filled(malloc(sizes[i]), sizes[i]), sizes[i]);
        free_sized(filled(malloc(sizes[i]), sizes[i]), sizes[i] / 2);
        free_aligned_sized(filled(aligned_alloc(128, sizes[i]), sizes[i]), 128, sizes[i]);
    }
    errno = 55;
    free_sized(opaque(malloc(100)), 100);
    free_aligned_sized(opaque(aligned_alloc(32, 100)), 32, 100);
    free_sized(NULL, 0);
    CHECK(errno == 55);
    CHECK(cfree != NULL);
    cfree(filled(malloc(100), 100));
}

#if defined(__GLIBC__)
/* Were one of them left to libc, a block would meet the other allocator. */
static void private_names_of_libc(void)
{
    CHECK(__libc_malloc != NULL && __libc_calloc != NULL && __libc_realloc != NULL);
    CHECK(__libc_free != NULL && __libc_memalign != NULL && __libc_valloc != NULL);
    CHECK(__libc_pvalloc != NULL && __libc_reallocarray != NULL);
    for (size_t i = 0; i < SIZES; i++) {
        size_t size = sizes[i];
        free(filled(__libc_malloc(size), size));
        free(filled(__libc_calloc(1, size), size));
        free(filled(__libc_realloc(NULL, size), size));
        free(filled(__libc_reallocarray(NULL, 1, size), size));
        free(filled(__libc_memalign(512, size), size));
        free(filled(__libc_valloc(size), size));
        free(filled(__libc_pvalloc(size), size));
        __libc_free(filled(malloc(size), size));
        void *block = __libc_realloc(filled(malloc(size), size), size * 2);
        CHECK(block != NULL && pattern_holds(block, size, size, size));
        CHECK(malloc_usable_size(block) >= size * 2);
        __libc_free(block);
    }
    CHECK(__libc_mallopt != NULL && __libc_mallopt(98765, 0) == 0);
    CHECK(__libc_mallopt(M_MMAP_THRESHOLD, 100000) == 1);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    struct mallinfo theirs = __libc_mallinfo(), ours = mallinfo();
    CHECK(memcmp(&theirs, &ours, sizeof ours) == 0);
#pragma GCC diagnostic pop
}
#else
static void private_names_of_libc(void) {}
#endif

static void refused(void)
{
    size_t most = opaque_size(SIZE_MAX);
    void *block = filled(snug_malloc(100), 100);
    errno = 0;
    CHECK(snug_malloc(most) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(snug_calloc(most, most) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(snug_realloc(block, most) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(snug_reallocarray(block, most, 2) == NULL && errno == ENOMEM);
    CHECK(pattern_holds(block, 100, 100, 100));
    errno = 0;
    CHECK(snug_aligned_alloc(64, most) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(snug_aligned_alloc(opaque_size(24), 100) == NULL && errno == EINVAL);
    errno = 0;
    CHECK(snug_memalign(64, most) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(snug_valloc(most) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(snug_pvalloc(most) == NULL && errno == ENOMEM);
    void *untouched = &block;
    errno = 44;
    CHECK(snug_posix_memalign(&untouched, opaque_size(4), 10) == EINVAL && untouched == &block);
    CHECK(errno == 44);
    CHECK(snug_posix_memalign(&untouched, 64, most) == ENOMEM && untouched == &block);
    CHECK(errno == ENOMEM);
    snug_free(block);
}

static void asked(void)
{
    CHECK(strcmp(snug_version(), SNUG_VERSION_STRING) == 0);
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", SNUG_VERSION_MAJOR, SNUG_VERSION_MINOR,
             SNUG_VERSION_PATCH);
    CHECK(strcmp(text, SNUG_VERSION_STRING) == 0);

    struct snug_mallinfo before = snug_mallinfo2();
    void *block = snug_malloc((size_t)10 << 20);
    struct snug_mallinfo during = snug_mallinfo2();
    struct mallinfo2 same = mallinfo2();
    CHECK(during.uordblks >= before.uordblks + ((size_t)10 << 20));
    CHECK(sizeof same == sizeof during && memcmp(&same, &during, sizeof same) == 0);
    snug_free(block);

    CHECK(snug_mallopt(M_MMAP_THRESHOLD, 100000) == 1);
    CHECK(snug_mallopt(98765, 0) == 0);
    int given = snug_malloc_trim(0);
    CHECK(given == 0 || given == 1);
    FILE *nowhere = fopen("/dev/null", "w");
    CHECK(nowhere != NULL);
    CHECK(snug_malloc_info(0, nowhere) == 0);
    CHECK(snug_malloc_info(3, nowhere) == EINVAL);
    CHECK(fclose(nowhere) == 0);
    CHECK(dup2(STDOUT_FILENO, STDERR_FILENO) == STDERR_FILENO);
    snug_malloc_stats();
    CHECK(snug_check() == 0);
}

int main(void)
{
    test_begin(30);
    if (snug_malloc == NULL)
        test_skip("snug is not the malloc of this run");
    taken_by_snug_freed_by_libc();
    taken_by_libc_freed_by_snug();
    names_without_a_declaration();
    private_names_of_libc();
    refused();
    asked();
    return test_end();
}
