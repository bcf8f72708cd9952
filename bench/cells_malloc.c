/*
 * cells_malloc.c - the workload `cells` on malloc, of whatever allocator is preloaded.
 *
 * usage: cells_malloc [--csv | --figures] [--rounds=N] [NAME]
 *
 * --figures prints one line for `snug bench`. NAME is what the figures are to be called. See
 * cells.c.
 */
#include "cells.h"
#include "workload.h"

int main(int argc, char **argv)
{
    struct cells_plan plan = {0};
    struct method method = {"malloc", NULL, malloc, free, NULL};
    for (int i = 1; i < argc; i++) {
        if (cells_argument(&plan, argv[i]))
            continue;
        if (argv[i][0] == '-') {
            fprintf(stderr, "usage: %s " CELLS_OPTIONS " [NAME]\n", argv[0]);
            return 2;
        }
        method.name = argv[i];
    }
    const struct method *const methods[] = {&method};
    cells_run(&plan, methods, 1);
    return 0;
}
