/*
 * count_slow.c - rounds that count_slow.sh and count_locked.py count instructions of.
 *
 * usage: count_slow BLOCKS TIMES [BYTES]
 *
 * Takes BLOCKS blocks of 64 bytes and frees them in the same order, TIMES times. How many there are
 * decides how far a round goes down: few stay within one magazine, more exchange it for the spare,
 * many reach the depot or the slabs. The two halves are functions of their own, so that callgrind
 * can count each without the other. With BYTES the blocks are of that size, and a second thread
 * sleeps meanwhile: an allocator may take its locks without atomic instructions where there is
 * none.
 */
#include <pthread.h>
#include <unistd.h>

#include "workload.h"

enum { BLOCKS_MOST = 4096 };

static void *blocks[BLOCKS_MOST];
static size_t bytes = 64;

__attribute__((noinline)) static void take_all(long count)
{
    for (long i = 0; i < count; i++)
        blocks[i] = malloc(bytes);
}

__attribute__((noinline)) static void give_all(long count)
{
    for (long i = 0; i < count; i++)
        free(blocks[i]);
}

static void *sleep_on(void *nothing)
{
    for (;;)
        pause();
    return nothing;
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: %s BLOCKS TIMES [BYTES]\n", argv[0]);
        return 2;
    }
    pthread_t sleeper;
    if (argc == 4) {
        bytes = (size_t)number_argument(argv[3], 1, 1 << 30);
        if (pthread_create(&sleeper, NULL, sleep_on, NULL) != 0)
            return 1;
    }
    long count = number_argument(argv[1], 1, BLOCKS_MOST);
    long times = number_argument(argv[2], 0, 1000000);
    for (long i = 0; i < times; i++) {
        take_all(count);
        give_all(count);
    }
    return 0;
}
