/*
 * introspect.c - what the allocator says of itself is true: malloc_usable_size, mallinfo,
 * mallinfo2, malloc_info, malloc_stats, mallopt, malloc_trim.
 *
 * "introspect --xml" only writes malloc_info's XML to stdout; reports.py parses it.
 */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

#define MIB ((size_t)1024 * 1024)
enum { MOST = 200000 };

static void *blocks[MOST];

static bool is_snug(void)
{
    return getenv("SNUG_TEST_EXPECT") != NULL;
}

/* ---- mallinfo -------------------------------------------------------------------------------- */

/* The relations of glibc's fields, by which programs add them up. */
static void check_sums(struct mallinfo2 info)
{
    CHECK_MSG(info.uordblks + info.fordblks == info.arena, "%zu + %zu != %zu", info.uordblks,
              info.fordblks, info.arena);
    CHECK_MSG(info.fsmblks <= info.fordblks, "%zu > %zu", info.fsmblks, info.fordblks);
    CHECK_MSG(info.keepcost <= info.fordblks, "%zu > %zu", info.keepcost, info.fordblks);
    CHECK_MSG((info.smblks != 0) == (info.fsmblks != 0), "%zu, %zu", info.smblks, info.fsmblks);
    CHECK_MSG((info.hblks != 0) == (info.hblkhd != 0), "%zu, %zu", info.hblks, info.hblkhd);
    CHECK_MSG(info.ordblks != 0 || info.fordblks == info.fsmblks, "%zu, %zu", info.fordblks,
              info.fsmblks);
    CHECK(info.usmblks == 0);
}

/* Taking 10 MB in blocks of `size` raises uordblks by at least as much, and by not much more;
 * freeing them lowers it again. */
static void counts_what_is_taken(size_t size)
{
    size_t total = 10 * MIB;
    size_t count = total / size;
    CHECK(count <= MOST);
    struct mallinfo2 before = mallinfo2();
    for (size_t i = 0; i < count; i++) {
        blocks[i] = opaque(malloc(size));
        CHECK(blocks[i] != NULL);
    }
    struct mallinfo2 during = mallinfo2();
    check_sums(during);
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    struct mallinfo2 after = mallinfo2();
    check_sums(after);
    /* What waits in a magazine of this thread may count as handed out for a while. */
    CHECK_MSG(during.uordblks + MIB >= before.uordblks + count * size, "%zu, %zu: size %zu",
              before.uordblks, during.uordblks, size);
    CHECK_MSG(during.uordblks <= before.uordblks + total * 3 / 2, "%zu, %zu: size %zu",
              before.uordblks, during.uordblks, size);
    CHECK_MSG(after.uordblks <= before.uordblks + MIB, "%zu, %zu, %zu: size %zu", before.uordblks,
              during.uordblks, after.uordblks, size);
}

/* So large a block has a mapping of its own. */
#define HUGE_BYTES (200 * MIB)

static void huge_blocks_are_counted(void)
{
    struct mallinfo2 before = mallinfo2();
    void *block = opaque(malloc(HUGE_BYTES));
    CHECK(block != NULL);
    struct mallinfo2 during = mallinfo2();
    CHECK(during.hblks == before.hblks + 1);
    CHECK(during.hblkhd >= before.hblkhd + HUGE_BYTES);
    CHECK(during.uordblks <= before.uordblks + MIB); /* it is not counted twice */
    check_sums(during);
    free(block);
    struct mallinfo2 after = mallinfo2();
    CHECK(after.hblks == before.hblks && after.hblkhd == before.hblkhd);
    CHECK(after.uordblks <= before.uordblks + MIB);
    check_sums(after);
}

/* Other threads come and go meanwhile, and a child of fork lacks them. */
static void *take_and_give(void *stop)
{
    uint64_t random = (uintptr_t)&random;
    void *mine[100] = {NULL};
    while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED)) {
        size_t i = random_next(&random) % 100;
        free(mine[i]);
        mine[i] = opaque(malloc(random_next(&random) % (i == 0 ? 3000000 : 5000)));
    }
    for (size_t i = 0; i < 100; i++)
        free(mine[i]);
    return NULL;
}

static void check_main_sums(struct mallinfo2 info)
{
    CHECK_MSG(info.uordblks + info.fordblks == info.arena, "%zu + %zu != %zu", info.uordblks,
              info.fordblks, info.arena);
    CHECK(info.fsmblks <= info.fordblks && info.keepcost <= info.fordblks);
}

static void sums_hold_beside_threads_and_after_fork(void)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    bool stop = false;
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, take_and_give, &stop) == 0);
    for (int i = 0; i < 2000; i++)
        check_main_sums(mallinfo2());
    pid_t child = fork();
    if (child == 0) {
        check_sums(mallinfo2());
        counts_what_is_taken(5000);
        check_heap();
        _exit(0);
    }
    check_child(child, "the child");
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    check_sums(mallinfo2());
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void mallinfo_is_the_same_in_ints(void)
{
    void *block = opaque(malloc(5 * MIB));
    struct mallinfo2 wide = mallinfo2();
    struct mallinfo narrow = mallinfo();
    CHECK(narrow.uordblks == (int)wide.uordblks);
    CHECK(narrow.fordblks == (int)wide.fordblks);
    CHECK(narrow.arena == (int)wide.arena);
    CHECK(narrow.hblks == (int)wide.hblks);
    CHECK(narrow.hblkhd == (int)wide.hblkhd);
    free(block);
}
#pragma GCC diagnostic pop

