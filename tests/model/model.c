/*
 * The model test: random operations on the heap and on its shadow (shadow.h), compared all the
 * time. One thread; what many threads do to the heap is the stress tests' matter.
 *
 *   model [--seed=N|clock] [--ops=N]
 *
 * The same seed gives the same operations, though not the same addresses. The number of live
 * blocks goes up and down by a random walk, so that slabs and segments come and go.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/common.h"
#include "expect.h"
#include "heap/totals.h"
#include "options/options.h"
#include "shadow.h"
#include "snug/snug.h"

/* No more than this is live at a time. */
#define LIVE_BYTES_MOST (96 * MIB)
#define LIVE_BLOCKS_MOST ((size_t)20000)
#define RESIZED_MOST (16 * MIB)

/* Every so many operations. */
enum { OPS_PER_ACCOUNTS = 512, OPS_PER_SWEEP = 8192, OPS_PER_TARGET = 4096 };

static struct model {
    struct shadow shadow;
    struct random random;
    uint64_t seed;
    size_t operations;
    size_t operation; /* the number of the current one */
    const char *name; /* of the current one */
    size_t size;      /* that it asks for */
    size_t target;    /* live blocks that are aimed at */
} model;

static void write_context(char *text, size_t capacity)
{
    snprintf(text, capacity, "\nin operation %zu, %s of %zu bytes; again: --seed=%llu --ops=%zu",
             model.operation, model.name, model.size, (unsigned long long)model.seed,
             model.operations);
}

/* ---- Taking ---- */

static void add(void *start, size_t alignment)
{
    shadow_add(&model.shadow, start, model.size, alignment, random_one_in(&model.random, 4));
}

static void do_malloc(void)
{
    model.size = random_size(&model.random);
    add(snug_malloc(model.size), MIN_ALIGN);
}

/* Many of one size: slabs and magazines fill. */
static void do_malloc_many(void)
{
    model.size = random_size(&model.random);
    size_t many = size_min(random_log(&model.random, 2, 600), MIB / (model.size + 1) + 1);
    for (size_t i = 0; i < many; i++)
        add(snug_malloc(model.size), MIN_ALIGN);
}

static void do_calloc(void)
{
    size_t count = 1 + random_below(&model.random, 8);
    size_t each = random_size(&model.random) / count;
    model.size = count * each;
    const unsigned char *start = snug_calloc(count, each);
    EXPECT(start != NULL, "no block");
    for (size_t i = 0; i < model.size; i++)
        EXPECT(start[i] == 0, "calloc's block %p is not zero at byte %zu", (const void *)start, i);
    add((void *)(uintptr_t)start, MIN_ALIGN);
}

/* Mostly small alignments; above a segment's size, where the mapping itself is cut, now and then.
 */
static size_t pick_alignment(void)
{
    size_t most = random_one_in(&model.random, 20) ? 8 * MIB : 8 * KIB;
    return random_alignment(&model.random, most);
}

static void do_aligned_alloc(void)
{
    size_t alignment = pick_alignment();
    model.size = random_size(&model.random);
    add(snug_aligned_alloc(alignment, model.size), alignment);
}

/* An alignment that is no power of two is rounded up to one. */
static void do_memalign(void)
{
    size_t alignment = pick_alignment();
    model.size = random_size(&model.random);
    add(snug_memalign(alignment - random_below(&model.random, alignment / 2), model.size),
        alignment);
}

static void do_posix_memalign(void)
{
    size_t alignment = pick_alignment();
    void *start = NULL;
    model.size = random_size(&model.random);
    int error = snug_posix_memalign(&start, alignment, model.size);
    EXPECT(error == 0, "posix_memalign gives %d", error);
    add(start, alignment);
}

static void do_valloc(void)
{
    model.size = random_size(&model.random);
    add(snug_valloc(model.size), os_page_size());
}

static void do_pvalloc(void)
{
    size_t page = os_page_size();
    size_t size = random_size(&model.random);
    model.size = align_up(size + (size == 0), page); /* what it promises */
    add(snug_pvalloc(size), page);
}

/* ---- With a block ---- */

static struct block *pick(void)
{
    size_t count = model.shadow.count;
    return count == 0 ? NULL : model.shadow.blocks[random_below(&model.random, count)];
}

