/*
 * faulty.c - a malloc that is wrong on purpose, to see that the comparisons notice.
 *
 * It hands out blocks of the system's malloc. About one block in a thousand is watched, and as soon
 * as it holds text, one letter of that is changed while the program still uses it. Only letters
 * inside a longer run of letters are touched, so that a program need not crash: the silent fault
 * is the hard one to see.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum {
    EACH = 1000,       /* one block in so many is watched, */
    PATIENCE = 60,     /* for so many allocations, or until it is freed */
    SMALLEST = 16,     /* bytes; shorter blocks hold pointers more often than text */
    RUN_OF_LETTERS = 6 /* what counts as text */
};

extern void *__libc_malloc(size_t size); /* the system's, without a dlsym that might allocate */
extern void *__libc_realloc(void *block, size_t size);
extern void __libc_free(void *block);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long calls, next_watch = EACH;
static char *watched;
static size_t watched_size;

/* Changes the last letter of the first run of letters; says whether there was one. */
static bool spoil(char *block, size_t size)
{
    size_t letters = 0;
    for (size_t i = 0; i < size; i++) {
        letters = isalpha((unsigned char)block[i]) ? letters + 1 : 0;
        if (letters == RUN_OF_LETTERS) {
            block[i] = block[i] == 'x' ? 'y' : 'x';
            return true;
        }
    }
    return false;
}

static void count_and_watch(char *block, size_t size)
{
    pthread_mutex_lock(&lock);
    calls++;
    if (watched != NULL &&
        (spoil(watched, watched_size) || calls == next_watch - EACH + PATIENCE)) {
        watched = NULL;
    } else if (watched == NULL && calls >= next_watch && size >= SMALLEST && block != NULL) {
        watched = block;
        watched_size = size;
        next_watch = calls + EACH;
    }
    pthread_mutex_unlock(&lock);
}

static void forget(void *block)
{
    pthread_mutex_lock(&lock);
    if (watched == block)
        watched = NULL;
    pthread_mutex_unlock(&lock);
}

__attribute__((visibility("default"))) void *malloc(size_t size)
{
    void *block = __libc_malloc(size);
    count_and_watch(block, size);
    return block;
}

__attribute__((visibility("default"))) void free(void *block)
{
    if (block != NULL)
        forget(block);
    __libc_free(block);
}

__attribute__((visibility("default"))) void *realloc(void *block, size_t size)
{
    if (block != NULL)
        forget(block);
    void *moved = __libc_realloc(block, size);
    count_and_watch(moved, size);
    return moved;
}
