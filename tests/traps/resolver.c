/*
 * resolver.c - trap 17: the program asks for memory while the loader still relocates it, in the
 * resolver of an IFUNC: no constructor has run, libc has no environ, and the first thread's own
 * variables are not filled in yet. The blocks stay, and go back when all is up.
 */
#include "check.h"

enum { BLOCKS = 200, STEP = 997 }; /* small, medium and large ones */

static unsigned char *blocks[BLOCKS];
static int resolved;

static size_t bytes_of(int block)
{
    return (size_t)block * STEP + 1;
}

static int answer(void)
{
    return 42;
}

/* Calls nothing but malloc and its like: what else the program knows may not be relocated yet. */
int (*resolve(void))(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = i % 2 == 0 ? malloc(bytes_of(i)) : calloc(1, bytes_of(i));
        if (i % 3 == 0)
            blocks[i] = realloc(blocks[i], bytes_of(i) + STEP);
        for (size_t at = 0; at < bytes_of(i); at++)
            blocks[i][at] = (unsigned char)i;
        free(malloc(bytes_of(i)));
    }
    resolved++;
    return answer;
}

int asked(void) __attribute__((ifunc("resolve")));

int main(void)
{
    test_begin(60);
    CHECK(asked() == 42 && resolved == 1);
    for (int i = 0; i < BLOCKS; i++) {
        for (size_t at = 0; at < bytes_of(i); at++)
            CHECK(blocks[i][at] == (unsigned char)i);
        free(blocks[i]);
    }
    for (int i = 0; i < BLOCKS * 100; i++)
        free(malloc(bytes_of(i % BLOCKS)));
    return test_end();
}
