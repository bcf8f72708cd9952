/*
 * errno_kept.c - free keeps errno on every path, and a success of any other function leaves it
 * alone.
 *
 * Programs free their memory between a failed call and the look at errno, so free must keep it also
 * where it asks the system: when a magazine overflows, when a slab, a page run or a segment is
 * given back, when a block with its own mapping is unmapped, and in whichever thread. Faults it
 * finds (planted.c): free_errno.
 */
#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"

#define MIB ((size_t)1024 * 1024)
enum { MARK = 1234567 };

static const size_t sizes[] = {
    0,     1,     16,    24,     64,     500,     1000,    1024,    1025,    2000,     5000,
    16384, 32768, 65536, 131072, 300000, 1000000, 2 * MIB, 4 * MIB, 5 * MIB, 16 * MIB, 200 * MIB,
};
enum { SIZES = sizeof sizes / sizeof *sizes, MOST = 100000 };

static void *blocks[MOST];

static size_t blocks_for(size_t size)
{
    size_t count = 64 * MIB / (size + 16);
    return count < 2 ? 2 : count > MOST ? MOST : count;
}

static void take(size_t size, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        errno = MARK;
        blocks[i] = opaque(malloc(size));
        CHECK(blocks[i] != NULL);
        CHECK_MSG(errno == MARK, "malloc of %zu bytes set errno to %d", size, errno);
        memset(blocks[i], 1, size < 4096 ? size : 4096);
    }
}

static void give(size_t size, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        errno = MARK;
        free(blocks[i]);
        CHECK_MSG(errno == MARK, "free of %zu bytes set errno to %d", size, errno);
    }
}

static void many_of_every_size(void)
{
    for (size_t i = 0; i < SIZES; i++) {
        size_t count = blocks_for(sizes[i]);
        take(sizes[i], count);
        give(sizes[i], count);
    }
}

static size_t thread_size;

static void *give_in_a_thread(void *argument)
{
    (void)argument;
    give(thread_size, blocks_for(thread_size));
    return NULL;
}

static void from_another_thread(void)
{
    for (size_t i = 0; i < SIZES; i += 2) {
        thread_size = sizes[i];
        take(thread_size, blocks_for(thread_size));
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, give_in_a_thread, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

/* A system call that free makes may fail: here the pages are locked and cannot be discarded. */
static void where_the_system_refuses(void)
{
    if (mlockall(MCL_FUTURE | MCL_ONFAULT) != 0)
        return; /* a limit forbids it */
    size_t few[] = {64, 1000, 5000, 100000, 3 * MIB};
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        size_t count = blocks_for(few[i]) / 8 + 1;
        take(few[i], count);
        give(few[i], count);
        errno = MARK;
        malloc_trim(0);
        errno = 0;
    }
    CHECK(munlockall() == 0);
}

/* ---- The other functions --------------------------------------------------------------------- */

#define CHECK_LEAVES_ERRNO(call) \
    do { \
        errno = MARK; \
        void *block = opaque(call); \
        CHECK_MSG(block != NULL && errno == MARK, "%s, size %zu, errno %d", #call, size, errno); \
        errno = MARK; \
        (void)malloc_usable_size(block); \
        CHECK(errno == MARK); \
        free(block); \
        CHECK_MSG(errno == MARK, "free after %s, size %zu, errno %d", #call, size, errno); \
    } while (0)

static void success_leaves_errno(void)
{
    for (size_t i = 1; i < SIZES; i++) {
        size_t size = sizes[i];
        CHECK_LEAVES_ERRNO(calloc(1, size));
        CHECK_LEAVES_ERRNO(realloc(NULL, size));
        CHECK_LEAVES_ERRNO(realloc(opaque(malloc(size / 2 + 1)), size));
        CHECK_LEAVES_ERRNO(realloc(opaque(malloc(size * 2)), size));
        CHECK_LEAVES_ERRNO(reallocarray(NULL, 1, size));
        CHECK_LEAVES_ERRNO(aligned_alloc(64, size));
        CHECK_LEAVES_ERRNO(memalign(65536, size));
        CHECK_LEAVES_ERRNO(valloc(size));
        CHECK_LEAVES_ERRNO(pvalloc(size));
        void *block = NULL;
        errno = MARK;
        CHECK(posix_memalign(&block, 4096, size) == 0 && errno == MARK);
        CHECK(realloc(block, opaque_size(0)) == NULL);
        CHECK_MSG(errno == MARK, "realloc to 0 from %zu, errno %d", size, errno);
    }
}

int main(void)
{
    test_begin(60);
    many_of_every_size();
    from_another_thread();
    success_leaves_errno();
    where_the_system_refuses();
    return test_end();
}
