/*
 * fork_early_handler.c - handlers of fork that were registered before the allocator's own, as those
 * of a program's earliest code, which it is linked with statically: they run while the allocator
 * holds all its locks, and allocate all the same.
 *
 * Fault it finds: the thread that forks waits for a lock that it holds itself.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { FORKS = 20, SECONDS = 10, KEPT = 64 };

static unsigned calls;

/* Enough of each size to need more than a thread's cache has. */
static void use_memory(void)
{
    static const size_t sizes[] = {24, 1000, 5000, 100000, 3000000};
    static char *blocks[KEPT];
    for (size_t size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++) {
        size_t count = sizes[size] > 100000 ? 2 : KEPT;
        for (size_t i = 0; i < count; i++) {
            blocks[i] = opaque(malloc(sizes[size]));
            CHECK(blocks[i] != NULL);
            blocks[i][0] = blocks[i][sizes[size] - 1] = (char)i;
        }
        for (size_t i = 0; i < count; i++) {
            CHECK(blocks[i][0] == (char)i && blocks[i][sizes[size] - 1] == (char)i);
            free(blocks[i]);
        }
    }
    calls++;
}

static void in_child(void)
{
    alarm(SECONDS / 2); /* the watchdog is the parent's */
    use_memory();
}

static void register_early(void)
{
    pthread_atfork(use_memory, use_memory, in_child);
}

/* Before all constructors, but for those of a library that asks to be the first. */
__attribute__((used, section(".preinit_array"))) static void (*const early)(void) = register_early;

static void *wait_for_end(void *end)
{
    CHECK(pthread_mutex_lock(end) == 0); /* a process of one thread takes no locks to fork */
    return NULL;
}

int main(void)
{
    test_begin(SECONDS);
    pthread_mutex_t end = PTHREAD_MUTEX_INITIALIZER;
    pthread_t other;
    CHECK(pthread_mutex_lock(&end) == 0);
    CHECK(pthread_create(&other, NULL, wait_for_end, &end) == 0);
    for (unsigned i = 0; i < FORKS; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            CHECK(calls == 2 * i + 2);
            check_heap();
            _exit(0);
        }
        check_child(child, "a child");
        CHECK(calls == 2 * i + 2);
    }
    CHECK(pthread_mutex_unlock(&end) == 0);
    CHECK(pthread_join(other, NULL) == 0);
    return test_end();
}
