/*
 * count_pair.c - the loop that count.sh counts instructions of.
 *
 * usage: count_pair pair|empty TIMES
 *
 * `pair` takes and frees a block of 64 bytes TIMES times, `empty` calls two functions that do
 * nothing, in a shared library, instead. Runs with different TIMES differ by the instructions of
 * the loop alone.
 */
#include <string.h>

#include "empty_calls.h"
#include "workload.h"

int main(int argc, char **argv)
{
    if (argc != 3 || (strcmp(argv[1], "pair") != 0 && strcmp(argv[1], "empty") != 0)) {
        fprintf(stderr, "usage: %s pair|empty TIMES\n", argv[0]);
        return 2;
    }
    long times = number_argument(argv[2], 0, 1000000000);
    if (argv[1][0] == 'p')
        for (long i = 0; i < times; i++)
            free(malloc(64));
    else
        for (long i = 0; i < times; i++)
            empty_free(empty_malloc(64));
    return 0;
}
