/*
 * greeting.c - the program that options.py runs: it allocates, greets on stdout, and ends with 42.
 *
 *   greeting [double-free | threads | fork | exec]
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static void *in_a_thread(void *argument)
{
    for (size_t size = 1; size < 5000; size++)
        free(opaque(malloc(size)));
    return argument;
}

static void start_threads(void)
{
    pthread_t threads[8];
    for (size_t i = 0; i < 8; i++)
        CHECK(pthread_create(&threads[i], NULL, in_a_thread, NULL) == 0);
    for (size_t i = 0; i < 8; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    test_begin(20);
    in_a_thread(NULL);
    if (strcmp(mode, "double-free") == 0) {
        void *block = opaque(malloc(64));
        free(block);
        free(opaque(block));
    }
    if (strcmp(mode, "threads") == 0)
        start_threads();
    if (strcmp(mode, "fork") == 0) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
            exit(0);
        check_child(pid, "the forked child");
    }
    if (strcmp(mode, "exec") == 0) {
        execl(argv[0], argv[0], (char *)NULL);
        return 1;
    }
    puts("hello from a program that allocates");
    return 42;
}
