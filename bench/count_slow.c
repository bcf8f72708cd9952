/*
 * count_slow.c - rounds that count_slow.sh counts instructions of.
 *
 * usage: count_slow BLOCKS TIMES
 *
 * Takes BLOCKS blocks of 64 bytes and frees them in the same order, TIMES times. How many there are
 * decides how far a round goes down: few stay within one magazine, more exchange it for the spare,
 * many reach the depot or the slabs. The two halves are functions of their own, so that callgrind
 * can count each without the other.
 */
#include "workload.h"

enum { BLOCKS_MOST = 4096 };

static void *blocks[BLOCKS_MOST];

__attribute__((noinline)) static void take_all(long count)
{
    for (long i = 0; i < count; i++)
        blocks[i] = malloc(64);
}

__attribute__((noinline)) static void give_all(long count)
{
    for (long i = 0; i < count; i++)
        free(blocks[i]);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s BLOCKS TIMES\n", argv[0]);
        return 2;
    }
    long count = number_argument(argv[1], 1, BLOCKS_MOST);
    long times = number_argument(argv[2], 0, 1000000);
    for (long i = 0; i < times; i++) {
        take_all(count);
        give_all(count);
    }
    return 0;
}
