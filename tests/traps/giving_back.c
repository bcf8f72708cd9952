/*
 * giving_back.c - memory that a program no longer uses goes back, in a real process, whatever else
 * happens meanwhile.
 *
 *   giving_back peak
 *       a peak of all sizes is freed in a random order; at once most of it is gone
 *
 *   giving_back thread
 *       with SNUG_PURGE_THREAD=1: what was kept for a demand that has ended goes while the program
 *       sleeps, and then the thread does; a child of a fork gets a thread of its own
 *
 *   giving_back fork
 *       threads go up and down, so that snug purges all the time, while others fork; to be run with
 *       SNUG_PURGE_DELAY=0
 *
 *   giving_back mappings
 *       huge blocks come and go: the number of mappings stays bounded
 *
 *   giving_back cgroup
 *       up and down in a control group with little more memory than the peak, in blocks of other
 *       sizes each time: what is kept never adds to a peak
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define MIB ((size_t)1024 * 1024)

enum { BLOCKS_MOST = 400000 };

static void *blocks[BLOCKS_MOST];

/* Takes `bytes` in blocks of `least` to `most` bytes, each written to. */
static size_t fill(size_t bytes, size_t least, size_t most, uint64_t *random)
{
    size_t count = 0;
    while (bytes > 0 && count < BLOCKS_MOST) {
        size_t size = least + random_next(random) % (most - least + 1);
        blocks[count] = opaque(malloc(size));
        CHECK(blocks[count] != NULL);
        memset(blocks[count++], 1, size);
        bytes -= size < bytes ? size : bytes;
    }
    return count;
}

static void free_in_random_order(size_t count, uint64_t *random)
{
    for (; count > 0; count--) {
        size_t i = random_next(random) % count;
        free(blocks[i]);
        blocks[i] = blocks[count - 1];
    }
}

static void sleep_ms(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0)
        continue;
}

/* ---- A peak ---------------------------------------------------------------------------------- */

static void peak(void)
{
    static const size_t borders[] = {16, 1024, 32 * 1024, MIB, 8 * MIB};
    for (size_t i = 0; i + 1 < sizeof borders / sizeof *borders; i++) {
        int child = fork(); /* peaks that follow one another soon teach snug to keep them */
        CHECK(child >= 0);
        if (child == 0) {
            uint64_t random = 7;
            size_t before = resident_kib();
            size_t count = fill(96 * MIB, borders[i], borders[i + 1], &random);
            free_in_random_order(count, &random);
            size_t left = resident_kib() - before;
            /* 4 MiB, the magazines and what they hold on to, and the table of blocks. */
            CHECK_MSG(left < 56 * 1024, "of blocks up to %zu bytes, %zu KiB are left",
                      borders[i + 1], left);
            check_heap();
            _exit(0);
        }
        check_child(child, "a peak");
    }
}

/* ---- The thread ------------------------------------------------------------------------------ */

static size_t status_number(const char *name)
{
    static char text[8192];
    int file = open("/proc/self/status", O_RDONLY);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    CHECK(length > 0);
    close(file);
    text[length] = 0;
    const char *found = strstr(text, name);
    CHECK(found != NULL);
    return strtoul(found + strlen(name), NULL, 10);
}

/* The second time, what went back is missed, and kept from then on. */
static void learn(void)
{
    uint64_t random = 5;
    for (int i = 0; i < 3; i++)
        free_in_random_order(fill(48 * MIB, 2 * MIB, 4 * MIB, &random), &random);
    for (size_t i = 0; i < 2000; i++) /* slow paths, in which the thread is started */
        free(opaque(malloc(1 + i)));
}

static void wait_until_gone(const char *who)
{
    size_t before = resident_kib();
    CHECK_MSG(before > 30 * 1024, "%s: nothing was kept: %zu KiB", who, before);
    for (int tries = 0; resident_kib() > 20 * 1024 && tries < 600; tries++)
        sleep_ms(100);
    CHECK_MSG(resident_kib() <= 20 * 1024, "%s: %zu KiB stay, of %zu", who, resident_kib(), before);
    for (int tries = 0; status_number("Threads:") != 1 && tries < 600; tries++)
        sleep_ms(100);
    CHECK_MSG(status_number("Threads:") == 1, "%s: the thread stays", who);
}

static void thread(void)
{
    learn();
    CHECK_MSG(status_number("Threads:") == 2, "%zu threads", status_number("Threads:"));
    int child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(status_number("Threads:") == 1);
        learn();
        CHECK(status_number("Threads:") == 2);
        wait_until_gone("the child");
        check_heap();
        _exit(0);
    }
    wait_until_gone("the parent");
    check_child(child, "the child");
}

/* ---- Fork ------------------------------------------------------------------------------------ */

static volatile int stop;

static void *up_and_down(void *argument)
{
    uint64_t random = 1 + (uintptr_t)argument;
    void *own[64];
    while (!stop) {
        for (size_t i = 0; i < 64; i++) {
            size_t size = 1 + random_next(&random) % (i % 8 == 0 ? 3 * MIB : 200000);
            own[i] = opaque(malloc(size));
            CHECK(own[i] != NULL);
            *(char *)own[i] = 1;
        }
        for (size_t i = 0; i < 64; i++)
            free(own[i]);
    }
    return NULL;
}

