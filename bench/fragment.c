/*
 * fragment.c - a long run in which sizes drift slowly: does the memory that is lost creep up?
 *
 * usage: fragment [OPERATIONS [LIVE [csv]]]      50,000,000 and 5,000 unless given
 *
 * It imitates a service that runs for weeks while what it is asked changes. LIVE blocks are live.
 * An operation replaces one of them, drawn at random, by one of a size around the middle of that
 * time, which goes up from 256 bytes to 16 KiB and down again twenty times in the run: a quarter of
 * it to four times as much. So what is free is always of sizes that are asked for less and less.
 * Blocks are written whole. Printed are, besides the time,
 *   first_ratio  resident over requested bytes at the end of the second wave
 *   last_ratio   the same at the end of the last: higher, if memory was lost in between
 *
 * With `csv`, 400 lines instead: operations done, bytes requested for what is live, resident bytes
 * (/proc/self/statm), and their ratio.
 */
#include <math.h>
#include <stdbool.h>

#include "workload.h"

enum { WAVES = 20, LINES = 400, MOST_LIVE = 1000000 };

static const double LEAST_MIDDLE = 256, MOST_MIDDLE = 16384;

static struct slot {
    void *block;
    size_t size;
} *slots;
static size_t live_bytes;

/* Resident bytes, from a file that is kept open. */
static size_t resident_bytes(void)
{
    static int file = -1;
    char text[128];
    if (file < 0)
        file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = pread(file, text, sizeof text - 1, 0);
    if (length <= 0)
        die("/proc/self/statm");
    text[length] = '\0';
    const char *second = strchr(text, ' ');
    return second == NULL ? 0 : strtoul(second, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

/* The middle of the sizes: a wave between its limits, on a logarithmic scale. */
static double middle_at(double done)
{
    double phase = done * WAVES;
    double up = phase - floor(phase);
    up = up < 0.5 ? 2 * up : 2 - 2 * up;
    return LEAST_MIDDLE * pow(MOST_MIDDLE / LEAST_MIDDLE, up);
}

static void replace(struct slot *slot, size_t size)
{
    free(slot->block);
    live_bytes += size - slot->size;
    slot->size = size;
    slot->block = malloc(size);
    if (slot->block == NULL)
        die("malloc");
    memset(slot->block, 1, size);
}

/* From `least` to sixteen times as much; small ones are as likely per doubling as large ones. */
static size_t draw_size(uint64_t *state, size_t least)
{
    size_t base = least << random_between(state, 0, 3);
    return base + random_next(state) % base;
}

static double ratio(void)
{
    return (double)resident_bytes() / (double)live_bytes;
}

/* Does the operations of one line; returns the time. */
static uint64_t run_line(uint64_t *state, size_t live, unsigned long done, unsigned long until,
                         unsigned long operations)
{
    size_t least = (size_t)(middle_at((double)done / (double)operations) / 4);
    uint64_t start = now_ns();
    for (; done < until; done++)
        replace(&slots[random_next(state) % live], draw_size(state, least));
    meter_set(0, (int64_t)live_bytes);
    return now_ns() - start;
}

int main(int argc, char **argv)
{
    unsigned long operations =
        argc > 1 ? (unsigned long)number_argument(argv[1], LINES, 1000000000000) : 50000000;
    size_t live = argc > 2 ? (size_t)number_argument(argv[2], 1, MOST_LIVE) : 5000;
    uint64_t state = 0x9e3779b97f4a7c15u;
    slots = memory_of_our_own(live * sizeof *slots);
    size_t least = (size_t)(LEAST_MIDDLE / 4);
    for (size_t i = 0; i < live; i++)
        replace(&slots[i], draw_size(&state, least));
    bool csv = argc > 3 && strcmp(argv[3], "csv") == 0;
    if (csv)
        printf("operations,live_bytes,resident_bytes,ratio\n");
    unsigned long done = 0;
    uint64_t time = 0;
    double first = 0;
    for (unsigned line = 1; line <= LINES; line++) {
        unsigned long until = (unsigned long)((double)operations * line / LINES);
        time += run_line(&state, live, done, until, operations);
        done = until;
        if (csv)
            printf("%lu,%zu,%zu,%.4f\n", done, live_bytes, resident_bytes(), ratio());
        if (line == 2 * LINES / WAVES)
            first = ratio();
    }
    if (csv)
        return 0;
    printf("first_ratio=%.4f last_ratio=%.4f ", first, ratio());
    print_figures(operations, (double)time / (double)operations);
    return 0;
}
