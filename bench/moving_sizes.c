/*
 * moving_sizes.c - blocks whose sizes move on, of which a few stay each time.
 *
 * usage: moving_sizes FIRST LAST STEP MIB KEEP [ROUNDS]
 *
 * It imitates a program that goes through its data in stages: rows get a column more, nodes of a
 * tree of another kind follow. For each size from FIRST to LAST bytes, STEP apart, up or down, MIB
 * MiB of blocks are taken, and all but each KEEPth freed in the order in which they were taken.
 * After the last size all that stayed is freed; ROUNDS times, 1 unless given. The first and the
 * last byte of each block are written. An operation is a malloc and its free.
 */
#include "workload.h"

enum { MOST_BLOCKS = 1 << 22 };

static unsigned char **blocks; /* those of this size */
static unsigned char **stay;   /* what stayed so far, of all sizes */
static size_t stayed;

/* Takes `bytes` of a size and frees most; adds to `*kept` what stays. Returns how many blocks there
 * were. */
static size_t one_stage(size_t size, size_t bytes, size_t keep, int64_t *kept)
{
    size_t count = bytes / size;
    if (count > MOST_BLOCKS || stayed + count / keep >= MOST_BLOCKS) {
        fprintf(stderr, "more than %d blocks\n", MOST_BLOCKS);
        exit(2);
    }
    for (size_t i = 0; i < count; i++) {
        unsigned char *block = malloc(size);
        if (block == NULL)
            die("malloc");
        block[0] = block[size - 1] = (unsigned char)size;
        blocks[i] = block;
    }
    meter_set(0, *kept + (int64_t)(count * size));
    for (size_t i = 0; i < count; i++) {
        if ((i + 1) % keep != 0) {
            free(blocks[i]);
            continue;
        }
        stay[stayed++] = blocks[i];
        *kept += (int64_t)size;
    }
    meter_set(0, *kept);
    return count;
}

static size_t all_stages(long first, long last, long step, size_t bytes, size_t keep)
{
    size_t count = 0;
    int64_t kept = 0;
    long way = first <= last ? step : -step;
    for (long size = first; way > 0 ? size <= last : size >= last; size += way)
        count += one_stage((size_t)size, bytes, keep, &kept);
    while (stayed > 0)
        free(stay[--stayed]);
    meter_set(0, 0);
    return count;
}

int main(int argc, char **argv)
{
    if (argc < 6 || argc > 7) {
        fprintf(stderr, "usage: %s FIRST LAST STEP MIB KEEP [ROUNDS]\n", argv[0]);
        return 2;
    }
    long first = number_argument(argv[1], 1, 1 << 20), last = number_argument(argv[2], 1, 1 << 20);
    long step = number_argument(argv[3], 1, 1 << 20);
    size_t bytes = (size_t)number_argument(argv[4], 1, 1 << 16) << 20;
    size_t keep = (size_t)number_argument(argv[5], 1, MOST_BLOCKS);
    long rounds = argc == 7 ? number_argument(argv[6], 1, 1000) : 1;
    size_t smallest = (size_t)(first < last ? first : last), most = bytes / smallest + 1;
    blocks = memory_of_our_own((most < MOST_BLOCKS ? most : MOST_BLOCKS) * sizeof *blocks);
    size_t stages = (size_t)(first < last ? last - first : first - last) / (size_t)step + 1;
    size_t may_stay = stages * (most / keep + 1);
    stay = memory_of_our_own((may_stay < MOST_BLOCKS ? may_stay : MOST_BLOCKS) * sizeof *stay);

    uint64_t operations = 0, start = now_ns();
    for (long i = 0; i < rounds; i++)
        operations += all_stages(first, last, step, bytes, keep);
    uint64_t end = now_ns();
    print_figures(operations, (double)(end - start) / (double)operations);
    return 0;
}