static void fork_while_purging(void)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, up_and_down, (void *)i) == 0);
    for (size_t i = 0, rounds = test_scale(60, 3000); i < rounds; i++) {
        int child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            uint64_t random = 99 + i;
            alarm(30); /* a lock that nobody holds would be waited for for ever */
            check_heap();
            free_in_random_order(fill(4 * MIB, 100, 2 * MIB, &random), &random);
            check_heap();
            _exit(0);
        }
        check_child(child, "a child");
    }
    stop = 1;
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* ---- Mappings -------------------------------------------------------------------------------- */

static size_t mappings_count(void)
{
    static char text[1 << 16];
    size_t count = 0;
    int file = open("/proc/self/maps", O_RDONLY);
    CHECK(file >= 0);
    for (ssize_t length; (length = read(file, text, sizeof text)) > 0;)
        for (ssize_t i = 0; i < length; i++)
            count += text[i] == '\n';
    close(file);
    return count;
}

static void mappings(void)
{
    enum { PLACES = 400 };
    uint64_t random = 3;
    void *place[PLACES] = {NULL};
    size_t before = mappings_count(), most = 0;
    for (size_t i = 0, turns = test_scale(4000, 1000000); i < turns; i++) {
        void **at = &place[random_next(&random) % PLACES];
        free(*at);
        *at = NULL;
        if (random_next(&random) % 3 != 0) {
            *at = opaque(malloc(MIB + random_next(&random) % (16 * MIB)));
            CHECK(*at != NULL);
            *(char *)*at = 1;
        }
        if (i % 500 == 0) {
            size_t now = mappings_count();
            most = now > most ? now : most;
        }
    }
    /* Those in use, the 256 that may wait, and some for the rest of the heap. */
    CHECK_MSG(most <= before + PLACES + 256 + 32, "%zu mappings, at first %zu", most, before);
    for (size_t i = 0; i < PLACES; i++)
        free(place[i]);
    check_heap();
}

/* ---- A control group ------------------------------------------------------------------------- */

static int write_text(const char *path, const char *text)
{
    int file = open(path, O_WRONLY);
    ssize_t written = file < 0 ? -1 : write(file, text, strlen(text));
    if (file >= 0)
        close(file);
    return written == (ssize_t)strlen(text) ? 0 : -1;
}

/* A group below the root of the hierarchy, version 2 or 1, with `limit` bytes. */
static int group_make(char *path, size_t path_bytes, const char *limit)
{
    static const char *const parents[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/memory"};
    static const char *const files[] = {"memory.max", "memory.limit_in_bytes"};
    for (size_t i = 0; i < 2; i++) {
        char file[256];
        snprintf(path, path_bytes, "%s/snug-test-%d", parents[i], (int)getpid());
        if (mkdir(path, 0755) != 0)
            continue;
        snprintf(file, sizeof file, "%s/%s", path, files[i]);
        if (write_text(file, limit) == 0)
            return 0;
        rmdir(path);
    }
    return -1;
}

/* Of 128 MiB: what is in use may be a fifth more, in free cells and for threads, and with what is
 * kept an eighth more again. */
#define LIVE_IN_GROUP (72 * MIB)

static void up_and_down_in_group(void)
{
    uint64_t random = 11;
    size_t size = 200;
    for (int round = 0; round < 14; round++, size = size * 2 < 20 * MIB ? size * 2 : 300) {
        free_in_random_order(fill(LIVE_IN_GROUP, size, size * 2, &random), &random);
        sleep_ms(20);
    }
    check_heap();
}

static void control_group(void)
{
    char path[128], file[256];
    if (group_make(path, sizeof path, "134217728") != 0) /* 128 MiB */
        test_skip("a control group with a memory limit cannot be made here");
    snprintf(file, sizeof file, "%s/cgroup.procs", path);
    int child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (write_text(file, "0") != 0)
            _exit(TEST_SKIPPED);
        up_and_down_in_group();
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    for (int tries = 0; rmdir(path) != 0 && tries < 50; tries++)
        sleep_ms(20);
    if (WIFEXITED(status) && WEXITSTATUS(status) == TEST_SKIPPED)
        test_skip("a process cannot be moved into a control group here");
    CHECK_MSG(status == 0, "the process in the group ended with status %#x", (unsigned)status);
}

int main(int argc, char **argv)
{
    test_begin(100);
    CHECK(argc == 2);
    if (strcmp(argv[1], "peak") == 0)
        peak();
    else if (strcmp(argv[1], "thread") == 0)
        thread();
    else if (strcmp(argv[1], "fork") == 0)
        fork_while_purging();
    else if (strcmp(argv[1], "mappings") == 0)
        mappings();
    else if (strcmp(argv[1], "cgroup") == 0)
        control_group();
    else
        check_failed(__FILE__, __LINE__, "no such case: %s", argv[1]);
    return test_end();
}