/* Near the old size, where a block may stay in place, or anywhere. */
static size_t pick_new_size(const struct block *block)
{
    if (random_one_in(&model.random, 2))
        return random_size(&model.random) + 1;
    size_t change = random_log(&model.random, 1, block->usable + 16);
    if (random_one_in(&model.random, 2))
        return size_min(block->requested + change, RESIZED_MOST);
    return block->requested > change ? block->requested - change : 1;
}

/* Resizes through `resize` and checks what was kept. */
static void resized(struct block *block, void *moved)
{
    EXPECT(moved != NULL, "no block");
    block_check_bytes(block, moved, size_min(block->filled, model.size));
    shadow_remove(&model.shadow, block);
    add(moved, MIN_ALIGN);
}

static void do_realloc(void)
{
    struct block *block = pick();
    if (block == NULL) {
        model.size = random_size(&model.random);
        add(snug_realloc(NULL, model.size), MIN_ALIGN);
        return;
    }
    block_check(block);
    model.size = pick_new_size(block);
    resized(block, snug_realloc(block->start, model.size));
}

static void do_reallocarray(void)
{
    struct block *block = pick();
    if (block == NULL)
        return;
    block_check(block);
    size_t count = 1 + random_below(&model.random, 4);
    size_t each = pick_new_size(block) / count + 1;
    model.size = count * each;
    resized(block, snug_reallocarray(block->start, count, each));
}

/* What cannot be had changes nothing. */
static void do_refused(void)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX / 2, (size_t)PTRDIFF_MAX + 1,
                                   SIZE_MAX - 4096};
    model.size = sizes[random_below(&model.random, sizeof(sizes) / sizeof(sizes[0]))];
    struct block *block = pick();
    errno = 0;
    EXPECT(snug_malloc(model.size) == NULL && errno == ENOMEM, "no NULL, or errno %d", errno);
    if (block == NULL)
        return;
    errno = 0;
    EXPECT(snug_realloc(block->start, model.size) == NULL && errno == ENOMEM,
           "realloc gives no NULL, or errno %d", errno);
    block_check(block);
}

static void do_check(void)
{
    struct block *block = pick();
    if (block != NULL)
        block_check(block);
}

/* ---- Freeing ---- */

static void free_block(struct block *block, int way)
{
    unsigned char *start = block->start;
    size_t alignment = block->alignment;
    model.size = block->requested;
    block_check(block);
    shadow_remove(&model.shadow, block);
    if (way == 1)
        snug_free_sized(start, model.size);
    else if (way == 2)
        snug_free_aligned_sized(start, alignment, model.size);
    else if (way == 3)
        EXPECT(snug_realloc(start, 0) == NULL, "realloc to nothing gives a block");
    else
        snug_free(start);
}

static void do_free(void)
{
    struct block *block = pick();
    if (block != NULL)
        free_block(block, (int)random_below(&model.random, 10));
}

/* Many at once: the newest first, or the oldest, as far as the array tells; or all of a size. */
static void do_free_many(void)
{
    size_t many = random_log(&model.random, 2, 800);
    size_t way = random_below(&model.random, 3);
    struct block *like = pick();
    size_t usable = like == NULL ? 0 : like->usable;
    for (size_t i = model.shadow.count; i-- > 0 && many > 0;) {
        struct block *block = model.shadow.blocks[way == 0 ? i : 0];
        if (way == 2 && model.shadow.blocks[i]->usable != usable)
            continue;
        free_block(way == 2 ? model.shadow.blocks[i] : block, 0);
        many--;
    }
}

/* Where the system's pages are larger than ours, a run may have none of them whole. */
static void expect_purged(void)
{
    LIST_EACH(node, &heap_default.page_heap.segments)
        EACH_SPAN(span, CONTAINER_OF(node, struct segment, link))
            EXPECT(span->kind != SPAN_DIRTY ||
                       (size_t)span->pages << PAGE_SHIFT < 2 * os_page_size(),
                   "after a trim %u pages at %p are dirty", (unsigned)span->pages,
                   (void *)span->start);
}

static void do_trim(void)
{
    size_t keep = random_one_in(&model.random, 2) ? 0 : random_log(&model.random, 1, 16 * MIB);
    model.size = keep;
    snug_malloc_trim(keep);
    struct heap_totals totals = heap_totals();
    EXPECT(totals.small_cached == 0 && totals.small_depots == 0,
           "after a trim %zu bytes are cached and %zu waiting", totals.small_cached,
           totals.small_depots);
    if (keep == 0 && PURGES)
        expect_purged();
    if (os_page_size() == PAGE_BYTES && PURGES)
        EXPECT(totals.dirty <= keep, "after a trim %zu bytes are dirty", totals.dirty);
}

