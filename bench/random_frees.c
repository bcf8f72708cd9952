/*
 * random_frees.c - blocks of one size, allocated and freed at random: each operation picks one of
 * so many places; what is there is freed, and where nothing is a block is allocated.
 *
 *   random_frees [OPERATIONS [PLACES [BYTES]]]     100000 1000 256 by default
 *
 * So about half of the places hold a block. The first word of each block is written. Prints the
 * operations, the time of one, and the peak memory; the system calls are counted from outside.
 */
#include "workload.h"

int main(int argc, char **argv)
{
    long operations = argc > 1 ? number_argument(argv[1], 1, 1000000000) : 100000;
    long places = argc > 2 ? number_argument(argv[2], 1, 100000000) : 1000;
    long bytes = argc > 3 ? number_argument(argv[3], 1, 1 << 30) : 256;
    void **place = memory_of_our_own((size_t)places * sizeof *place);

    uint64_t random = 88172645463325252u;
    uint64_t start = now_ns();
    for (long i = 0; i < operations; i++) {
        size_t at = (size_t)(((random_next(&random) >> 32) * (uint64_t)places) >> 32);
        if (place[at] != NULL) {
            free(place[at]);
            place[at] = NULL;
        } else {
            place[at] = malloc((size_t)bytes);
            if (place[at] == NULL)
                die("malloc");
            *(long *)place[at] = i;
        }
    }
    uint64_t end = now_ns();
    printf("operations=%ld places=%ld bytes=%ld ns_per_op=%.2f peak_rss_kib=%ld\n", operations,
           places, bytes, (double)(end - start) / (double)operations, peak_rss_kib());
    return 0;
}
