/*
 * fork_with_stdio.c - forks while other threads are inside of stdio. A stream's lock is held while
 * its buffer grows, the list of streams while a stream is waited for, and fork() takes the list
 * itself: whoever holds the allocator's locks when it does, and came to them first, closes a ring.
 *
 * One thread flushes all streams, some read long lines, some open and close streams, and two fork.
 * Each child uses streams, and has a thread that flushes them all. 80 forks, 10,000 in a full run;
 * a watchdog in every process. Once more from a process that has no other threads any more.
 * Faults it finds: the allocator does not take the list first (no_list_lock.c); a lock that fork
 * does not handle (planted.c, fork_lock).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { READING = 3, FORKING = 2, LINE_BYTES = 200000, SECONDS = 60, CHILD_SECONDS = 10 };

static char line[LINE_BYTES + 1]; /* and its end */
static atomic_bool stop;
static atomic_size_t forks_left;
static atomic_size_t flushed;
static atomic_size_t lines_read;
static atomic_size_t streams_opened;

/* libc's locks are not fair: without it those that fork would hardly ever get the list. */
static void pause_briefly(void)
{
    usleep(100);
}

static void *flush_all(void *argument)
{
    while (!atomic_load(&stop)) {
        CHECK(fflush(NULL) == 0);
        if (atomic_fetch_add(&flushed, 1) % 8 == 0)
            pause_briefly();
    }
    return argument;
}

/* Each time into a new block, which grows while the stream is locked. */
static void read_line(FILE *stream)
{
    char *text = NULL;
    size_t size = 0;
    rewind(stream);
    ssize_t length = getline(&text, &size, stream);
    CHECK_MSG(length == LINE_BYTES, "%zd bytes", length);
    CHECK(memcmp(text, line, LINE_BYTES) == 0);
    free(text);
}

static void *read_lines(void *argument)
{
    FILE *stream = fmemopen(line, LINE_BYTES, "r");
    CHECK(stream != NULL);
    while (!atomic_load(&stop)) {
        read_line(stream);
        atomic_fetch_add(&lines_read, 1);
    }
    CHECK(fclose(stream) == 0);
    return argument;
}

static void open_and_close(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    CHECK(stream != NULL);
    CHECK(fprintf(stream, "%0*d", 5000, 7) == 5000);
    CHECK(fclose(stream) == 0);
    CHECK(size == 5000 && text[0] == '0' && text[4999] == '7');
    free(text);
}

static void *open_streams(void *argument)
{
    while (!atomic_load(&stop)) {
        open_and_close();
        if (atomic_fetch_add(&streams_opened, 1) % 8 == 0)
            pause_briefly();
    }
    return argument;
}

static void *flush_once(void *argument)
{
    CHECK(fflush(NULL) == 0);
    open_and_close();
    return argument;
}

/* The list must be free here, for this thread and for others. */
__attribute__((noreturn)) static void child(void)
{
    alarm(child_seconds(CHILD_SECONDS));
    open_and_close();
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, flush_once, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    FILE *stream = fmemopen(line, LINE_BYTES, "r");
    CHECK(stream != NULL);
    read_line(stream);
    CHECK(fclose(stream) == 0);
    check_heap();
    _exit(0);
}

static void fork_once(void)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        child();
    check_child(pid, "a child forked amid stdio");
}

static void *fork_all_the_while(void *argument)
{
    for (;;) {
        size_t left = atomic_load(&forks_left);
        do {
            if (left == 0)
                return argument;
        } while (!atomic_compare_exchange_weak(&forks_left, &left, left - 1));
        fork_once();
    }
}

static void amid_threads(void)
{
    pthread_t flushing, opening, reading[READING], forking[FORKING];
    CHECK(pthread_create(&flushing, NULL, flush_all, NULL) == 0);
    CHECK(pthread_create(&opening, NULL, open_streams, NULL) == 0);
    for (size_t i = 0; i < READING; i++)
        CHECK(pthread_create(&reading[i], NULL, read_lines, NULL) == 0);
    for (size_t i = 0; i < FORKING; i++)
        CHECK(pthread_create(&forking[i], NULL, fork_all_the_while, NULL) == 0);
    for (size_t i = 0; i < FORKING; i++)
        CHECK(pthread_join(forking[i], NULL) == 0);
    /* None of them is stuck behind the forks. */
    size_t flushed_then = atomic_load(&flushed), lines_then = atomic_load(&lines_read);
    size_t opened_then = atomic_load(&streams_opened);
    while (atomic_load(&flushed) == flushed_then || atomic_load(&lines_read) == lines_then ||
           atomic_load(&streams_opened) == opened_then)
        pause_briefly();
    atomic_store(&stop, true);
    CHECK(pthread_join(flushing, NULL) == 0);
    CHECK(pthread_join(opening, NULL) == 0);
    for (size_t i = 0; i < READING; i++)
        CHECK(pthread_join(reading[i], NULL) == 0);
}

int main(void)
{
    test_begin(child_seconds(SECONDS));
    memset(line, 'x', LINE_BYTES);
    line[LINE_BYTES - 1] = '\n';
    fork_once(); /* without other threads, before there were any */
    atomic_store(&forks_left, test_scale(80, 10000));
    amid_threads();
    fork_once(); /* and after */
    return test_end();
}
