/*
 * Gaps and weights. See sampler.h. The two functions of mathematics are written out, since libm is
 * a library of its own; both are exact to about 1e-12.
 */
#include "profile/sampler.h"

#include "platform/floats.h"

/* Layout: terms of the two series below, enough for what a double can hold. */
enum { LOG_TERMS = 16, EXP_TERMS = 24 };

static const double ln_2 = 0.69314718055994530942;

struct sampler_rate sampler_rate_of(size_t mean)
{
    uint64_t at_most = mean > SAMPLER_MEAN_MOST ? SAMPLER_MEAN_MOST : mean;
    return (struct sampler_rate){at_most + (at_most == 0)};
}

/* -ln(x / 2^64), by ln m = 2 atanh((m - 1) / (m + 1)) for the first bits m of x, in [1, 2). */
static double minus_log(uint64_t x)
{
    unsigned lead = (unsigned)__builtin_clzll(x);
    double m = (double)(x << lead) / 9223372036854775808.0;
    double s = (m - 1) / (m + 1), power = s, sum = 0;
    for (unsigned term = 0; term < LOG_TERMS; term++) {
        sum += power / (2 * term + 1);
        power *= s * s;
    }
    return (lead + 1) * ln_2 - 2 * sum;
}

uint64_t sampler_gap(const struct sampler_rate *rate, uint64_t random)
{
    if (rate->mean == 1)
        return 1;
    return (uint64_t)(minus_log(random | 1) * (double)rate->mean) + 1;
}

/* 1 - exp(-x) for x in [0, 1), by the series itself: nothing is lost where x is small. */
static double chance_of_small(double x)
{
    double term = x, sum = 0;
    for (unsigned n = 2; n < EXP_TERMS; n++) {
        sum += term;
        term *= -x / n;
    }
    return sum;
}

/* 1 - exp(-x): with c = 1 - exp(-x/2), 1 - (1 - c)^2. */
static double chance(double x)
{
    if (x > 64)
        return 1;
    unsigned halvings = 0;
    while (x / (double)(1U << halvings) >= 1) /* 64 takes 7 of them */
        halvings++;
    double c = chance_of_small(x / (double)(1U << halvings));
    for (; halvings != 0; halvings--)
        c = c * (2 - c);
    return c;
}

double sampler_weight(const struct sampler_rate *rate, size_t size)
{
    return rate->mean == 1 ? 1 : 1 / chance((double)(size + (size == 0)) / (double)rate->mean);
}

/* Draws the gap that comes next. It is stored in between, as floats.h asks. */
static void gap_draw(struct sampler *sampler, const struct sampler_rate *rate,
                     uint64_t (*random)(void))
{
    struct floats floats = floats_begin();
    sampler->left = (int64_t)sampler_gap(rate, random());
    floats_end(floats);
}

bool sampler_take(struct sampler *sampler, const struct sampler_rate *rate, size_t size,
                  uint64_t (*random)(void))
{
    bool drawn = sampler->left != 0;
    gap_draw(sampler, rate, random);
    if (drawn)
        return true;
    if (!sampler_count(sampler, size))
        return false;
    gap_draw(sampler, rate, random);
    return true;
}
