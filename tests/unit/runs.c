/*
 * Tests of pageheap/runs.h: runs in bins by length. The runs here are descriptors only; their
 * addresses are numbers.
 */
#include "support.h"

#include <string.h>

#include "base/bits.h"
#include "pageheap/runs.h"

enum { BITMAP_WORDS = (RUN_BINS + 63) / 64 };

static struct runs runs;

static struct span run_of(uintptr_t start, size_t pages)
{
    return (struct span){.start = (char *)start, .pages = (uint32_t)pages};
}

/* The bin that a run of so many pages goes to. */
static size_t bin_of_length(size_t pages)
{
    struct span run = run_of(0x100000, pages);
    runs_init(&runs);
    runs_add(&runs, &run);
    size_t bin = bitmap_next(runs.bitmap, BITMAP_WORDS, 0);
    assert_int_equal(bitmap_next(runs.bitmap, BITMAP_WORDS, bin + 1), BITMAP_WORDS * 64);
    assert_true(bin < RUN_BINS);
    assert_ptr_equal(runs.bins[bin].next, &run.link);
    return bin;
}

/* The shortest and the longest length of each bin; the lengths tried are those around all borders
 * that there can be. */
static struct {
    size_t shortest, longest;
} bins[RUN_BINS];

static int measure_bins(void **state)
{
    memset(bins, 0, sizeof(bins));
    for (size_t power = 1; power <= (size_t)1 << 31; power *= 2)
        for (size_t eighth = 0; eighth < 16; eighth++)
            for (size_t more = 0; more < 3; more++) {
                size_t pages = power + power * eighth / 16 + more;
                if (pages == 0 || pages - 1 > UINT32_MAX || (pages -= 1) == 0)
                    continue;
                size_t bin = bin_of_length(pages);
                if (bins[bin].shortest == 0 || pages < bins[bin].shortest)
                    bins[bin].shortest = pages;
                bins[bin].longest = size_max(bins[bin].longest, pages);
            }
    return options_reset(state);
}

static bool is_any(const struct span *run, size_t most)
{
    (void)run, (void)most;
    return true;
}

TEST(bins_are_in_the_order_of_their_lengths)
{
    for (size_t bin = 0; bin < RUN_BINS; bin++) {
        ASSERT_THAT(bins[bin].shortest != 0, "bin %zu has no length", bin);
        if (bin > 0)
            ASSERT_THAT(bins[bin].shortest == bins[bin - 1].longest + 1, "bin %zu", bin);
    }
    assert_int_equal(bins[0].shortest, 1);
    assert_int_equal(bin_of_length(UINT32_MAX), RUN_BINS - 1);
}

TEST(short_lengths_have_a_bin_each_and_others_an_eighth)
{
    for (size_t bin = 0; bin < RUN_EXACT; bin++) {
        assert_int_equal(bins[bin].shortest, bin + 1);
        assert_int_equal(bins[bin].longest, bin + 1);
    }
    /* The last bin ends beyond what was tried. */
    for (size_t bin = RUN_EXACT; bin < RUN_BINS - 1; bin++)
        ASSERT_THAT((bins[bin].longest + 1 - bins[bin].shortest) * RUN_STEPS <= bins[bin].shortest,
                    "bin %zu: %zu to %zu", bin, bins[bin].shortest, bins[bin].longest);
}

TEST(runs_come_and_go)
{
    enum { RUNS = 400 };
    static struct span all[RUNS];
    static bool in[RUNS];
    uint64_t seed = 1;
    size_t pages = 0;
    runs_init(&runs);
    for (size_t i = 0; i < RUNS; i++)
        all[i] = run_of(0x100000, 1 + random_below(&seed, (size_t)1 << (1 + i % 20)));
    for (unsigned turn = 0; turn < 20 * RUNS; turn++) {
        size_t i = random_below(&seed, RUNS);
        pages += in[i] ? -(size_t)all[i].pages : (size_t)all[i].pages;
        if (in[i])
            runs_remove(&runs, &all[i]);
        else
            runs_add(&runs, &all[i]);
        in[i] = !in[i];
        assert_int_equal(runs.pages, pages);
        for (size_t bin = 0; turn % 100 == 0 && bin < RUN_BINS; bin++)
            assert_int_equal(bitmap_get(runs.bitmap, bin), !list_empty(&runs.bins[bin]));
    }
    for (size_t i = 0; i < RUNS; i++)
        if (in[i])
            runs_remove(&runs, &all[i]);
    assert_int_equal(runs.pages, 0);
    assert_int_equal(bitmap_next(runs.bitmap, BITMAP_WORDS, 0), BITMAP_WORDS * 64);
}

TEST(nothing_is_found_where_nothing_is)
{
    runs_init(&runs);
    assert_null(runs_find(&runs, 1, PAGE_BYTES));
    assert_null(runs_find(&runs, UINT32_MAX, PAGE_BYTES));
    assert_null(runs_find_long(&runs, UINT32_MAX, 0, is_any));
    struct span run = run_of(0x100000, 10);
    runs_add(&runs, &run);
    assert_null(runs_find(&runs, 11, PAGE_BYTES));
    assert_ptr_equal(runs_find(&runs, 10, PAGE_BYTES), &run);
    assert_ptr_equal(runs_find(&runs, 1, PAGE_BYTES), &run);
    runs_remove(&runs, &run);
    assert_null(runs_find(&runs, 1, PAGE_BYTES));
}

/* Runs of up to about 2^20 pages, no more than seven in a bin: so many are looked through. */
enum { SPREAD = 300 };
static struct span spread[SPREAD];

