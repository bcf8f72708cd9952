/*
 * foreign.c - trap 7: a block of another allocator is handed to the process's free or realloc.
 *
 *   foreign CASE SIZE      CASE: static, mapped or libc, and -free or -realloc
 *
 * It says "bad ADDRESS" on stdout first. foreign.py expects the diagnosis, or, in warn mode, an
 * untouched block and a consistent heap: nothing may have been written into the foreign memory.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

extern void *own_static(size_t size);
extern void *own_mapped(size_t size);
extern void *own_libc(size_t size);

static void *foreign_block(const char *name, size_t size)
{
    void *block = NULL;
    if (strncmp(name, "static", 6) == 0)
        block = own_static(size);
    if (strncmp(name, "mapped", 6) == 0)
        block = own_mapped(size);
    if (strncmp(name, "libc", 4) == 0)
        block = own_libc(size);
    CHECK(block != NULL);
    return opaque(block);
}

int main(int argc, char **argv)
{
    test_begin(20);
    CHECK(argc == 3);
    size_t size = strtoul(argv[2], NULL, 0);
    for (size_t i = 1; i < 2000; i++)
        free(opaque(malloc(i))); /* magazines are in use */
    void *block = foreign_block(argv[1], size);
    pattern_fill(block, size, 1);
    dprintf(STDOUT_FILENO, "bad %p\n", block);
    if (strstr(argv[1], "-realloc") != NULL) {
        void *moved = opaque(realloc(block, size * 2));
        CHECK(moved == NULL || moved != block);
    } else {
        free(block);
    }
    for (size_t i = 1; i < 2000; i++) {
        void *other = opaque(malloc(i));
        CHECK(other != NULL && other != block);
        memset(other, 0x99, i);
        free(other);
    }
    check_heap();
    CHECK_MSG(pattern_holds(block, size, size, 1), "the foreign block was written to");
    dprintf(STDOUT_FILENO, "end\n");
    return 0;
}
