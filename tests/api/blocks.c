/*
 * A program with blocks of every kind, for gdb.py: the debugger stops it at `here`.
 */
#include <stdio.h>
#include <stdlib.h>

void here(char **blocks);

__attribute__((noinline)) void here(char **blocks)
{
    printf("%p\n", (void *)blocks[0]);
    fflush(stdout);
}

int main(int count, char **arguments)
{
    static char *blocks[6];
    (void)arguments;
    for (int i = 0; i < 100; i++)
        blocks[0] = malloc(40);
    for (int i = 0; i < 100; i++) {
        blocks[1] = malloc(72);
        free(blocks[1]);
    }
    blocks[2] = malloc(5000);
    blocks[3] = malloc(300000);
    blocks[4] = malloc(5000001);
    blocks[5] = (char *)blocks;
    here(blocks);
    if (count > 1)
        abort();
    return 0;
}
