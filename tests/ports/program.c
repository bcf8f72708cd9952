/*
 * What must work on every port: threads that take, resize and free blocks of all sizes through
 * malloc's own names, with their contents checked; a fork; and the invariants at the end.
 * Prints "ok" and exits 0, or says what failed. An argument says how many steps each thread takes.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "snug/snug.h"

enum { THREADS = 4, SLOTS = 500, STEPS = 20000 };

static int steps = STEPS;

struct slot {
    unsigned char *block;
    size_t size;
};

static void fail(const char *what)
{
    printf("FAILED: %s\n", what);
    fflush(stdout);
    _exit(1);
}

static size_t next_size(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    unsigned bits = 4 + (unsigned)(*state >> 60);
    return (size_t)(*state >> 20) & (((size_t)1 << bits) - 1);
}

static void check_and_free(struct slot *slot, unsigned char mark)
{
    for (size_t i = 0; i < slot->size; i += 61)
        if (slot->block[i] != mark)
            fail("a block's contents changed");
    free(slot->block);
    slot->block = NULL;
}

static void *work(void *argument)
{
    uint64_t state = (uintptr_t)argument * 77 + 1;
    unsigned char mark = (unsigned char)(uintptr_t)argument;
    struct slot slots[SLOTS] = {{NULL, 0}};
    for (int step = 0; step < steps; step++) {
        struct slot *slot = &slots[(size_t)step * 7919 % SLOTS];
        if (slot->block != NULL)
            check_and_free(slot, mark);
        slot->size = next_size(&state);
        slot->block = malloc(slot->size);
        if (slot->block == NULL || (uintptr_t)slot->block % 16 != 0)
            fail("malloc gave nothing, or nothing aligned");
        if (step % 5 == 0) {
            slot->size = next_size(&state);
            slot->block = realloc(slot->block, slot->size + 1);
        }
        memset(slot->block, mark, slot->size);
    }
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].block != NULL)
            check_and_free(&slots[i], mark);
    return NULL;
}

int main(int count, char **words)
{
    if (count > 1)
        steps = atoi(words[1]);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(i + 1)) != 0)
            fail("no thread");
    pid_t child = fork();
    if (child == 0) {
        work((void *)9);
        _exit(snug_check());
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0)
        fail("the child of a fork");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (snug_check() != 0)
        fail("snug_check");
    if (malloc_usable_size(NULL) != 0 || snug_malloc_usable_size(NULL) != 0)
        fail("malloc_usable_size(NULL)");
    puts("ok");
    return 0;
}
