/*
 * cells.c - the workload `cells` on snug's own cells, in this process, and on a reference.
 *
 * usage: cells [--csv] [--rounds=N] [METHOD...]
 *
 *   first-fit   boundary tags, and a walk over the free cells to the first that is large enough
 *   next-fit    the same, but each walk goes on where the last ended; only if it is named
 *   bins        snug's cells: best fit by bins; every remainder is cut off
 *   threshold   the same, but small remainders are not cut off, which is how snug has them
 *
 * Prints mean and standard deviation of N runs (10 unless given) in ms for each number of
 * iterations, and the slope; with --csv each single run. No thread's cache is between: each block
 * is taken and freed under a lock. For malloc as a whole there is cells_malloc.
 */
#include "cells.h"
#include "cell/cell.h"
#include "cells_first_fit.h"
#include "provider/provider.h"
#include "workload.h"

static struct page_heap page_heap;
static struct cells cells;

static void begin(void)
{
    page_heap = (struct page_heap){0};
    page_heap_init(&page_heap, &provider_os);
    cells = (struct cells){0};
    cells_init(&cells, &page_heap);
}

static void begin_without_threshold(void)
{
    begin();
    cells.split_least = CELL_LEAST_UNITS;
}

static void *take(size_t bytes)
{
    struct misuse misuse;
    size_t dirty;
    return cells_alloc(&cells, bytes, MIN_ALIGN, CELLS_NEW, &misuse, &dirty);
}

static void give(void *block)
{
    uintptr_t address = (uintptr_t)block;
    cell_mark(cell_of(address), CELL_CACHED);
    cells_free(&address, 1);
}

static void end(void)
{
    cells_purge(&cells, true); /* the last span stays until it is asked for */
    const char *wrong = cells_check(&cells);
    if (wrong != NULL || cells.span_count != 0) {
        fprintf(stderr, "cells: %s\n", wrong != NULL ? wrong : "all was freed, but spans are left");
        exit(1);
    }
    page_heap_purge(&page_heap, 0);
}

static const struct method bins = {"bins", begin_without_threshold, take, give, end};
static const struct method threshold = {"threshold", begin, take, give, end};
static const struct method *const known[] = {&first_fit, &bins, &threshold, &next_fit};
enum { KNOWN = 4, USUAL = 3 };

static const struct method *find_method(const char *name)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (strcmp(known[i]->name, name) == 0)
            return known[i];
    return NULL;
}

int main(int argc, char **argv)
{
    struct cells_plan plan = {0};
    const struct method *chosen[KNOWN];
    size_t count = 0;
    for (int i = 1; i < argc; i++) {
        if (cells_argument(&plan, argv[i]))
            continue;
        const struct method *method = find_method(argv[i]);
        if (method == NULL || count == KNOWN) {
            fprintf(stderr, "usage: %s " CELLS_OPTIONS " [first-fit|next-fit|bins|threshold]...\n",
                    argv[0]);
            return 2;
        }
        chosen[count++] = method;
    }
    if (count == 0)
        cells_run(&plan, known, USUAL);
    else
        cells_run(&plan, chosen, count);
    return 0;
}
