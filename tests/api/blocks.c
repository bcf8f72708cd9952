/*
 * A program with blocks of every kind, in use and free, for gdb.py: the debugger stops it at
 * `here`.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

/* By name, for the debugger. */
struct blocks {
    char *small, *small_waiting, *small_free;
    char *medium, *medium_waiting, *medium_free;
    char *large, *large_free, *huge;
    char *foreign;
};

void here(struct blocks *blocks);

__attribute__((noinline)) void here(struct blocks *blocks)
{
    printf("%p\n", (void *)blocks->small);
    fflush(stdout);
}

/* A block between two that stay, by a thread that has taken a few. */
static char *take(size_t bytes)
{
    char *block = NULL;
    for (int i = 0; i < 60; i++) {
        char *next = malloc(bytes);
        if (i == 30)
            block = next;
    }
    return block;
}

int main(int count, char **arguments)
{
    static struct blocks blocks;
    (void)arguments;
    blocks.small = take(40);
    blocks.medium = take(5000);
    blocks.large = take(300000);
    blocks.huge = malloc(200000001);
    blocks.small_waiting = take(104);
    blocks.medium_waiting = take(9000);
    blocks.small_free = take(72);
    blocks.medium_free = take(6000);
    blocks.large_free = take(400000);
    free(blocks.small_free);
    free(blocks.medium_free);
    free(blocks.large_free);
    malloc_trim(0);
    free(blocks.small_waiting);
    free(blocks.medium_waiting);
    blocks.foreign = (char *)&blocks;
    here(&blocks);
    if (count > 1)
        abort();
    return 0;
}