/* ---- The run ---- */

static const struct operation {
    const char *name;
    void (*run)(void);
    unsigned weight;
    bool frees; /* it is left out when there are few blocks, the others when there are many */
} operations[] = {
    {"malloc", do_malloc, 900, false},
    {"malloc of many", do_malloc_many, 15, false},
    {"calloc", do_calloc, 200, false},
    {"aligned_alloc", do_aligned_alloc, 60, false},
    {"memalign", do_memalign, 40, false},
    {"posix_memalign", do_posix_memalign, 60, false},
    {"valloc", do_valloc, 10, false},
    {"pvalloc", do_pvalloc, 10, false},
    {"realloc", do_realloc, 400, false},
    {"reallocarray", do_reallocarray, 60, false},
    {"a refused size", do_refused, 5, false},
    {"malloc_usable_size", do_check, 60, false},
    {"free", do_free, 1100, true},
    {"free of many", do_free_many, 10, true},
    {"malloc_trim", do_trim, 2, true},
};

enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

static const struct operation *pick_operation(void)
{
    static size_t all;
    if (all == 0)
        for (size_t i = 0; i < OPERATIONS; i++)
            all += operations[i].weight;
    size_t at = random_below(&model.random, all);
    const struct operation *operation = operations;
    while (at >= operation->weight)
        at -= operation++->weight;
    return operation;
}

static void step(void)
{
    bool many = model.shadow.count > model.target || model.shadow.bytes > LIVE_BYTES_MOST;
    bool few = model.shadow.count < model.target / 2;
    const struct operation *operation = pick_operation();
    if (many && !operation->frees && random_one_in(&model.random, 2))
        return;
    if (few && operation->frees && random_one_in(&model.random, 2))
        return;
    model.name = operation->name;
    operation->run();
}

static void check_heap(void)
{
    model.name = "the check";
    EXPECT(snug_check() == 0, "snug_check() finds the heap damaged");
    accounts_check(&model.shadow);
}

static void run(void)
{
    for (model.operation = 1; model.operation <= model.operations; model.operation++) {
        if (model.operation % OPS_PER_TARGET == 1)
            model.target = random_log(&model.random, 8, LIVE_BLOCKS_MOST);
        step();
        if (model.operation % OPS_PER_ACCOUNTS == 0)
            check_heap();
        if (model.operation % OPS_PER_SWEEP == 0)
            shadow_sweep(&model.shadow);
    }
    shadow_sweep(&model.shadow);
}

/* Frees all blocks; nothing may be left in the heap then. */
static void finish(void)
{
    while (model.shadow.count != 0)
        free_block(model.shadow.blocks[model.shadow.count - 1], 0);
    shadow_end(&model.shadow);
    check_heap();
    snug_malloc_trim(0);
    check_heap();
    struct heap_totals totals = heap_totals();
    EXPECT(totals.segments == SEGMENTS_LEFT, "%zu bytes of segments are left when all is free",
           totals.segments);
}

static void read_arguments(int count, char **arguments)
{
    static const struct option known[] = {
        {"seed", required_argument, NULL, 's'}, {"ops", required_argument, NULL, 'o'}, {0}};
    for (int option; (option = getopt_long(count, arguments, "", known, NULL)) != -1;) {
        if (option == 'o')
            model.operations = strtoull(optarg, NULL, 0);
        else if (option == 's' && strcmp(optarg, "clock") != 0)
            model.seed = strtoull(optarg, NULL, 0);
        else if (option == 's')
            model.seed = (uint64_t)time(NULL);
        else
            exit(2);
    }
}

int main(int count, char **arguments)
{
    model.seed = 1;
    model.operations = scaled(80000);
    model.name = "the start";
    fail_context = write_context;
    watchdog_start(200);
    read_arguments(count, arguments);
    model.random.state = model.seed;
    printf("model: --seed=%llu --ops=%zu\n", (unsigned long long)model.seed, model.operations);
    fflush(stdout);
    double start = seconds_now();
    run();
    finish();
    printf("model: %llu blocks in %.1f s\n", (unsigned long long)model.shadow.next_id,
           seconds_now() - start);
    return 0;
}
