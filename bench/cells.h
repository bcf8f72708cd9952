/*
 * cells.h - the workload `cells`, for any way of taking and giving back blocks.
 */
#ifndef SNUG_BENCH_CELLS_H
#define SNUG_BENCH_CELLS_H

#include <stddef.h>

/* What is measured. All functions end the program when they cannot do their work. */
struct method {
    const char *name;
    void (*begin)(void); /* makes an empty heap; may be NULL */
    void *(*take)(size_t bytes);
    void (*give)(void *block);
    void (*end)(void); /* when all blocks were given back; may be NULL */
};

/* What is to be printed, from the arguments --csv, --figures, --rounds=N and the names of methods.
 */
struct cells_plan {
    int csv;
    int figures; /* one line, for a single method */
    unsigned rounds;
};

/* Reads an argument of the plan. 0: it is not one. */
int cells_argument(struct cells_plan *plan, const char *word);

/* Measures the methods, interleaved, and prints the figures. */
void cells_run(const struct cells_plan *plan, const struct method *const *methods, size_t count);

#define CELLS_OPTIONS "[--csv | --figures] [--rounds=N]"

#endif
