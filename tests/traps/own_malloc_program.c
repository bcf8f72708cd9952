/*
 * own_malloc_program.c - trap 7, the other way round: the program defines malloc itself, so the
 * preloaded allocator is there but is never this program's malloc. It must keep out of the way, at
 * start, at exit, in threads and in forked children.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char region[64 << 20] __attribute__((aligned(16)));
static size_t used;

/* Each block has its size before it; free keeps the memory. */
void *malloc(size_t size)
{
    size_t length = (size + 31) & ~(size_t)15;
    size_t start = __atomic_fetch_add(&used, length, __ATOMIC_RELAXED);
    if (start + length > sizeof region)
        return NULL;
    memcpy(region + start, &size, sizeof size);
    return region + start + 16;
}

void free(void *block)
{
    CHECK(block == NULL || (uintptr_t)block - (uintptr_t)region < sizeof region);
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size); /* no memory is used twice */
}

void *realloc(void *block, size_t size)
{
    void *moved = malloc(size);
    if (block == NULL || moved == NULL)
        return moved;
    size_t old = 0;
    memcpy(&old, (char *)block - 16, sizeof old);
    memcpy(moved, block, old < size ? old : size);
    return moved;
}

static void *work(void *argument)
{
    for (int i = 0; i < 100; i++) {
        char *copy = strdup("duplicated by libc with the program's own malloc");
        CHECK((uintptr_t)copy - (uintptr_t)region < sizeof region);
        free(copy);
    }
    return argument;
}

int main(void)
{
    alarm(20);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        work(NULL);
        exit(0);
    }
    check_child(pid, "the forked child");
    char *line = NULL;
    size_t length = 0;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file != NULL && getline(&line, &length, file) > 0);
    CHECK((uintptr_t)line - (uintptr_t)region < sizeof region);
    free(line);
    fclose(file);
    return 0;
}
