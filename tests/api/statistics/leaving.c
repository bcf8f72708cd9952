/*
 * A program that uses its heap and leaves in the way that its argument says; for the tests of
 * statistics.
 *
 *     leaving WAY       see main
 */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Blocks that are in use at a time: more than can wait in a thread's lists of free ones, so that
 * some requests find nothing there, and the statistics get to see the clock. */
enum { KEPT = 512 };

static void use_heap(size_t count)
{
    static void *volatile kept[KEPT];
    for (size_t i = 0; i < count; i++) {
        free(kept[i % KEPT]);
        kept[i % KEPT] = malloc(i * 7919 % 5000 + 1);
    }
    kept[0] = realloc(kept[0], 3000001);
    memset(kept[0], 1, 3000001);
}

static void handler(int number)
{
    static const char text[] = "handled\n";
    (void)number;
    if (write(1, text, sizeof(text) - 1) > 0)
        _exit(7);
}

static volatile int for_ever = 1;

static int overflow(volatile char *before)
{
    volatile char frame[4096];
    frame[0] = before == NULL ? 0 : before[0];
    return for_ever ? overflow(frame) + frame[0] : 0;
}

static int *volatile nowhere = NULL;

static void fault(void)
{
    *nowhere = 1;
}

/* Says that it is ready, then waits for a signal, using the heap now and then. */
static void wait_long(void)
{
    puts("ready");
    fflush(stdout);
    for (unsigned i = 0; i < 600; i++) {
        const struct timespec moment = {0, 50000000};
        nanosleep(&moment, NULL);
        use_heap(3000);
    }
}

/* ---- Threads that never rest ---- */

static void *use_for_ever(void *argument)
{
    void *volatile kept[KEPT] = {NULL};
    (void)argument;
    for (size_t i = 0;; i++) {
        free(kept[i % KEPT]);
        kept[i % KEPT] = malloc(i * 7919 % 5000 + 1);
    }
    return NULL;
}

static void start_threads(void)
{
    pthread_t thread;
    for (unsigned i = 0; i < 2; i++)
        if (pthread_create(&thread, NULL, use_for_ever, NULL) != 0)
            exit(9);
}

static void fork_children(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (fork() == 0) {
            use_heap(3000);
            exit(0);
        }
    }
    while (wait(NULL) > 0)
        continue;
}

static void *end_later(void *argument)
{
    const struct timespec moment = {0, 50000000};
    nanosleep(&moment, NULL);
    return argument;
}

static void leave_the_rest_to_a_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, end_later, NULL) == 0)
        pthread_exit(NULL);
}

/* Makes the allocator call the system in all the ways it does. */
static void use_mappings(void)
{
    static char *volatile block;
    for (size_t i = 1; i <= 8; i++) {
        block = malloc(i * 2000000);
        memset(block, 1, i * 2000000);
        block = realloc(block, i * 3000000);
        block = realloc(block, 1500000);
        free(block);
        use_heap(3000);
        malloc_trim(0);
    }
}

/* ---- What programs do with what the allocator would use at the end ---- */

static void close_streams(void)
{
    if (fclose(stdout) != 0 || fclose(stderr) != 0)
        _exit(9);
}

extern char **environ;

/* As setproctitle: copies the environment, and clears the place where it and the arguments were. */
static void set_title(char **arguments)
{
    size_t count = 0;
    char *end = arguments[0];
    for (char **each = arguments; *each != NULL; each++)
        end = *each + strlen(*each) + 1;
    for (; environ[count] != NULL; count++)
        end = environ[count] + strlen(environ[count]) + 1;
    char **copy = calloc(count + 1, sizeof(*copy));
    for (size_t i = 0; i < count; i++)
        copy[i] = strdup(environ[i]);
    environ = copy;
    memset(arguments[0], 0, (size_t)(end - arguments[0]));
}

int main(int count, char **arguments)
{
    const char *way = count > 1 ? arguments[1] : "return";
    use_heap(30000);
    if (strcmp(way, "exit") == 0)
        exit(3);
    if (strcmp(way, "quick_exit") == 0)
        quick_exit(4);
    if (strcmp(way, "_exit") == 0)
        _exit(5);
    if (strcmp(way, "abort") == 0)
        abort();
    if (strcmp(way, "fault") == 0)
        fault();
    if (strcmp(way, "overflow") == 0) {
        static char stack[64 * 1024];
        stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
        sigaltstack(&other, NULL);
        overflow(NULL);
    }
    if (strcmp(way, "handle") == 0) {
        signal(SIGTERM, handler);
        raise(SIGTERM);
    }
    if (strcmp(way, "wait") == 0)
        wait_long();
    if (strcmp(way, "work") == 0)
        for (unsigned i = 0; i < 100; i++)
            use_heap(20000);
    if (strcmp(way, "fork") == 0)
        fork_children(3);
    if (strcmp(way, "mappings") == 0)
        use_mappings();
    if (strcmp(way, "request") == 0)
        raise(SIGUSR2);
    if (strcmp(way, "close") == 0)
        atexit(close_streams);
    if (strcmp(way, "pthread_exit") == 0)
        leave_the_rest_to_a_thread();
    if (strcmp(way, "xml") == 0)
        return malloc_info(0, stdout);
    if (strcmp(way, "threads") == 0) {
        start_threads();
        puts("ready");
        fflush(stdout);
        use_for_ever(NULL);
    }
    if (strcmp(way, "threads_exit") == 0 || strcmp(way, "threads_fork") == 0) {
        const struct timespec moment = {0, 30000000};
        start_threads();
        nanosleep(&moment, NULL);
        if (strcmp(way, "threads_fork") == 0)
            fork_children(30);
    }
    if (strcmp(way, "title") == 0)
        set_title(arguments); /* WAY is no more */
    return 0;
}
