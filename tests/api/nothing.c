/*
 * nothing.c BLOCKS - a program that takes no memory, or so many small blocks, one after the other:
 * it writes what the kernel says about its mappings to stdout, by system calls alone, and ends. For
 * resident.py.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    static char text[4096];
    int blocks = count > 1 ? atoi(arguments[1]) : 0;
    for (int i = 0; i < blocks; i++) {
        char *block = malloc(64 + (size_t)i % 1000);
        if (block == NULL)
            return 1;
        memset(block, 1, 64);
        free(block);
    }
    int maps = open("/proc/self/smaps", O_RDONLY);
    if (maps < 0)
        return 77;
    for (ssize_t bytes; (bytes = read(maps, text, sizeof(text))) > 0;)
        if (write(STDOUT_FILENO, text, (size_t)bytes) != bytes)
            return 1;
    return 0;
}
