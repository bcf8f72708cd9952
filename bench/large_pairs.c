/*
 * large_pairs.c - a large block, freed before the next.
 *
 * usage: large_pairs LOW HIGH [OPERATIONS]       bytes; 100,000 unless given
 *
 * It imitates a loop with a buffer of its own: a decoder's picture, a request's body, a matrix. An
 * operation is a malloc and its free. With LOW and HIGH the same it is one size for ever; otherwise
 * sizes are drawn, each power of two between them as likely as the others. Only the first byte is
 * written: what the pages cost is the matter of `big`, here it is what the allocator does for a
 * block that it just had.
 */
#include "workload.h"

enum { LEAST = 1 << 10 };

static const long most = 4L << 30;

/* LOW to HIGH, by powers of two, and any size between one and the next. */
static size_t draw_size(uint64_t *state, size_t low, uint32_t doublings, size_t high)
{
    size_t least = low << random_between(state, 0, doublings);
    size_t size = least + random_next(state) % least;
    return size < high ? size : high;
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: %s LOW HIGH [OPERATIONS]\n", argv[0]);
        return 2;
    }
    size_t low = (size_t)number_argument(argv[1], LEAST, most);
    size_t high = (size_t)number_argument(argv[2], (long)low, most);
    long operations = argc == 4 ? number_argument(argv[3], 1, 1000000000000) : 100000;
    uint64_t state = 0x9e3779b97f4a7c15u;
    uint32_t doublings = 0;
    while (low << (doublings + 1) < high)
        doublings++;

    uint64_t start = now_ns();
    for (long i = 0; i < operations; i++) {
        size_t size = low == high ? low : draw_size(&state, low, doublings, high);
        unsigned char *block = malloc(size);
        if (block == NULL)
            die("malloc");
        block[0] = 1;
        meter_set(0, (int64_t)size);
        free(block);
    }
    uint64_t end = now_ns();
    meter_set(0, 0);
    print_figures((uint64_t)operations, (double)(end - start) / (double)operations);
    return 0;
}
