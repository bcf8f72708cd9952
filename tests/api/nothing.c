/*
 * nothing.c - a program that takes no memory: it writes what the kernel says about its mappings to
 * stdout, by system calls alone, and ends. For resident.py.
 */
#include <fcntl.h>
#include <unistd.h>

int main(void)
{
    static char text[4096];
    int maps = open("/proc/self/smaps", O_RDONLY);
    if (maps < 0)
        return 77;
    for (ssize_t bytes; (bytes = read(maps, text, sizeof(text))) > 0;)
        if (write(STDOUT_FILENO, text, (size_t)bytes) != bytes)
            return 1;
    return 0;
}
