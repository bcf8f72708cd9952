/*
 * peaks.c - memory that goes up and down: a program fills so many MiB, frees them in a random
 * order, and does that again after a gap, or then falls idle and looks at how much of it stays
 * resident.
 *
 *   peaks [--mib=1024] [--sizes=small|medium|large|all] [--rounds=1] [--gap-ms=1000]
 *         [--watch-s=0] [--csv=NAME]
 *
 * Sizes are random: small 16 to 1,024 bytes, medium 1 to 100 KiB, large 0.1 to 8 MiB, all: of each
 * a third. Every block is written to. In a gap, and while it watches, the program sleeps and calls
 * nothing. It prints what each round took, then the peak, then a line for every half second that it
 * watches; with --csv=NAME only lines `NAME,seconds,resident_kib`.
 */
#include "workload.h"

#include <stdbool.h>

enum { SIZES = 4, BLOCKS_MOST = 1 << 23, SAMPLE_MS = 500 };

static const char *const size_names[SIZES] = {"small", "medium", "large", "all"};
static const uint32_t size_least[SIZES - 1] = {16, 1024, 100 * 1024};
static const uint32_t size_most[SIZES - 1] = {1024, 100 * 1024, 8 << 20};

static long mib = 1024, rounds = 1, gap_ms = 1000, watch_s;
static int sizes = 3;
static const char *csv;

static void **blocks;

static uint32_t next_size(uint64_t *random, uint64_t bytes, uint64_t all)
{
    /* Of all kinds: a third of the bytes each. */
    int kind = sizes < SIZES - 1 ? sizes : (int)(bytes * 3 / all);
    return random_between(random, size_least[kind], size_most[kind]);
}

static size_t fill(uint64_t *random)
{
    uint64_t all = (uint64_t)mib << 20;
    size_t count = 0;
    for (uint64_t bytes = 0; bytes < all && count < BLOCKS_MOST; count++) {
        uint32_t size = next_size(random, bytes, all);
        blocks[count] = malloc(size);
        if (blocks[count] == NULL)
            die("malloc");
        memset(blocks[count], 1, size);
        bytes += size;
    }
    return count;
}

static void free_in_random_order(uint64_t *random, size_t count)
{
    for (; count > 0; count--) {
        size_t i = random_next(random) % count;
        free(blocks[i]);
        blocks[i] = blocks[count - 1];
    }
}

static void sleep_ms(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0)
        continue;
}

static void watch(uint64_t start)
{
    for (long sample = 0; sample <= watch_s * 1000 / SAMPLE_MS; sample++) {
        if (sample != 0)
            sleep_ms(SAMPLE_MS);
        double seconds = (double)(now_ns() - start) / 1e9;
        if (csv != NULL)
            printf("%s,%.1f,%ld\n", csv, seconds, rss_kib());
        else
            printf("after_s=%.1f rss_kib=%ld\n", seconds, rss_kib());
    }
}

static bool text_option(const char *argument, const char *name, const char **value)
{
    size_t length = strlen(name);
    if (strncmp(argument, name, length) != 0)
        return false;
    *value = argument + length;
    return true;
}

static void read_arguments(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value;
        if (text_option(argv[i], "--mib=", &value)) {
            mib = number_argument(value, 1, 1 << 16);
        } else if (text_option(argv[i], "--rounds=", &value)) {
            rounds = number_argument(value, 1, 1000000);
        } else if (text_option(argv[i], "--gap-ms=", &value)) {
            gap_ms = number_argument(value, 0, 1000000);
        } else if (text_option(argv[i], "--watch-s=", &value)) {
            watch_s = number_argument(value, 0, 1000000);
        } else if (text_option(argv[i], "--csv=", &csv)) {
            continue;
        } else if (text_option(argv[i], "--sizes=", &value)) {
            for (sizes = 0; sizes < SIZES && strcmp(value, size_names[sizes]) != 0;)
                sizes++;
            if (sizes == SIZES) {
                fprintf(stderr, "peaks: --sizes is small, medium, large or all\n");
                exit(2);
            }
        } else {
            fprintf(stderr, "peaks: %s is not an argument; see the beginning of peaks.c\n",
                    argv[i]);
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv);
    blocks = mmap(NULL, BLOCKS_MOST * sizeof *blocks, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (blocks == MAP_FAILED)
        die("mmap");
    uint64_t random = 88172645463325252u, work = 0;
    for (long round = 0; round < rounds; round++) {
        if (round != 0)
            sleep_ms(gap_ms);
        uint64_t start = now_ns();
        size_t count = fill(&random);
        long filled = rss_kib();
        uint64_t middle = now_ns();
        free_in_random_order(&random, count);
        uint64_t end = now_ns();
        madvise(blocks, BLOCKS_MOST * sizeof *blocks, MADV_DONTNEED); /* only malloc's counts */
        work += end - start;
        if (csv == NULL)
            printf("round=%ld blocks=%zu fill_ms=%.1f free_ms=%.1f filled_kib=%ld rss_kib=%ld\n",
                   round, count, (double)(middle - start) / 1e6, (double)(end - middle) / 1e6,
                   filled, rss_kib());
    }
    if (csv == NULL)
        printf("rounds=%ld work_ms=%.1f peak_rss_kib=%ld\n", rounds, (double)work / 1e6,
               peak_rss_kib());
    watch(now_ns());
    return 0;
}
