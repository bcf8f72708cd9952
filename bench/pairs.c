/*
 * pairs.c - nanoseconds for a malloc and the free that goes with it, in several patterns of use.
 *
 * usage: pairs ROW [ROUNDS]    runs the row and prints one line:
 *            row=NAME ns_per_op_median=F ops=N ns_per_op=F peak_rss_kib=N
 *        pairs --list          prints the names of the rows
 *
 * An op is one pair. A round takes from a few milliseconds to a tenth of a second; the smallest
 * (ns_per_op) and the median time of ROUNDS rounds (24 unless given) are printed, after one round
 * that does not count. Everything that is random was drawn before the clock starts. Each row wants
 * a process of its own: what a row leaves behind in the allocator would change the next.
 *
 * What the rows imitate stands beside them, in pairs_one_thread.c and pairs_two_threads.c. They
 * are compiled with -fno-builtin, as a compiler may remove a malloc whose block is only freed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pairs.h"
#include "workload.h"

enum { ROUNDS = 24, MOST_ROUNDS = 10000 };

static const struct row *find_row(const struct row *rows, const char *name)
{
    for (; rows->name != NULL; rows++)
        if (strcmp(rows->name, name) == 0)
            return rows;
    return NULL;
}

static void list_rows(const struct row *rows)
{
    for (; rows->name != NULL; rows++)
        puts(rows->name);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void run(const struct row *row, unsigned rounds)
{
    static uint64_t ns[MOST_ROUNDS];
    if (row->prepare != NULL)
        row->prepare();
    row->round();
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t start = now_ns();
        row->round();
        ns[i] = now_ns() - start;
    }
    if (row->finish != NULL)
        row->finish();

    qsort(ns, rounds, sizeof ns[0], by_value);
    double ops = (double)row->ops;
    double median = ((double)ns[(rounds - 1) / 2] + (double)ns[rounds / 2]) / 2;
    printf("row=%s ns_per_op_median=%.3f ", row->name, median / ops);
    print_figures(row->ops * rounds, (double)ns[0] / ops);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list_rows(one_thread_rows);
        list_rows(two_thread_rows);
        return 0;
    }
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: %s ROW [ROUNDS] | --list\n", argv[0]);
        return 2;
    }
    const struct row *row = find_row(one_thread_rows, argv[1]);
    if (row == NULL)
        row = find_row(two_thread_rows, argv[1]);
    if (row == NULL) {
        fprintf(stderr, "there is no row %s; see %s --list\n", argv[1], argv[0]);
        return 2;
    }
    run(row, argc == 3 ? (unsigned)number_argument(argv[2], 1, MOST_ROUNDS) : ROUNDS);
    return 0;
}