/* ---- malloc_info, malloc_stats --------------------------------------------------------------- */

static void malloc_info_arguments(void)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    CHECK(stream != NULL);
    CHECK(malloc_info(1, stream) == EINVAL);
    CHECK(malloc_info(-1, stream) == EINVAL);
    CHECK(fflush(stream) == 0 && length == 0);
    CHECK(malloc_info(0, stream) == 0);
    CHECK(fclose(stream) == 0);
    CHECK(strncmp(text, "<malloc", 7) == 0);
    CHECK(strstr(text, "</malloc>") != NULL);
    free(text);
}

/* malloc_stats writes to stderr, and only there. */
static void malloc_stats_writes_to_stderr(void)
{
    int kept = dup(STDERR_FILENO);
    int file = memfd_create("stderr", 0);
    CHECK(kept >= 0 && file >= 0 && dup2(file, STDERR_FILENO) == STDERR_FILENO);
    malloc_stats();
    CHECK(dup2(kept, STDERR_FILENO) == STDERR_FILENO);
    close(kept);
    off_t length = lseek(file, 0, SEEK_END);
    CHECK_MSG(length > 20, "%ld bytes", (long)length);
    char text[4096] = {0};
    CHECK(pread(file, text, sizeof text - 1, 0) > 0);
    CHECK(text[strlen(text) - 1] == '\n' || length >= (off_t)sizeof text - 1);
    close(file);
}

/* ---- mallopt, malloc_trim -------------------------------------------------------------------- */

static void mallopt_is_accepted(void)
{
    static const int known[] = {M_MXFAST,         M_TRIM_THRESHOLD, M_TOP_PAD,
                                M_MMAP_THRESHOLD, M_MMAP_MAX,       M_CHECK_ACTION,
                                M_PERTURB,        M_ARENA_TEST,     M_ARENA_MAX};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        CHECK_MSG(mallopt(known[i], 64) == 1, "parameter %d", known[i]);
    if (is_snug())
        CHECK(mallopt(123456, 1) == 0); /* glibc says 1 to this as well */
    void *block = opaque(malloc(100));
    CHECK(block != NULL);
    free(block);
}

/* After 64 MiB were freed, trimming brings resident memory down, in this and in a repeated round.
 */
static void trim_gives_back(size_t size)
{
    size_t count = 64 * MIB / size;
    CHECK(count <= MOST);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < count; i++) {
            blocks[i] = opaque(malloc(size));
            memset(blocks[i], 1, size);
        }
        size_t full = resident_kib();
        for (size_t i = 0; i < count; i++)
            free(blocks[i]);
        errno = 99;
        int given = malloc_trim(0);
        CHECK(given == 0 || given == 1);
        size_t trimmed = resident_kib();
        CHECK_MSG(trimmed + 48 * 1024 < full, "size %zu: %zu KiB, after malloc_trim %zu KiB", size,
                  full, trimmed);
    }
}

/* keep: about that much free memory stays. */
static void trim_is_told_to_keep(void)
{
    (void)malloc_trim(SIZE_MAX);
    (void)malloc_trim(10 * MIB);
    void *block = opaque(calloc(1, 1000));
    CHECK(block != NULL && all_zero(block, 1000));
    free(block);
}

static void usable_size(void)
{
    for (size_t size = 1; size < 8 * MIB; size += size / 7 + 1) {
        void *block = opaque(malloc(size));
        size_t usable = malloc_usable_size(block);
        CHECK(usable >= size);
        CHECK_MSG(malloc_usable_size(block) == usable, "size %zu", size);
        /* No more than the next class or page: an absurd answer would be a wrong one. */
        CHECK_MSG(usable <= size + size / 2 + 4096, "size %zu, usable %zu", size, usable);
        memset(block, 0xa5, usable);
        free(block);
    }
}

int main(int argc, char **argv)
{
    test_begin(60);
    if (argc > 1 && strcmp(argv[1], "--xml") == 0) {
        for (size_t i = 0; i < 10000; i++)
            blocks[i] = opaque(malloc(i * 13 % 40000));
        for (size_t i = 0; i < 10000; i += 2)
            free(blocks[i]);
        blocks[0] = opaque(malloc(100 * MIB));
        CHECK(malloc_info(0, stdout) == 0);
        return 0;
    }
    usable_size();
    counts_what_is_taken(64);
    counts_what_is_taken(1000);
    counts_what_is_taken(5000);
    counts_what_is_taken(100000);
    counts_what_is_taken(10 * MIB);
    huge_blocks_are_counted();
    sums_hold_beside_threads_and_after_fork();
    mallinfo_is_the_same_in_ints();
    malloc_info_arguments();
    malloc_stats_writes_to_stderr();
    mallopt_is_accepted();
    trim_gives_back(1000);
    trim_gives_back(20000);
    trim_gives_back(5 * MIB);
    trim_is_told_to_keep();
    return test_end();
}
