/*
 * peak_idle.c - a peak, then little, then nothing at all: what is given back to the system?
 *
 * usage: peak_idle [PEAK_MIB [KEPT_PERCENT [IDLE_MS]]]       200, 5 and 5,000 unless given
 *
 * It imitates a server after its busiest minute. Blocks of 16 to 4,096 bytes, small ones likelier,
 * are taken and written until PEAK_MIB MiB are live; then all but KEPT_PERCENT of them, drawn at
 * random, are freed; then the program sleeps. An operation is a malloc or a free. Besides the time:
 *   freed_rss_kib   resident memory right after the frees
 *   idle_rss_kib    and at the end of the sleep
 *   kept_ratio      that over what is still live
 */
#include "workload.h"

enum { LEAST_SHIFT = 4, SHIFTS = 8 };

static struct slot {
    void *block;
    uint32_t size;
} *slots;

/* 16 to 4,096 bytes; of each doubling as many. */
static uint32_t draw_size(uint64_t *state)
{
    uint32_t base = 1u << (LEAST_SHIFT + random_between(state, 0, SHIFTS - 1));
    return base + (uint32_t)(random_next(state) >> 20) % base;
}

static void sleep_ms(long ms)
{
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&pause, &pause) != 0)
        continue;
}

int main(int argc, char **argv)
{
    if (argc > 4) {
        fprintf(stderr, "usage: %s [PEAK_MIB [KEPT_PERCENT [IDLE_MS]]]\n", argv[0]);
        return 2;
    }
    uint64_t peak = (argc > 1 ? (uint64_t)number_argument(argv[1], 1, 100000) : 200) << 20;
    uint32_t kept = argc > 2 ? (uint32_t)number_argument(argv[2], 0, 100) : 5;
    long idle_ms = argc > 3 ? number_argument(argv[3], 0, 3600000) : 5000;
    uint64_t state = 0x9e3779b97f4a7c15u;
    size_t count = 0,
           room = peak >> LEAST_SHIFT >> 2; /* a quarter of what the smallest would need */
    int64_t live = 0;
    slots = memory_of_our_own(room * sizeof *slots);

    uint64_t start = now_ns();
    for (; count < room && (uint64_t)live < peak; count++) {
        uint32_t size = draw_size(&state);
        slots[count] = (struct slot){malloc(size), size};
        if (slots[count].block == NULL)
            die("malloc");
        memset(slots[count].block, 1, size);
        meter_set(0, live += size);
    }
    uint64_t operations = count;
    for (size_t i = 0; i < count; i++) {
        if (random_between(&state, 0, 99) < kept)
            continue;
        free(slots[i].block);
        meter_set(0, live -= slots[i].size);
        operations++;
    }
    uint64_t end = now_ns();
    long freed = rss_kib(), own = (long)(room * sizeof *slots / 1024);
    sleep_ms(idle_ms);
    long idle = rss_kib();
    printf("freed_rss_kib=%ld idle_rss_kib=%ld kept_ratio=%.3f ", freed - own, idle - own,
           (double)(idle - own) * 1024 / (double)(live > 0 ? live : 1));
    print_figures(operations, (double)(end - start) / (double)operations);
    return 0;
}
