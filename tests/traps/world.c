/*
 * world.c - what stands around a program is not as usual, and malloc works as ever.
 *
 *   world chroot    the root is an empty directory, without /proc
 *
 *   world closed    descriptors 0, 1 and 2 are closed, and files of the program's get their
 *                   numbers: nothing of snug's is written there. To be run with SNUG_MISUSE=warn
 *
 *   world refused   madvise, munmap and mprotect fail with ENOMEM: blocks are right, frees keep
 *                   errno, and what there is to say about guards is said once
 *
 * Faults it finds: a malloc that knows no SNUG_MISUSE=warn ends `closed` by a signal; with "more"
 * behind `refused`, mmap fails as well.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "filter.h"
#include "load.h"

static pid_t fork_now(void)
{
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    return child;
}

/* ---- No /proc -------------------------------------------------------------------------------- */

static void work_in_root(const char *root)
{
    if (chroot(root) != 0 && (unshare(CLONE_NEWUSER) != 0 || chroot(root) != 0))
        _exit(TEST_SKIPPED);
    CHECK(chdir("/") == 0 && access("/proc", F_OK) != 0);
    load_in_threads();
    check_heap();
    pid_t child = fork_now();
    if (child == 0) {
        load_in_threads();
        check_heap();
        _exit(0);
    }
    check_child(child, "of a process in an empty root");
    exit(0); /* with statistics */
}

static void in_empty_root(void)
{
    char root[] = "/tmp/snug-world-XXXXXX";
    CHECK(mkdtemp(root) != NULL);
    pid_t child = fork_now();
    if (child == 0)
        work_in_root(root);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && rmdir(root) == 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == TEST_SKIPPED)
        test_skip("this user may not change the root");
    CHECK_MSG(status == 0, "in an empty root: %#x", (unsigned)status);
}

/* ---- No standard streams --------------------------------------------------------------------- */

static char place[] = "/tmp/snug-world-XXXXXX";
static char path[64], statistics[64];

static void free_twice(void)
{
    for (size_t size = 64; size < 1000000; size *= 100) {
        void *block = opaque(malloc(size));
        free(block);
        free(opaque(block)); /* reported here, with SNUG_MISUSE=warn */
    }
}

/* Runs in a process of its own, and says by its status alone what went wrong. */
static void take_numbers(int flags)
{
    for (int number = 0; number < 3; number++)
        if (open(path, flags | O_CREAT, 0600) != number)
            _exit(3);
    free_twice();
}

static void close_streams(void)
{
    for (int number = 0; number < 3; number++)
        close(number);
}

/* Bytes in a file; -1: there is none. */
static long length_of(const char *name)
{
    struct stat status;
    return stat(name, &status) == 0 ? (long)status.st_size : -1;
}

static void without_streams(char *program)
{
    pid_t child = fork_now();
    if (child == 0) { /* closed before the start */
        close_streams();
        setenv("SNUG_STATS", statistics, 1);
        execl(program, program, "numbers", path, (char *)NULL);
        _exit(2);
    }
    check_child(child, "with closed streams");
    CHECK_MSG(length_of(path) == 0, "%ld bytes in the program's file", length_of(path));
    CHECK(length_of(statistics) > 0);
    static const struct {
        int flags;
        bool written;
    } later[] = {{O_RDWR, false}, {O_WRONLY | O_APPEND, true}, {O_RDWR | O_APPEND, true}};
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        child = fork_now();
        if (child == 0) {
            close_streams();
            take_numbers(later[i].flags);
            _exit(0);
        }
        check_child(child, "that closes its streams");
        CHECK_MSG((length_of(path) > 0) == later[i].written, "%zu: %ld bytes", i, length_of(path));
        CHECK(unlink(path) == 0);
    }
}

static void closed(char *program)
{
    CHECK(mkdtemp(place) != NULL);
    snprintf(path, sizeof path, "%s/file", place);
    snprintf(statistics, sizeof statistics, "%s/statistics", place);
    pid_t child = fork_now();
    if (child == 0) {
        without_streams(program);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    unlink(path);
    unlink(statistics);
    CHECK(rmdir(place) == 0);
    CHECK_MSG(status == 0, "without streams: %#x", (unsigned)status);
}

/* ---- Calls that fail ------------------------------------------------------------------------- */

static void refuse(const int *calls)
{
    struct filter filter = {.length = 0};
    filter_calls(&filter, calls, SECCOMP_RET_ERRNO | ENOMEM);
    filter_answer(&filter, SECCOMP_RET_ALLOW);
    filter_install(&filter, SECCOMP_FILTER_FLAG_TSYNC);
}

static void *wait_and_work(void *barrier)
{
    pthread_barrier_wait(barrier);
    load_mixed(barrier);
    pthread_barrier_wait(barrier);
    return NULL;
}

/* Threads are started first, since libc needs mprotect for their stacks. */
static void work_refused(bool more)
{
    const int calls[] = {SYS_madvise,
                         SYS_munmap,
                         SYS_mprotect,
#if defined(SYS_process_madvise)
                         SYS_process_madvise,
#endif
                         more ? SYS_mmap : CALLS_END,
                         SYS_brk,
                         CALLS_END};
    pthread_barrier_t barrier;
    pthread_t thread;
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, wait_and_work, &barrier) == 0);
    refuse(calls);
    pthread_barrier_wait(&barrier);
    load_mixed(NULL);
    pthread_barrier_wait(&barrier);
    check_heap();
}

/* What a child writes to stderr, in which a text is counted. */
static size_t count_lines(const int *ends, const char *text)
{
    static char said[65536];
    size_t length = 0, count = 0;
    for (ssize_t got; (got = read(ends[0], said + length, sizeof said - 1 - length)) > 0;)
        length += (size_t)got;
    fputs(said, stderr);
    for (const char *at = said; (at = strstr(at, text)) != NULL; at++)
        count++;
    return count;
}

static void refused(bool more)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork_now();
    if (child == 0) {
        CHECK(dup2(ends[1], 2) == 2);
        work_refused(more);
        _exit(0);
    }
    close(ends[1]);
    const char *preset = getenv("SNUG_PRESET");
    size_t guards = preset != NULL && strcmp(preset, "hardened") == 0;
    size_t lines = count_lines(ends, "refuses more guard pages");
    check_child(child, "whose calls fail");
    CHECK_MSG(lines == guards, "%zu lines about guards", lines);
}

int main(int argc, char **argv)
{
    test_begin(60);
    CHECK(argc >= 2);
    if (strcmp(argv[1], "chroot") == 0) {
        in_empty_root();
    } else if (strcmp(argv[1], "closed") == 0) {
        closed(argv[0]);
    } else if (strcmp(argv[1], "numbers") == 0) {
        snprintf(path, sizeof path, "%s", argv[2]);
        take_numbers(O_WRONLY);
        close(2);
        return 0; /* the statistics, which must not take the number 2 */
    } else if (strcmp(argv[1], "refused") == 0) {
        refused(argc > 2);
    } else {
        CHECK_MSG(false, "%s", argv[1]);
    }
    return test_end();
}
