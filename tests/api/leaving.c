/*
 * A program that uses its heap and leaves in the way that its argument says; for statistics.py.
 *
 *     leaving WAY       return, exit, quick_exit, _exit, abort, fault, kill NAME, wait, handle,
 * fork, work, overflow
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void use_heap(size_t count)
{
    static void *volatile kept[64];
    for (size_t i = 0; i < count; i++) {
        free(kept[i % 64]);
        kept[i % 64] = malloc(i * 7919 % 5000 + 1);
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
    if (strcmp(way, "fork") == 0) {
        for (unsigned i = 0; i < 3; i++)
            if (fork() == 0) {
                use_heap(1000);
                exit(0);
            }
        while (wait(NULL) > 0)
            continue;
    }
    return 0;
}
