/*
 * locked.c - trap 16: all memory of the process is locked, or its address space is limited to some
 * MiB. What snug has mapped ahead counts in full then, touched or not.
 *
 *   locked user     as an ordinary user with RLIMIT_MEMLOCK of 8 MiB: mlockall succeeds, and the
 *                   program goes on with what is locked as it comes (MCL_FUTURE)
 *   locked future   so, with what comes alone: much more than the limit is taken and freed again
 *   locked ahead    so, a heap of 40 MB has little more than that locked
 *   locked late BLOCKS   the same of the 40 MB that come after so many blocks of 100 KB, at most
 *                   7,600, that are not locked; 6,000 have segments of a share of the heap
 *   locked bound    what is locked is at most so much more than the system's malloc locks
 *   locked limit KIB   the program runs itself with so much address space, of which the libraries
 *                   take the most part; small and medium blocks can be had
 *
 * Fault they find: SNUG_PREFAULT=8m, which maps so much; and a limit below what the libraries take.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* A line of /proc/self/status, in KiB. Does not allocate. */
static size_t status_kib(const char *name)
{
    char text[4096];
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file != NULL);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    const char *line = strstr(text, name);
    CHECK(line != NULL);
    return strtoul(line + strlen(name) + 1, NULL, 10);
}

static void *blocks[8000];

/* 100 KB in small pieces. */
static void allocate_small(void)
{
    size_t count = 0, sum = 0;
    for (; sum < 100000; count++) {
        size_t size = 16 + count * 37 % 240;
        blocks[count] = opaque(malloc(size));
        CHECK_MSG(blocks[count] != NULL, "after %zu bytes", sum);
        memset(blocks[count], 1, size);
        sum += size;
    }
    while (count != 0)
        free(blocks[--count]);
}

/* And some larger ones. */
static void allocate(void)
{
    allocate_small();
    static const size_t sizes[] = {2000, 5000, 30000, 65536, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        blocks[i] = opaque(malloc(sizes[i]));
        CHECK_MSG(blocks[i] != NULL, "%zu bytes", sizes[i]);
        pattern_fill(blocks[i], sizes[i], i);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        blocks[i] = opaque(realloc(blocks[i], sizes[i] / 2 * 3));
        CHECK_MSG(blocks[i] != NULL, "%zu bytes become more", sizes[i]);
        CHECK(pattern_holds(blocks[i], sizes[i], sizes[i], i));
        free(blocks[i]);
    }
}

static void become_user(void)
{
    struct rlimit limit = {8 << 20, 8 << 20};
    CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    if (getuid() == 0)
        CHECK(setgid(65534) == 0 && setuid(65534) == 0);
}

/* Locked pages can be neither purged nor made guards by madvise; guards in quarantine count. */
static void future(void)
{
    enum { BYTES = 300000, TIMES = 200 };
    become_user();
    allocate();
    CHECK(mlockall(MCL_FUTURE) == 0);
    for (size_t i = 0; i < TIMES; i++) {
        unsigned char *block = opaque(calloc(BYTES, 1));
        CHECK_MSG(block != NULL, "after %zu blocks", i);
        CHECK(all_zero(block, BYTES));
        memset(block, 7, BYTES);
        free(block);
    }
    allocate();
    check_heap();
}

/*
 * A heap takes addresses ahead, as many as it has, but not where they are memory at once. What was
 * taken before the lock is not locked, and can be more than the blocks that come: then more come.
 */
static void ahead(size_t blocks_before, int flags)
{
    enum { BYTES = 100000, TIMES = 400, MOST = sizeof blocks / sizeof *blocks, MORE = 9 * 1024 };
    CHECK(blocks_before + TIMES <= MOST);
    for (size_t i = 0; i < blocks_before; i++)
        CHECK((blocks[i] = opaque(malloc(BYTES))) != NULL);
    if (mlockall(flags) != 0)
        test_skip("this user may not lock so much");
    size_t count = 0, locked = 0;
    while (count < TIMES || (locked == 0 && blocks_before + count < MOST)) {
        if ((blocks[blocks_before + count++] = opaque(malloc(BYTES))) == NULL)
            test_skip("this user may not lock so much");
        if (count >= TIMES)
            locked = status_kib("VmLck:");
    }
    printf("locked: %zu KiB with %zu blocks\n", locked, count);
    CHECK(locked > 0);
    CHECK_MSG(locked < count * BYTES / 1024 + MORE, "%zu KiB locked", locked);
}

static void user(void)
{
    become_user();
    allocate();
    CHECK_MSG(mlockall(MCL_CURRENT) == 0, "errno %d, %zu KiB of address space", errno,
              status_kib("VmSize:"));
    allocate();
    CHECK(munlockall() == 0);
    CHECK_MSG(mlockall(MCL_CURRENT | MCL_FUTURE) == 0, "errno %d", errno);
    allocate();
}

/*
 * Measured: the system's malloc 2,508 KiB, snug 5,120, in the preset debug, whose code is longer,
 * 5,456. Where the first segment lies in two chunks of the page map, which the kernel's choice
 * of addresses makes so in 2 runs of 100, snug has another 128.
 */
static void bound(void)
{
    enum { MOST = 3 * 1024 + 512 };
    allocate_small();
    if (mlockall(MCL_CURRENT) != 0)
        test_skip("this user may not lock so much");
    size_t locked = status_kib("VmLck:");
    CHECK(munlockall() == 0);
    /* The same program on the system's malloc tells its part on a pipe. */
    int ends[2];
    CHECK(pipe(ends) == 0);
    int child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", ends[1]);
        char *environment[] = {NULL};
        char *arguments[] = {"locked", "tell", number, NULL};
        execve("/proc/self/exe", arguments, environment);
        _exit(1);
    }
    size_t of_system = 0;
    CHECK(read(ends[0], &of_system, sizeof of_system) == sizeof of_system);
    check_child(child, "the system's malloc");
    printf("locked: %zu KiB, by the system's malloc %zu\n", locked, of_system);
    CHECK_MSG(of_system > 500 && locked < of_system + MOST,
              "%zu KiB locked, by the system's malloc %zu", locked, of_system);
}

static void tell(int descriptor)
{
    allocate_small();
    CHECK(mlockall(MCL_CURRENT) == 0);
    size_t locked = status_kib("VmLck:");
    CHECK(write(descriptor, &locked, sizeof locked) == sizeof locked);
}

static void limit(char *program, size_t kib)
{
    struct rlimit limit = {kib << 10, kib << 10};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    execl(program, program, "limited", (char *)NULL);
    check_failed(__FILE__, __LINE__, "exec failed");
}

int main(int argc, char **argv)
{
    test_begin(30);
    CHECK(argc >= 2);
    if (strcmp(argv[1], "user") == 0)
        user();
    else if (strcmp(argv[1], "future") == 0)
        future();
    else if (strcmp(argv[1], "ahead") == 0)
        ahead(0, MCL_CURRENT | MCL_FUTURE);
    else if (strcmp(argv[1], "late") == 0)
        ahead(strtoul(argv[2], NULL, 10), MCL_FUTURE);
    else if (strcmp(argv[1], "bound") == 0)
        bound();
    else if (strcmp(argv[1], "tell") == 0)
        tell(atoi(argv[2]));
    else if (strcmp(argv[1], "limit") == 0)
        limit(argv[0], strtoul(argv[2], NULL, 10));
    else if (strcmp(argv[1], "limited") == 0)
        allocate();
    else
        check_failed(__FILE__, __LINE__, "no such case: %s", argv[1]);
    return test_end();
}
