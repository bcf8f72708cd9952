/*
 * Tests of profile/sampler.h: the gaps are exponential, and what samples stand for comes to what
 * there was, whatever the sizes.
 */
#include "support.h"

#include <math.h>

#include "profile/sampler.h"

static uint64_t state_of_random;

static uint64_t draw(void)
{
    uint64_t z = state_of_random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

TEST(gaps_are_minus_logarithms)
{
    const struct sampler_rate rate = sampler_rate_of((size_t)1 << 40);
    for (unsigned i = 0; i < 100000; i++) {
        uint64_t bits = draw() >> (i % 64);
        double expected = -log((double)(bits | 1) / 18446744073709551616.0) * (double)rate.mean;
        double gap = (double)sampler_gap(&rate, bits);
        ASSERT_THAT(fabs(gap - expected) <= 1 + expected * 1e-9, "%f, not %f", gap, expected);
    }
    const struct sampler_rate longest = sampler_rate_of(SIZE_MAX);
    assert_true(sampler_gap(&rate, UINT64_MAX) == 1);
    assert_true(sampler_gap(&longest, 0) < INT64_MAX); /* magazine/counted.h counts with a sign */
}

/* Chi-square over 64 parts that are as likely as each other; 63 degrees of freedom: above 115 is
 * one in ten thousand. */
TEST(gaps_are_exponential)
{
    enum { PARTS = 64, DRAWS = 1 << 18 };
    unsigned seen[PARTS] = {0};
    const struct sampler_rate rate = sampler_rate_of((size_t)1 << 40);
    for (unsigned i = 0; i < DRAWS; i++) {
        double below = 1 - exp(-(double)sampler_gap(&rate, draw()) / (double)rate.mean);
        seen[(unsigned)(below * PARTS) % PARTS]++;
    }
    double chi = 0, expected = (double)DRAWS / PARTS;
    for (unsigned i = 0; i < PARTS; i++)
        chi += (seen[i] - expected) * (seen[i] - expected) / expected;
    ASSERT_THAT(chi < 115, "chi-square is %f", chi);
}

TEST(weights_are_those_of_the_chance)
{
    const size_t means[] = {2, 1000, 524288, (size_t)1 << 30};
    for (size_t m = 0; m < 4; m++) {
        struct sampler_rate rate = sampler_rate_of(means[m]);
        for (size_t size = 1; size < (size_t)1 << 40; size = size * 3 + 1) {
            double expected = -1 / expm1(-(double)size / (double)rate.mean);
            double weight = sampler_weight(&rate, size);
            ASSERT_THAT(fabs(weight / expected - 1) < 1e-9, "mean %zu, size %zu: %g, not %g",
                        means[m], size, weight, expected);
        }
    }
}

/* What `count` allocations of sizes from `sizes` come to, by samples; and the variance of that. */
static double estimate(size_t mean, const size_t *sizes, size_t kinds, size_t count,
                       double *variance)
{
    struct sampler_rate rate = sampler_rate_of(mean);
    struct sampler sampler = {0};
    double bytes = 0;
    *variance = 0;
    for (size_t i = 0; i < count; i++) {
        size_t size = sizes[i % kinds];
        if (!sampler_count(&sampler, size + (size == 0)) ||
            !sampler_take(&sampler, &rate, size + (size == 0), draw))
            continue;
        double weight = sampler_weight(&rate, size);
        bytes += weight * (double)size;
        *variance += weight * (weight - 1) * (double)size * (double)size;
    }
    return bytes;
}

/* One seed may be off by three standard errors now and then; the mean of all may not, and its error
 * is smaller. */
static void assert_unbiased(size_t mean, const size_t *sizes, size_t kinds, size_t count)
{
    enum { SEEDS = 100 };
    double whole = 0, off = 0, variances = 0;
    unsigned far = 0;
    for (size_t i = 0; i < count; i++)
        whole += (double)sizes[i % kinds];
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        double variance, bytes = estimate(mean, sizes, kinds, count, &variance);
        off += bytes - whole;
        variances += variance;
        far += fabs(bytes - whole) > 3 * sqrt(variance);
    }
    ASSERT_THAT(far <= 4, "%u of 100 seeds are three standard errors off", far);
    ASSERT_THAT(fabs(off) <= 3 * sqrt(variances), "mean %zu: %f off in %f, standard error %f", mean,
                off / SEEDS, whole, sqrt(variances) / SEEDS);
}

TEST(estimates_are_unbiased)
{
    const size_t one[] = {64}, mixed[] = {16, 4000, 100, 70000, 33, 1000}, large[] = {300000, 9},
                 small[] = {1, 2, 16, 5};
    assert_unbiased(65536, one, 1, 200000);
    assert_unbiased(65536, mixed, 6, 20000);
    assert_unbiased(65536, large, 2, 2000);
    assert_unbiased(1000, mixed, 6, 3000);
    assert_unbiased(2, mixed, 6, 600);
    assert_unbiased(20, small, 4, 20000); /* a gap of whole bytes is long enough */
}

/* A thread that ends after a few requests is looked at as seldom as others. */
TEST(threads_that_ask_once)
{
    const size_t size = 64, mean = 65536;
    double whole = 0, bytes = 0, variance = 0, one;
    for (unsigned thread = 0; thread < 200000; thread++) {
        whole += (double)size;
        bytes += estimate(mean, &size, 1, 1, &one);
        variance += one;
    }
    ASSERT_THAT(fabs(bytes - whole) <= 3 * sqrt(variance), "%f instead of %f", bytes, whole);
}

TEST(one_byte_is_exact)
{
    const size_t sizes[] = {0, 1, 16, 5000};
    double variance;
    assert_true(estimate(1, sizes, 4, 4000, &variance) == 5017.0 * 1000);
    assert_true(variance == 0);
    assert_int_equal(sampler_rate_of(0).mean, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(gaps_are_minus_logarithms),       ROW(gaps_are_exponential),
        ROW(weights_are_those_of_the_chance), ROW(estimates_are_unbiased),
        ROW(threads_that_ask_once),           ROW(one_byte_is_exact)};
    state_of_random = 20;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
