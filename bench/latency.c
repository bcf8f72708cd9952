/*
 * latency.c - how long single calls take, the slowest included.
 *
 * usage: latency [THREADS [LOW HIGH [LIVE [OPERATIONS]]]]
 *        1 thread, 16 to 1,024 bytes, 10,000 live blocks, 2,000,000 operations unless given
 *
 * It imitates a program that must answer in time: an operation replaces one of LIVE blocks of its
 * thread, drawn at random, and each malloc and each free is timed by the processor's own counter
 * (rdtsc on x86, cntvct_el0 on aarch64), which takes some 10 to 20 ns itself. The calls are counted
 * by their time, to a 64th of it, and these figures printed for malloc and for free:
 *   p50_ns p99_ns p9999_ns max_ns
 * On a machine with other things to do, the largest are those of the scheduler.
 */
#include "threads.h"

enum { SUB_BITS = 6, SUBS = 1 << SUB_BITS, BUCKETS = 64 * SUBS };

/* Calls by their ticks: SUBS buckets for each power of two. */
struct histogram {
    uint64_t calls[BUCKETS];
    uint64_t count, most;
};

static struct histogram *of_malloc, *of_free; /* one for each thread */
static uint32_t low = 16, high = 1024, live_count = 10000;
static long operations_each;

static inline uint64_t ticks(void)
{
#if defined(__x86_64__)
    uint32_t unused;
    return __builtin_ia32_rdtscp(&unused);
#elif defined(__aarch64__)
    uint64_t now;
    __asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(now));
    return now;
#else
    return now_ns();
#endif
}

static unsigned bucket_of(uint64_t time)
{
    if (time < SUBS)
        return (unsigned)time;
    unsigned shift = 63 - (unsigned)__builtin_clzll(time) - SUB_BITS;
    return (shift + 1) * SUBS + (unsigned)(time >> shift) - SUBS;
}

/* The least time that falls into a bucket. */
static uint64_t bucket_start(unsigned bucket)
{
    if (bucket < SUBS)
        return bucket;
    unsigned shift = bucket / SUBS - 1;
    return (uint64_t)(SUBS + bucket % SUBS) << shift;
}

static void count_call(struct histogram *histogram, uint64_t time)
{
    histogram->calls[bucket_of(time)]++;
    histogram->count++;
    if (time > histogram->most)
        histogram->most = time;
}

static void replace_blocks(unsigned thread)
{
    struct slot {
        unsigned char *block;
        uint32_t size;
    } *slots = memory_of_our_own(live_count * sizeof *slots);
    uint64_t state = 0x9e3779b97f4a7c15u * (thread + 1);
    int64_t live = 0;
    for (long i = 0; i < operations_each; i++) {
        struct slot *slot = &slots[random_between(&state, 0, live_count - 1)];
        uint32_t size = random_between(&state, low, high);
        uint64_t start = ticks();
        free(slot->block);
        uint64_t between = ticks();
        unsigned char *block = malloc(size);
        uint64_t end = ticks();
        if (block == NULL)
            die("malloc");
        if (slot->block != NULL)
            count_call(&of_free[thread], between - start);
        count_call(&of_malloc[thread], end - between);
        block[0] = 1;
        live += (int64_t)size - slot->size;
        slot->block = block;
        slot->size = size;
        meter_set(thread, live);
    }
}

/* ---- Figures ---- */

static void add_up(struct histogram *histograms, unsigned threads)
{
    for (unsigned i = 1; i < threads; i++) {
        for (unsigned k = 0; k < BUCKETS; k++)
            histograms[0].calls[k] += histograms[i].calls[k];
        histograms[0].count += histograms[i].count;
        if (histograms[i].most > histograms[0].most)
            histograms[0].most = histograms[i].most;
    }
}

/* The time in ticks that a part of the calls did not exceed. */
static uint64_t quantile(const struct histogram *histogram, double part)
{
    uint64_t wanted = (uint64_t)((double)histogram->count * part), seen = 0;
    for (unsigned k = 0; k < BUCKETS; k++) {
        seen += histogram->calls[k];
        if (seen > wanted)
            return bucket_start(k);
    }
    return histogram->most;
}

static void print_quantiles(const char *name, const struct histogram *histogram, double ns_per_tick)
{
    printf("%s_p50_ns=%.1f %s_p99_ns=%.1f %s_p9999_ns=%.1f %s_max_ns=%.0f ", name,
           (double)quantile(histogram, 0.5) * ns_per_tick, name,
           (double)quantile(histogram, 0.99) * ns_per_tick, name,
           (double)quantile(histogram, 0.9999) * ns_per_tick, name,
           (double)histogram->most * ns_per_tick);
}

int main(int argc, char **argv)
{
    if (argc == 3 || argc > 6) {
        fprintf(stderr, "usage: %s [THREADS [LOW HIGH [LIVE [OPERATIONS]]]]\n", argv[0]);
        return 2;
    }
    unsigned threads = argc > 1 ? (unsigned)number_argument(argv[1], 1, METER_SLOTS) : 1;
    if (argc > 3) {
        low = (uint32_t)number_argument(argv[2], 1, 1 << 30);
        high = (uint32_t)number_argument(argv[3], low, 1 << 30);
    }
    if (argc > 4)
        live_count = (uint32_t)number_argument(argv[4], 1, 100000000);
    long operations = argc > 5 ? number_argument(argv[5], 1, 1000000000000) : 2000000;
    operations_each = (operations + threads - 1) / threads;
    of_malloc = memory_of_our_own(threads * sizeof *of_malloc);
    of_free = memory_of_our_own(threads * sizeof *of_free);

    uint64_t first_ns = now_ns(), first_tick = ticks();
    uint64_t time = threads_time(threads, replace_blocks);
    double ns_per_tick = (double)(now_ns() - first_ns) / (double)(ticks() - first_tick);
    add_up(of_malloc, threads);
    add_up(of_free, threads);
    print_quantiles("malloc", of_malloc, ns_per_tick);
    print_quantiles("free", of_free, ns_per_tick);
    uint64_t done = threads * (uint64_t)operations_each;
    print_figures(done, (double)time / (double)done);
    return 0;
}