static void spread_runs(uint64_t *seed)
{
    runs_init(&runs);
    for (size_t i = 0; i < SPREAD; i++) {
        size_t base = (size_t)1 << random_below(seed, 20);
        spread[i] = run_of(0x100000, base + random_below(seed, base));
        runs_add(&runs, &spread[i]);
        size_t in_bin = 0;
        for (size_t j = 0; j < i; j++)
            in_bin += spread[j].pages != 0 && spread[j].pages < spread[i].pages * 9 / 8 + 2 &&
                      spread[i].pages < spread[j].pages * 9 / 8 + 2;
        if (in_bin > 6) {
            runs_remove(&runs, &spread[i]);
            spread[i].pages = 0;
        }
    }
}

TEST(what_is_found_is_hardly_longer_than_the_best_fit)
{
    uint64_t seed = 2;
    for (unsigned round = 0; round < 30; round++) {
        spread_runs(&seed);
        for (size_t pages = 1; pages < (size_t)1 << 21; pages += 1 + pages / 40) {
            size_t best = SIZE_MAX;
            for (size_t i = 0; i < SPREAD; i++)
                if (spread[i].pages >= pages)
                    best = size_min(best, spread[i].pages);
            struct span *found = runs_find(&runs, pages, PAGE_BYTES);
            ASSERT_THAT((found == NULL) == (best == SIZE_MAX), "%zu pages", pages);
            if (found != NULL)
                ASSERT_THAT(found->pages >= pages && found->pages <= best + best / RUN_STEPS + 1,
                            "%zu pages: %u, but there is one of %zu", pages, found->pages, best);
        }
    }
}

TEST(a_crowded_bin_is_not_walked)
{
    /* Runs too short for the request, in its own bin; behind them all the one that fits best. */
    enum { SHORT = 1000, PAGES = 1000 };
    static struct span crowd[SHORT];
    struct span best = run_of(0x100000, PAGES), longer = run_of(0x100000, 2 * PAGES);
    runs_init(&runs);
    runs_add(&runs, &longer);
    runs_add(&runs, &best);
    assert_ptr_equal(runs_find(&runs, PAGES, PAGE_BYTES), &best);
    for (size_t i = 0; i < SHORT; i++) {
        crowd[i] = run_of(0x100000, PAGES - 1);
        runs_add(&runs, &crowd[i]);
    }
    assert_int_equal(bin_of_length(PAGES), bin_of_length(PAGES - 1));
    runs_init(&runs);
    runs_add(&runs, &longer);
    runs_add(&runs, &best);
    for (size_t i = 0; i < SHORT; i++)
        runs_add(&runs, &crowd[i]);
    assert_ptr_equal(runs_find(&runs, PAGES, PAGE_BYTES), &longer);
}

TEST(alignment_is_part_of_the_fit)
{
    struct span odd = run_of(0x101000, 16), even = run_of(0x200000, 16);
    runs_init(&runs);
    runs_add(&runs, &even);
    runs_add(&runs, &odd);
    assert_ptr_equal(runs_find(&runs, 16, 0x10000), &even);
    assert_ptr_equal(runs_find(&runs, 16, PAGE_BYTES), &odd); /* the one added last */
    runs_remove(&runs, &even);
    assert_null(runs_find(&runs, 16, 0x10000));
    /* From 0x110000 on one page is left of the 16. */
    assert_ptr_equal(runs_find(&runs, 1, 0x10000), &odd);
    assert_null(runs_find(&runs, 2, 0x10000));
    assert_null(runs_find(&runs, 1, 0x100000));
}

TEST(of_equal_runs_the_one_in_the_fullest_segment_is_found)
{
    /* In use are a half, a quarter, of more pages, and nothing. */
    static struct segment half = {.pages = 100, .used_pages = 50};
    static struct segment quarter = {.pages = 1000, .used_pages = 250};
    static struct segment empty = {.pages = 100};
    static struct segment *const segments[] = {&empty, &half, &quarter};
    for (size_t first = 0; first < 3; first++) {
        struct span all[3];
        runs_init(&runs);
        for (size_t i = 0; i < 3; i++) {
            all[i] = run_of(0x100000, 40);
            all[i].segment = segments[(first + i) % 3];
            runs_add(&runs, &all[i]);
        }
        for (size_t i = 0; i < 3; i++) {
            static struct segment *const fullest[] = {&half, &quarter, &empty};
            struct span *found = runs_find(&runs, 40, PAGE_BYTES);
            assert_ptr_equal(found->segment, fullest[i]);
            runs_remove(&runs, found);
        }
    }
}

TEST(the_longest_is_of_the_last_bin)
{
    struct span all[20];
    uint64_t seed = 3;
    for (unsigned round = 0; round < 100; round++) {
        runs_init(&runs);
        size_t longest = 0;
        for (size_t i = 0; i < 20; i++) {
            all[i] = run_of(0x100000, 1 + random_below(&seed, (size_t)1 << (1 + i)));
            longest = size_max(longest, all[i].pages);
            runs_add(&runs, &all[i]);
        }
        size_t found = runs_find_long(&runs, UINT32_MAX, 0, is_any)->pages;
        assert_true(found <= longest && longest < found + found / RUN_STEPS + 1);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(bins_are_in_the_order_of_their_lengths, measure_bins, options_reset),
        ROW_WITH(short_lengths_have_a_bin_each_and_others_an_eighth, measure_bins, options_reset),
        ROW(runs_come_and_go),
        ROW(nothing_is_found_where_nothing_is),
        ROW(what_is_found_is_hardly_longer_than_the_best_fit),
        ROW(a_crowded_bin_is_not_walked),
        ROW(alignment_is_part_of_the_fit),
        ROW(of_equal_runs_the_one_in_the_fullest_segment_is_found),
        ROW(the_longest_is_of_the_last_bin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
