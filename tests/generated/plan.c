/* plan.c - draws a plan from a seed, within bounds; see plan.h. */
#include "plan.h"

#include <stdio.h>

#include "check.h"

/* The bounds, for all threads together. Blocks that are hardly written may take more address space
 * than there is memory to spare: that is what they are for. */
static const uint64_t most_bytes = (uint64_t)256 << 20;
static const uint64_t most_reserved = (uint64_t)2 << 30;
static const uint64_t most_touched = (uint64_t)128 << 20;
static const uint64_t most_kept = (uint64_t)16 << 20;
static const uint64_t most_blocks = 200000;

enum { DRAWS = 1000 };

uint64_t plan_between(uint64_t *random, uint64_t low, uint64_t high)
{
    return low + random_next(random) % (high - low + 1);
}

/* A number from 1 to 2^bits, all orders of magnitude alike. */
static uint64_t draw_magnitude(uint64_t *random, unsigned bits)
{
    uint64_t top = (uint64_t)1 << plan_between(random, 0, bits);
    return top == 1 ? 1 : plan_between(random, top / 2 + 1, top);
}

static bool chance(uint64_t *random, unsigned percent)
{
    return random_next(random) % 100 < percent;
}

size_t plan_size(const struct sizes *sizes, uint64_t *random)
{
    switch (sizes->kind) {
    case SIZE_POWERS: {
        unsigned low = 63 - (unsigned)__builtin_clzll(sizes->low);
        unsigned high = 63 - (unsigned)__builtin_clzll(sizes->high);
        return (size_t)1 << plan_between(random, low, high);
    }
    case SIZE_UNIFORM:
        return plan_between(random, sizes->low, sizes->high);
    case SIZE_LOG_UNIFORM: {
        uint64_t low = sizes->low;
        while (low * 2 <= sizes->high && random_next(random) % 64 >= 64 / MOST_FEW)
            low *= 2;
        return plan_between(random, low, low * 2 <= sizes->high ? low * 2 : sizes->high);
    }
    case SIZE_FEW:
        return sizes->few[random_next(random) % sizes->few_count];
    case SIZE_FIXED:
    case SIZE_KINDS:
        break;
    }
    return sizes->low;
}

size_t plan_touched(enum touch touch, size_t size)
{
    switch (touch) {
    case TOUCH_BYTE:
        return 1;
    case TOUCH_THOUSANDTH:
        return size / 1000 + 1;
    case TOUCH_PAGES:
        return (size + PLAN_PAGE - 1) / PLAN_PAGE;
    case TOUCH_ALL:
        return size;
    case TOUCH_NONE:
    case TOUCH_KINDS:
        break;
    }
    return 0;
}

/* How much of a block becomes resident by what is written to it. Several small blocks share a page,
 * so of them it is all that they have. */
static size_t resident_bytes(enum touch touch, size_t size)
{
    size_t most = touch == TOUCH_PAGES ? size : plan_touched(touch, size) + PLAN_PAGE - 1;
    return size < most ? size : most;
}

static void draw_sizes(struct sizes *sizes, uint64_t *random)
{
    enum { LEAST_BITS = 2, MOST_BITS = 26 }; /* 64 MiB */
    uint64_t top = (uint64_t)1 << plan_between(random, LEAST_BITS, MOST_BITS);
    sizes->kind = (enum size_kind)(random_next(random) % SIZE_KINDS);
    sizes->high = plan_between(random, top / 2 + 1, top);
    sizes->low = chance(random, 40) ? top / 2 : draw_magnitude(random, MOST_BITS) % sizes->high + 1;
    if (sizes->kind == SIZE_FIXED)
        sizes->low = sizes->high;
    sizes->few_count = (unsigned)plan_between(random, 2, MOST_FEW);
    for (unsigned i = 0; i < sizes->few_count; i++)
        sizes->few[i] = plan_between(random, sizes->low, sizes->high);
}

static void draw_calls(struct phase *phase, uint64_t *random)
{
    static const unsigned percents[] = {0, 0, 10, 50, 100};
    phase->calloc_percent = percents[random_next(random) % 5];
    phase->aligned_percent = chance(random, 30) ? percents[2 + random_next(random) % 3] : 0;
    phase->alignment_bits = (unsigned)plan_between(random, 5, chance(random, 10) ? 21 : 14);
    phase->resize_percent = chance(random, 30) ? percents[2 + random_next(random) % 3] : 0;
    phase->shrink = chance(random, 30);
    phase->resizes = (unsigned)plan_between(random, 1, chance(random, 30) ? 16 : 2);
}

/* What a block of the phase takes on average: bytes, resident bytes, nanoseconds. Times are for
 * planning only: roughly those of the system's malloc on any machine of today. */
struct costs {
    double bytes, resident, ns;
};

/* Of one block. A block that grows may be copied whole each time, and be resident then. */
static struct costs block_costs(const struct phase *phase, double size)
{
    bool grows = phase->resize_percent > 0 && !phase->shrink, is_large = size >= 100000;
    double resident = resident_bytes(phase->touch, (size_t)size);
    double ns = 100 + (is_large ? 4000 : 0);
    if (size < (double)((size_t)32 << 20))
        ns += size * phase->calloc_percent / 100 * 0.1;
    for (unsigned i = 0; i < phase->resizes && phase->resize_percent > 0; i++) {
        ns += (is_large ? 1000 : 100) + (grows ? 0.1 * size : 0);
        size += grows ? size / PLAN_GROWTH + 1 : 0;
    }
    if (grows)
        resident = size;
    if (phase->aligned_percent > 0) {
        double wasted = (double)((size_t)1 << phase->alignment_bits) * phase->aligned_percent / 200;
        size += wasted;
        resident += wasted < PLAN_PAGE ? wasted : PLAN_PAGE;
    }
    return (struct costs){size, resident, ns + resident * (size >= 16384 ? 0.2 : 0.05)};
}

