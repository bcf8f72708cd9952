/*
 * heaps.c - heaps beside malloc: how fast a heap of its own serves, and what it takes to free all
 * that is in one.
 *
 * usage: heaps ROW WAY [ROUNDS]
 *          prints row=S way=S ns_per_op_median=F fill_ns=F ops=N ns_per_op=F peak_rss_kib=N
 *        heaps --list           prints the names of the rows
 *
 *   freed-at-once    64 bytes, freed before the next                     one thread; an op is a
 * pair random-16-1024   10,000 live blocks, any of them replaced            the same random-1-30000
 * 1,000 live blocks likewise, with medium sizes       the same threads-N        random-16-1024 by N
 * threads at a time, on one heap  an op is a pair of any clear            a million blocks of 64
 * bytes, all freed at once     an op is a block; filling free-in-order    the same, one after the
 * other, as they were taken   the heap is not in it free-at-random   the same in random order
 *
 * A WAY is where the blocks come from: `malloc` of the allocator that is preloaded; `heap`, a heap
 * of its own; `plain`, the same, but freed by the plain free; `buffer`, a heap in a buffer of 256
 * MiB, which only snug has. Heaps are those of snug and of mimalloc. mimalloc has no call that
 * clears a heap: there `clear` is to destroy it and to make another. Its heaps of version 2 serve
 * the thread that made them only. What is not to be had ends with status 77.
 *
 * The smallest (ns_per_op) and the median time of ROUNDS rounds (12 unless given) are printed,
 * after one that does not count; `fill_ns` is the median of what a block costs to take while the
 * heap is filled for the next clearing. Everything random was drawn before the clock starts.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

#include "threads.h"
#include "workload.h"

enum {
    ROUNDS = 12,
    MOST_ROUNDS = 1000,
    PAIRS = 200000, /* in a round */
    MOST_LIVE = 10000,
    BLOCKS = 1000000, /* that are cleared */
    BLOCK = 64,
    BUFFER_BYTES = 256 << 20,
    NOT_TO_BE_HAD = 77
};

/* As in snug.h. */
struct heap_config {
    size_t size;
    const char *name;
    void *provider, *buffer;
    size_t buffer_bytes;
};

/* What blocks come from. `take` has a heap as its first argument but for the way `malloc`. */
static struct {
    enum { MALLOC, HEAP } kind;
    void *heap;
    void *(*take)(void *heap, size_t size);
    void (*give)(void *block); /* one of both */
    void (*give_in)(void *heap, void *block);
    void (*clear)(void *heap);
    void *(*again)(void); /* after it, where clearing destroys; or NULL */
} way;

static void **slots;
static uint32_t *victims, *order;
static uint16_t *sizes;
static uint32_t live; /* of one thread */
static uint64_t fill_ns;

static void not_to_be_had(const char *why)
{
    fprintf(stderr, "SKIP: %s\n", why);
    exit(NOT_TO_BE_HAD);
}

/* A function of the allocator that is preloaded, or NULL. */
static void find(void *function, const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &found, sizeof found);
}

/* ---- Ways ---- */

static void *make_snug_heap(bool in_buffer)
{
    struct heap_config config = {.size = sizeof config};
    void *(*create)(const struct heap_config *config);
    if (in_buffer) {
        config.buffer = memory_of_our_own(BUFFER_BYTES);
        config.buffer_bytes = BUFFER_BYTES;
    }
    find(&create, "snug_heap_create");
    return create(&config);
}

static void choose_heap(const char *name)
{
    way.kind = HEAP;
    find(&way.take, "snug_heap_malloc");
    if (way.take != NULL) {
        find(&way.clear, "snug_heap_clear");
        if (strcmp(name, "plain") == 0)
            way.give = free;
        else
            find(&way.give_in, "snug_heap_free");
        way.heap = make_snug_heap(strcmp(name, "buffer") == 0);
        return;
    }
    find(&way.take, "mi_heap_malloc");
    if (way.take == NULL || strcmp(name, "buffer") == 0)
        not_to_be_had("the allocator has no such heaps");
    find(&way.clear, "mi_heap_destroy");
    find(&way.again, "mi_heap_new");
    if (strcmp(name, "plain") == 0)
        way.give = free;
    else
        find(&way.give, "mi_free");
    way.heap = way.again();
}

