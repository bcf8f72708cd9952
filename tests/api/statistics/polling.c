/*
 * A program that for a tenth of a second makes one kind of call, and no other; for the tests of
 * when the statistics are written.
 *
 *     polling WAY       one of `ways`, or "nothing", which makes no call
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "snug/snug.h"

enum { ROUNDS = 100, CALLS = 20, MOST = ROUNDS * CALLS };

static void *blocks[MOST];
static snug_heap *heap;

static size_t size_of(size_t i)
{
    return 1024 + 1 + i * 7919 % (127 * 1024);
}

/* ---- One call each ---- */

static void take(size_t i)
{
    blocks[i] = malloc(size_of(i));
}

static void take_zero(size_t i)
{
    blocks[i] = calloc(1, size_of(i));
}

static void alloc_aligned(size_t i)
{
    blocks[i] = aligned_alloc(64, size_of(i) / 64 * 64);
}

static void alloc_large(size_t i)
{
    if (i % CALLS < 2)
        blocks[i] = malloc(1000000);
}

static void resize(size_t i)
{
    blocks[i % CALLS] = realloc(blocks[i % CALLS], size_of(i));
}

static void give(size_t i)
{
    free(blocks[i]);
}

static void heap_alloc(size_t i)
{
    blocks[i] = snug_heap_malloc(heap, size_of(i));
}

static void heap_free(size_t i)
{
    snug_heap_free(heap, blocks[i]);
}

static void do_nothing(size_t i)
{
    (void)i;
}

static void prepare_nothing(void) {}

static void prepare_blocks(void)
{
    for (size_t i = 0; i < MOST; i++)
        take(i);
}

static void prepare_heap_blocks(void)
{
    for (size_t i = 0; i < MOST; i++)
        heap_alloc(i);
}

static const struct {
    const char *name;
    void (*prepare)(void);
    void (*call)(size_t i);
} ways[] = {
    {"malloc", prepare_nothing, take},
    {"calloc", prepare_nothing, take_zero},
    {"aligned_alloc", prepare_nothing, alloc_aligned},
    {"large", prepare_nothing, alloc_large},
    {"realloc", prepare_nothing, resize},
    {"free", prepare_blocks, give},
    {"heap_malloc", prepare_nothing, heap_alloc},
    {"heap_free", prepare_heap_blocks, heap_free},
    {"nothing", prepare_nothing, do_nothing},
};

int main(int count, char **arguments)
{
    const char *way = count > 1 ? arguments[1] : "nothing";
    const struct timespec moment = {0, 1000000};
    heap = snug_heap_create(NULL);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        if (strcmp(way, ways[w].name) != 0)
            continue;
        ways[w].prepare();
        for (size_t i = 0; i < MOST; i++) {
            ways[w].call(i);
            if (i % CALLS == 0)
                nanosleep(&moment, NULL);
        }
        return 0;
    }
    return 2;
}
