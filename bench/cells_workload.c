/*
 * cells_workload.c - medium blocks in a heap with many holes.
 *
 * 8,040 blocks are laid down in groups of 20: 19 small ones, 1 to 4 KiB, and then a large one, 20
 * to 128 KiB. All 402 large ones and every other small one, 4,020, are freed. What is left is full
 * of holes, most of them too small for a large block. Then all large blocks are taken again, in
 * order, and freed again, and so on: an allocator that looks for room by walking over its free
 * memory passes ten small holes for each large one.
 *
 * A run is 300 iterations on a heap that was laid down anew; the clock is read after 10, 15, ...
 * 300 of them. Each method has a run in each round, one after the other. The slope of the time over
 * the number of iterations is the time of one iteration, free of what comes once.
 *
 * The start of each block is written, as programs do.
 */
#include <math.h>

#include "cells.h"
#include "workload.h"

enum {
    BLOCKS = 8040,
    GROUP = 20, /* small ones and a large one */
    SMALL_LEAST = 1040,
    SMALL_MOST = 4000,
    LARGE_LEAST = 20000,
    LARGE_MOST = 131000,
    COUNT_LEAST = 10,
    COUNT_MOST = 300,
    COUNT_STEP = 5,
    COUNTS = (COUNT_MOST - COUNT_LEAST) / COUNT_STEP + 1,
    ROUNDS_DEFAULT = 10,
    ROUNDS_MOST = 1000,
    METHODS_MOST = 8
};

static size_t sizes[BLOCKS];
static void *blocks[BLOCKS];
static int64_t live;

/* For each method and count: over the rounds, the sum of the times in ms and of their squares. */
static struct sums {
    double ms;
    double squares;
} sums[METHODS_MOST][COUNTS];

static int is_large(size_t i)
{
    return i % GROUP == GROUP - 1;
}

static int is_freed(size_t i)
{
    return is_large(i) || i % GROUP % 2 == 0;
}

/* The same in every process. */
static void draw_sizes(void)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < BLOCKS; i++)
        sizes[i] = is_large(i) ? random_between(&state, LARGE_LEAST, LARGE_MOST)
                               : random_between(&state, SMALL_LEAST, SMALL_MOST);
}

static void take(const struct method *method, size_t i)
{
    size_t *block = method->take(sizes[i]);
    if (block == NULL)
        die(method->name);
    *block = i;
    blocks[i] = block;
    meter_set(0, live += (int64_t)sizes[i]);
}

static void give(const struct method *method, size_t i)
{
    method->give(blocks[i]);
    meter_set(0, live -= (int64_t)sizes[i]);
}

static void lay_down(const struct method *method)
{
    if (method->begin != NULL)
        method->begin();
    for (size_t i = 0; i < BLOCKS; i++)
        take(method, i);
    for (size_t i = 0; i < BLOCKS; i++)
        if (is_freed(i))
            give(method, i);
}

static void take_up(const struct method *method)
{
    for (size_t i = 0; i < BLOCKS; i++)
        if (!is_freed(i))
            give(method, i);
    if (method->end != NULL)
        method->end();
}

static unsigned count_at(size_t i)
{
    return (unsigned)(COUNT_LEAST + i * COUNT_STEP);
}

static void iterate(const struct method *method)
{
    for (size_t i = GROUP - 1; i < BLOCKS; i += GROUP)
        take(method, i);
    for (size_t i = GROUP - 1; i < BLOCKS; i += GROUP)
        give(method, i);
}

/* One run: the time in ms after each count of iterations. */
static void run(const struct method *method, double ms[COUNTS])
{
    lay_down(method);
    uint64_t start = now_ns();
    unsigned done = 0;
    for (size_t i = 0; i < COUNTS; i++) {
        for (; done < count_at(i); done++)
            iterate(method);
        ms[i] = (double)(now_ns() - start) / 1e6;
    }
    take_up(method);
}

/* ---- Figures ---- */

static double mean(const struct sums *sum, unsigned rounds)
{
    return sum->ms / rounds;
}

static double deviation(const struct sums *sum, unsigned rounds)
{
    if (rounds < 2)
        return 0;
    double square = (sum->squares - sum->ms * sum->ms / rounds) / (rounds - 1);
    return square > 0 ? sqrt(square) : 0;
}

/* In ms per iteration, by least squares. */
static double slope(const struct sums *figures, unsigned rounds)
{
    double middle_x = 0, middle_y = 0, xy = 0, xx = 0;
    for (size_t i = 0; i < COUNTS; i++) {
        middle_x += (double)count_at(i) / COUNTS;
        middle_y += mean(&figures[i], rounds) / COUNTS;
    }
    for (size_t i = 0; i < COUNTS; i++) {
        double x = count_at(i) - middle_x;
        xy += x * (mean(&figures[i], rounds) - middle_y);
        xx += x * x;
    }
    return xy / xx;
}

static void print_table(const struct method *const *methods, size_t count, unsigned rounds)
{
    printf("ms for so many iterations: mean and standard deviation of %u runs\n\niterations",
           rounds);
    for (size_t m = 0; m < count; m++)
        printf("  %20s", methods[m]->name);
    for (size_t i = 0; i < COUNTS; i++) {
        printf("\n%10u", count_at(i));
        for (size_t m = 0; m < count; m++)
            printf("  %10.4f %9.4f", mean(&sums[m][i], rounds), deviation(&sums[m][i], rounds));
    }
    printf("\n\nms each   ");
    for (size_t m = 0; m < count; m++)
        printf("  %10.5f          ", slope(sums[m], rounds));
    printf("\n");
}

/* An operation is a block that is taken and given back. */
static void print_line(const struct sums *figures, unsigned rounds)
{
    unsigned pairs = BLOCKS / GROUP;
    print_figures((uint64_t)pairs * COUNT_MOST * rounds, slope(figures, rounds) * 1e6 / pairs);
}

/* ---- Running ---- */

int cells_argument(struct cells_plan *plan, const char *word)
{
    static const char rounds[] = "--rounds=";
    if (plan->rounds == 0)
        plan->rounds = ROUNDS_DEFAULT;
    if (strcmp(word, "--csv") == 0)
        plan->csv = 1;
    else if (strcmp(word, "--figures") == 0)
        plan->figures = 1;
    else if (strncmp(word, rounds, sizeof rounds - 1) == 0)
        plan->rounds = (unsigned)number_argument(word + sizeof rounds - 1, 1, ROUNDS_MOST);
    else
        return 0;
    return 1;
}

static void run_and_note(const struct method *method, struct sums *figures, int csv)
{
    double ms[COUNTS];
    run(method, ms);
    for (size_t i = 0; i < COUNTS; i++) {
        figures[i].ms += ms[i];
        figures[i].squares += ms[i] * ms[i];
        if (csv)
            printf("%s,%u,%.6f\n", method->name, count_at(i), ms[i]);
    }
}

void cells_run(const struct cells_plan *plan, const struct method *const *methods, size_t count)
{
    unsigned rounds = plan->rounds != 0 ? plan->rounds : ROUNDS_DEFAULT;
    draw_sizes();
    if (plan->csv)
        printf("method,iterations,ms\n");
    for (unsigned round = 0; round < rounds; round++)
        for (size_t k = 0; k < count; k++) {
            size_t m = (k + round) % count;
            run_and_note(methods[m], sums[m], plan->csv);
        }
    if (plan->figures)
        print_line(sums[0], rounds);
    else if (!plan->csv)
        print_table(methods, count, rounds);
}
