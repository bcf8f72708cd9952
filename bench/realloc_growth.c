/*
 * realloc_growth.c - things that grow.
 *
 * usage: realloc_growth vectors|strings|buffer|array [ROUNDS]
 *
 *   vectors   100 vectors, each doubled when it is full, from 16 bytes to 256 KiB, all growing at
 *             the same time: containers that are filled
 *   strings   2,000 strings to each of which 1 to 40 bytes are added a hundred times, each time by
 *             realloc to the exact length: text that is put together
 *   buffer    one buffer that grows to 64 MiB by 64 KiB at a time: a file that is read to its end
 *   array     one array that grows by half of itself, from 64 KiB to some 60 MiB: results of a
 * query
 *
 * An operation is a realloc, of which the last of each thing frees it. What is new of a block is
 * written. 20 rounds unless given (buffer: 2, array: 6).
 */
#include "workload.h"

enum {
    VECTORS = 100,
    VECTOR_LEAST = 16,
    VECTOR_MOST = 256 << 10,
    STRINGS = 2000,
    APPENDS = 100,
    BUFFER_STEP = 64 << 10,
    BUFFER_MOST = 64 << 20,
    ARRAY_LEAST = 64 << 10
};

static struct thing {
    char *bytes;
    size_t size;
} things[STRINGS];
static int64_t live;
static uint64_t operations;

static void grow(struct thing *thing, size_t size)
{
    char *bytes = realloc(thing->bytes, size);
    if (bytes == NULL)
        die("realloc");
    memset(bytes + thing->size, 'x', size - thing->size);
    live += (int64_t)(size - thing->size);
    *thing = (struct thing){bytes, size};
    operations++;
    meter_set(0, live);
}

static void drop(struct thing *thing)
{
    free(thing->bytes);
    live -= (int64_t)thing->size;
    *thing = (struct thing){NULL, 0};
    operations++;
    meter_set(0, live);
}

static void drop_all(size_t count)
{
    for (size_t i = 0; i < count; i++)
        drop(&things[i]);
}

static void vectors(void)
{
    for (size_t size = VECTOR_LEAST; size <= VECTOR_MOST; size *= 2)
        for (size_t i = 0; i < VECTORS; i++)
            grow(&things[i], size);
    drop_all(VECTORS);
}

static void strings(void)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (size_t k = 0; k < APPENDS; k++)
        for (size_t i = 0; i < STRINGS; i++)
            grow(&things[i], things[i].size + random_between(&state, 1, 40));
    drop_all(STRINGS);
}

static void buffer(void)
{
    while (things[0].size < BUFFER_MOST)
        grow(&things[0], things[0].size + BUFFER_STEP);
    drop(&things[0]);
}

static void array(void)
{
    for (size_t size = ARRAY_LEAST; size <= BUFFER_MOST; size += size / 2)
        grow(&things[0], size);
    drop(&things[0]);
}

static const struct kind {
    const char *name;
    void (*round)(void);
    long rounds;
} kinds[] = {
    {"vectors", vectors, 20}, {"strings", strings, 20}, {"buffer", buffer, 2}, {"array", array, 6}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc >= 2 && argc <= 3 && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(argv[1], kinds[i].name) != 0)
            continue;
        long rounds = argc == 3 ? number_argument(argv[2], 1, 1000000) : kinds[i].rounds;
        uint64_t start = now_ns();
        for (long round = 0; round < rounds; round++)
            kinds[i].round();
        uint64_t end = now_ns();
        print_figures(operations, (double)(end - start) / (double)operations);
        return 0;
    }
    fprintf(stderr, "usage: %s vectors|strings|buffer|array [ROUNDS]\n", argv[0]);
    return 2;
}