static bool choose_way(const char *name)
{
    if (strcmp(name, "malloc") == 0) {
        way.kind = MALLOC;
        way.give = free;
        return true;
    }
    if (strcmp(name, "heap") != 0 && strcmp(name, "plain") != 0 && strcmp(name, "buffer") != 0)
        return false;
    choose_heap(name);
    if (way.heap == NULL)
        die("no heap");
    return true;
}

/* What is the same in all turns of a loop is decided before it, so that a pair costs two calls and
 * nothing else whatever the way: the loops are written once and compiled for each. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum loop { BY_MALLOC, BY_HEAP, BY_HEAP_AND_FREE };

static enum loop loop_of_way(void)
{
    return way.kind == MALLOC ? BY_MALLOC : way.give_in != NULL ? BY_HEAP : BY_HEAP_AND_FREE;
}

ALWAYS_INLINE void *take(enum loop loop, size_t size, uint64_t mark)
{
    unsigned char *block = loop == BY_MALLOC ? malloc(size) : way.take(way.heap, size);
    if (block == NULL)
        die("no memory");
    *block = (unsigned char)mark;
    return block;
}

ALWAYS_INLINE void give(enum loop loop, void *block)
{
    if (loop == BY_MALLOC)
        free(block);
    else if (loop == BY_HEAP)
        way.give_in(way.heap, block);
    else
        way.give(block);
}

/* Defines NAME(argument) of a loop LOOP_NAME(enum loop, argument). */
#define COMPILED_FOR_EACH(name, type) \
    static void name(type argument) \
    { \
        if (loop_of_way() == BY_MALLOC) \
            name##_loop(BY_MALLOC, argument); \
        else if (loop_of_way() == BY_HEAP) \
            name##_loop(BY_HEAP, argument); \
        else \
            name##_loop(BY_HEAP_AND_FREE, argument); \
    }

/* ---- Pairs ---- */

ALWAYS_INLINE void at_once_loop(enum loop loop, unsigned thread)
{
    (void)thread;
    for (uint64_t i = 0; i < PAIRS; i++)
        give(loop, take(loop, BLOCK, i));
}

COMPILED_FOR_EACH(at_once, unsigned)

/* Each thread has slots of its own, and the same victims. */
ALWAYS_INLINE void replace_loop(enum loop loop, unsigned thread)
{
    void **own = slots + thread * live;
    for (uint32_t i = 0; i < PAIRS; i++) {
        void **slot = &own[victims[i]];
        give(loop, *slot);
        *slot = take(loop, sizes[i], i);
    }
}

COMPILED_FOR_EACH(replace, unsigned)

/* Fills the slots of all threads and draws which are replaced, and by what. */
static void prepare_random(unsigned threads, uint32_t blocks, uint32_t smallest, uint32_t largest)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    live = blocks / threads;
    slots = memory_of_our_own(MOST_LIVE * sizeof *slots);
    victims = memory_of_our_own(PAIRS * sizeof *victims);
    sizes = memory_of_our_own(PAIRS * sizeof *sizes);
    for (uint32_t i = 0; i < PAIRS; i++) {
        victims[i] = random_between(&state, 0, live - 1);
        sizes[i] = (uint16_t)random_between(&state, smallest, largest);
    }
    for (uint32_t i = 0; i < live * threads; i++)
        slots[i] = take(loop_of_way(), random_between(&state, smallest, largest), i);
}

static void prepare_small(unsigned threads)
{
    prepare_random(threads, MOST_LIVE, 16, 1024);
}

static void prepare_medium(unsigned threads)
{
    prepare_random(threads, 1000, 1, 30000);
}

static uint64_t replace_round(unsigned threads)
{
    if (threads > 1)
        return threads_time(threads, replace);
    uint64_t start = now_ns();
    replace(0);
    return now_ns() - start;
}

static uint64_t at_once_round(unsigned threads)
{
    (void)threads;
    uint64_t start = now_ns();
    at_once(0);
    return now_ns() - start;
}

static void prepare_threads(unsigned threads)
{
    void *version_2;
    find(&version_2, "mi_heap_get_default");
    if (version_2 != NULL && way.kind == HEAP)
        not_to_be_had("a heap of mimalloc 2 serves one thread");
    prepare_small(threads);
}

/* ---- Freeing a million ---- */

