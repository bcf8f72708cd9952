/*
 * A program that uses its heap and leaves in the way that its argument says; for the tests of
 * statistics.
 *
 *     leaving WAY       see main
 */
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

/* ---- Little room ---- */

/* A request on an alternate stack of 8 KiB, as some languages' threads have, with a guard below. */
static void request_on_small_stack(void)
{
    enum { PAGE = 4096, ROOM = 8192 };
    char *memory =
        mmap(NULL, PAGE + ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t other = {.ss_sp = memory + PAGE, .ss_size = ROOM};
    if (memory == MAP_FAILED || mprotect(memory, PAGE, PROT_NONE) != 0 ||
        sigaltstack(&other, NULL) != 0)
        exit(9);
    raise(SIGUSR2);
    other.ss_flags = SS_DISABLE;
    sigaltstack(&other, NULL);
}

static void *print_to_stderr(void *argument)
{
    malloc_stats();
    return argument;
}

/* In a thread with the least stack that there is. */
static void print_on_small_stack(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
    if (pthread_create(&thread, &attributes, print_to_stderr, NULL) != 0)
        exit(9);
    pthread_join(thread, NULL);
}

/* ---- A peak after threads ---- */

enum { ENDED_THREADS = 100, PEAK_BLOCKS = 60, PEAK_BYTES = 1 << 20 };

static pthread_barrier_t all_are_there;

static void *use_and_end(void *argument)
{
    for (size_t i = 0; i < 2000; i++)
        free(malloc(i % 900));
    pthread_barrier_wait(&all_are_there);
    return argument;
}

static void reach_peak_after_threads(void)
{
    static void *volatile blocks[PEAK_BLOCKS];
    pthread_t threads[ENDED_THREADS];
    pthread_barrier_init(&all_are_there, NULL, ENDED_THREADS);
    for (size_t i = 0; i < ENDED_THREADS; i++)
        if (pthread_create(&threads[i], NULL, use_and_end, NULL) != 0)
            exit(9);
    for (size_t i = 0; i < ENDED_THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < PEAK_BLOCKS; i++)
        memset(blocks[i] = malloc(PEAK_BYTES), 1, PEAK_BYTES);
    for (size_t i = 0; i < PEAK_BLOCKS; i++)
        free(blocks[i]);
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
    if (strcmp(way, "request_small") == 0)
        request_on_small_stack();
    if (strcmp(way, "print_small") == 0)
        print_on_small_stack();
    if (strcmp(way, "peak") == 0)
        reach_peak_after_threads();
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
