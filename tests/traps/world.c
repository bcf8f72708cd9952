/*
 * world.c - what stands around a program is not as usual, and malloc works as ever.
 *
 *   world chroot    the root is an empty directory, without /proc
 *   world closed    descriptors 0, 1 and 2 are closed, and files of the program's get their
 * numbers: nothing of snug's is written there. To be run with SNUG_MISUSE=warn world refused
 * madvise, munmap and mprotect fail with ENOMEM: blocks are right, frees keep errno, and what there
 * is to say about guards is said once
 *
 * Faults it finds: a malloc that knows no SNUG_MISUSE=warn ends `closed` by a signal; with "more"
 * behind `refused`, mmap fails as well.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* ---- A load ---------------------------------------------------------------------------------- */

enum { BLOCKS = 1000, ROUNDS = 2, THREADS = 2 };

static size_t size_of(size_t i, uint64_t *random)
{
    if (i % 200 == 0)
        return 200000 + random_next(random) % 2000000;
    return i % 20 == 0 ? 10000 + random_next(random) % 100000 : 1 + random_next(random) % 2000;
}

static void *work(void *argument)
{
    static __thread struct {
        void *start;
        size_t size;
    } blocks[BLOCKS];
    uint64_t random = (uintptr_t)argument + 1;
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i].size = size_of(i, &random);
            blocks[i].start =
                opaque(i % 2 == 0 ? calloc(blocks[i].size, 1) : malloc(blocks[i].size));
            CHECK(blocks[i].start != NULL);
            CHECK(i % 2 != 0 || all_zero(blocks[i].start, blocks[i].size));
            pattern_fill(blocks[i].start, blocks[i].size, i);
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            CHECK(pattern_holds(blocks[i].start, blocks[i].size, blocks[i].size, i));
            errno = 4242;
            free(blocks[i].start);
            CHECK_MSG(errno == 4242, "free set errno to %d", errno);
        }
        (void)malloc_trim(0);
    }
    return NULL;
}

static void work_in_threads(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
    work(NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    check_heap();
}

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
    work_in_threads();
    pid_t child = fork_now();
    if (child == 0) {
        work_in_threads();
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

static void refuse(const int *calls, size_t count)
{
    struct sock_filter program[32] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short length = 1;
    for (size_t i = 0; i < count; i++) {
        program[length++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
        program[length++] =
            (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM);
    }
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {length, program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) != 0)
        test_skip("seccomp filters are not to be had");
}

static void *wait_and_work(void *barrier)
{
    pthread_barrier_wait(barrier);
    work(barrier);
    pthread_barrier_wait(barrier);
    return NULL;
}

/* Threads are started first, since libc needs mprotect for their stacks. */
static void work_refused(bool more)
{
    static const int calls[] = {SYS_madvise,
                                SYS_munmap,
                                SYS_mprotect,
#if defined(SYS_process_madvise)
                                SYS_process_madvise,
#endif
                                SYS_mmap,
                                SYS_brk};
    pthread_barrier_t barrier;
    pthread_t thread;
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, wait_and_work, &barrier) == 0);
    refuse(calls, sizeof calls / sizeof *calls - (more ? 0 : 2));
    pthread_barrier_wait(&barrier);
    work(NULL);
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