static struct costs average_costs(const struct phase *phase, uint64_t seed)
{
    struct costs sum = {0, 0, 0};
    uint64_t random = seed | 1;
    for (unsigned i = 0; i < DRAWS; i++) {
        struct costs one = block_costs(phase, (double)plan_size(&phase->sizes, &random));
        sum.bytes += one.bytes / DRAWS;
        sum.resident += one.resident / DRAWS;
        sum.ns += one.ns / DRAWS;
    }
    return sum;
}

static uint64_t at_most(uint64_t value, double limit)
{
    if ((double)value > limit)
        value = (uint64_t)limit;
    return value > 0 ? value : 1;
}

/* How many blocks there are, and how many are taken, so that the bounds hold. Fails if not even one
 * block for each thread would do. */
static bool draw_amounts(struct phase *phase, unsigned threads, uint64_t *random)
{
    struct costs costs = average_costs(phase, random_next(random));
    bool sparse = costs.resident < costs.bytes / 4;
    double share = 1.0 / threads;
    double bytes = (double)(sparse ? most_reserved : most_bytes) * share / costs.bytes;
    double touched = (double)most_touched * share / costs.resident;
    double budget_ns = 1e6 * (double)plan_between(random, 15, 120) * share;
    if (bytes < 1 || touched < 1 || budget_ns < 4 * costs.ns)
        return false;
    uint64_t blocks = draw_magnitude(random, 18);
    if (chance(random, 40))
        blocks = most_blocks;
    blocks = at_most(at_most(at_most(blocks, bytes), touched), (double)most_blocks * share);
    phase->takes = (uint64_t)(budget_ns / costs.ns);
    phase->blocks = (uint32_t)at_most(blocks, (double)phase->takes / 2);
    if (phase->keep_each > 0 &&
        costs.bytes * (double)phase->takes * threads > (double)most_kept * phase->keep_each)
        phase->keep_each = 0;
    return true;
}

static void draw_phase(struct phase *phase, unsigned threads, uint64_t *random)
{
    static const uint32_t keeps[] = {0, 0, 0, 20, 100, 1000};
    static const unsigned sleeps[] = {0, 0, 0, 5, 50, 150};
    do {
        phase->lifetime = (enum lifetime)(random_next(random) % LIFE_KINDS);
        if (phase->lifetime == LIFE_PIPELINE && threads % 2 != 0)
            phase->lifetime = LIFE_EXCHANGE;
        phase->order = (enum order)(random_next(random) % ORDER_KINDS);
        phase->touch = (enum touch)(random_next(random) % TOUCH_KINDS);
        draw_sizes(&phase->sizes, random);
        draw_calls(phase, random);
        phase->keep_each = keeps[random_next(random) % 6];
        phase->sleep_ms = sleeps[random_next(random) % 6];
    } while (!draw_amounts(phase, threads, random));
}

void plan_make(struct plan *plan, uint64_t seed)
{
    static const unsigned threads[] = {1, 1, 1, 1, 2, 2, 4, 8, 16, 0};
    uint64_t random = (seed + 1) * 0x9e3779b97f4a7c15ULL;
    random = (random ^ random >> 31) | 1;
    for (int i = 0; i < 8; i++) /* neighbours part */
        random_next(&random);
    *plan = (struct plan){.seed = seed};
    plan->threads = threads[random_next(&random) % 10];
    if (plan->threads == 0)
        plan->threads = (unsigned)plan_between(&random, 1, MOST_THREADS);
    plan->threads_wait = chance(&random, 50);
    plan->phase_count = (unsigned)plan_between(&random, 1, MOST_PHASES);
    for (unsigned i = 0; i < plan->phase_count; i++)
        draw_phase(&plan->phases[i], plan->threads, &random);
}

/* ---- For people ------------------------------------------------------------------------------ */

static const char *const size_names[] = {"fixed", "powers", "uniform", "log-uniform", "few"};
static const char *const touch_names[] = {"nothing", "a byte each", "a thousandth", "a byte a page",
                                          "all"};
static const char *const lifetime_names[] = {"stack",      "queue", "random",   "fill",
                                             "generation", "peaks", "exchange", "pipeline"};
static const char *const order_names[] = {"first", "last", "mixed"};

static void print_phase(const struct phase *phase)
{
    printf("  %s %zu..%zu B, touch %s, %u blocks, %llu takes", size_names[phase->sizes.kind],
           phase->sizes.low, phase->sizes.high, touch_names[phase->touch], phase->blocks,
           (unsigned long long)phase->takes);
    printf(", %s", lifetime_names[phase->lifetime]);
    if (phase->lifetime == LIFE_FILL)
        printf(" (%s)", order_names[phase->order]);
    if (phase->calloc_percent > 0)
        printf(", calloc %u %%", phase->calloc_percent);
    if (phase->aligned_percent > 0)
        printf(", aligned %u %% up to %u", phase->aligned_percent, 1u << phase->alignment_bits);
    if (phase->resize_percent > 0)
        printf(", %s %u %% %u times", phase->shrink ? "shrink" : "grow", phase->resize_percent,
               phase->resizes);
    if (phase->keep_each > 0)
        printf(", one of %u stays", phase->keep_each);
    if (phase->sleep_ms > 0)
        printf(", sleeps %u ms", phase->sleep_ms);
    printf("\n");
}

void plan_print(const struct plan *plan)
{
    printf("seed %llu: %u threads%s\n", (unsigned long long)plan->seed, plan->threads,
           plan->threads_wait ? ", which stay" : "");
    for (unsigned i = 0; i < plan->phase_count; i++)
        print_phase(&plan->phases[i]);
}