static void prepare_blocks(unsigned threads)
{
    (void)threads;
    slots = memory_of_our_own(BLOCKS * sizeof *slots);
    order = memory_of_our_own(BLOCKS * sizeof *order);
    for (uint32_t i = 0; i < BLOCKS; i++)
        order[i] = i;
}

static void prepare_shuffled(unsigned threads)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    prepare_blocks(threads);
    for (uint32_t i = BLOCKS - 1; i > 0; i--) {
        uint32_t other = random_between(&state, 0, i), swapped = order[i];
        order[i] = order[other];
        order[other] = swapped;
    }
}

static void prepare_clear(unsigned threads)
{
    if (way.kind == MALLOC)
        not_to_be_had("malloc has no heap that could be cleared");
    prepare_blocks(threads);
}

ALWAYS_INLINE void fill_loop(enum loop loop, uint64_t *ns)
{
    uint64_t start = now_ns();
    for (uint32_t i = 0; i < BLOCKS; i++)
        slots[i] = take(loop, BLOCK, i);
    *ns = now_ns() - start;
}

COMPILED_FOR_EACH(fill, uint64_t *)

ALWAYS_INLINE void empty_loop(enum loop loop, uint64_t *ns)
{
    uint64_t start = now_ns();
    for (uint32_t i = 0; i < BLOCKS; i++)
        give(loop, slots[order[i]]);
    *ns = now_ns() - start;
}

COMPILED_FOR_EACH(empty, uint64_t *)

static uint64_t empty_round(unsigned threads)
{
    (void)threads;
    uint64_t ns;
    fill(&fill_ns);
    empty(&ns);
    return ns;
}

static uint64_t clear_round(unsigned threads)
{
    (void)threads;
    fill(&fill_ns);
    uint64_t start = now_ns();
    way.clear(way.heap);
    if (way.again != NULL)
        way.heap = way.again();
    return now_ns() - start;
}

/* ---- Rows ---- */

static const struct row {
    const char *name;
    unsigned threads;
    uint32_t ops; /* of each thread in a round */
    void (*prepare)(unsigned threads);
    uint64_t (*round)(unsigned threads); /* ns */
} rows[] = {
    {"freed-at-once", 1, PAIRS, NULL, at_once_round},
    {"random-16-1024", 1, PAIRS, prepare_small, replace_round},
    {"random-1-30000", 1, PAIRS, prepare_medium, replace_round},
    {"threads-2", 2, PAIRS, prepare_threads, replace_round},
    {"threads-4", 4, PAIRS, prepare_threads, replace_round},
    {"clear", 1, BLOCKS, prepare_clear, clear_round},
    {"free-in-order", 1, BLOCKS, prepare_blocks, empty_round},
    {"free-at-random", 1, BLOCKS, prepare_shuffled, empty_round},
};

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

static const struct row *find_row(const char *name)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts. */
static double median(uint64_t *values, unsigned count)
{
    qsort(values, count, sizeof *values, by_value);
    return ((double)values[(count - 1) / 2] + (double)values[count / 2]) / 2;
}

static void run(const struct row *row, const char *way_name, unsigned rounds)
{
    static uint64_t ns[MOST_ROUNDS], fills[MOST_ROUNDS];
    double ops = (double)row->ops * row->threads;
    if (row->prepare != NULL)
        row->prepare(row->threads);
    row->round(row->threads);
    for (unsigned i = 0; i < rounds; i++) {
        ns[i] = row->round(row->threads);
        fills[i] = fill_ns;
    }
    printf("row=%s way=%s ns_per_op_median=%.3f fill_ns=%.3f ", row->name, way_name,
           median(ns, rounds) / ops, median(fills, rounds) / ops);
    print_figures((uint64_t)ops * rounds, (double)ns[0] / ops);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < ROW_COUNT; i++)
            puts(rows[i].name);
        return 0;
    }
    const struct row *row = argc == 3 || argc == 4 ? find_row(argv[1]) : NULL;
    long rounds = argc == 4 ? number_argument(argv[3], 1, MOST_ROUNDS) : ROUNDS;
    if (row == NULL || !choose_way(argv[2])) {
        fprintf(stderr, "usage: %s ROW malloc|heap|plain|buffer [ROUNDS] | --list\n", argv[0]);
        return 2;
    }
    run(row, argv[2], (unsigned)rounds);
    return 0;
}
