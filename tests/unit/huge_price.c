/*
 * Tests of pageheap/huge_price.h: when a price is asked for, what is cheap, how long nothing is
 * bought after what was dear, and that one wrong measurement does not decide.
 */
#include "support.h"

#include <string.h>

#include "pageheap/huge_price.h"

enum { PAGES = 512 };

static struct huge_price price;

static int begin(void **state)
{
    memset(&price, 0, sizeof(price));
    return options_reset(state);
}

/* A small page costs this, from now on. */
static void small_costs(uint32_t nanoseconds)
{
    memset(&price, 0, sizeof(price));
    huge_price_note_small(&price, 1, nanoseconds - 1);
    assert_int_equal(price.small_ns, nanoseconds);
}

/* A huge page was bought in which 4 KiB cost so much; whether that was cheap. */
static bool huge_costs(uint64_t nanoseconds)
{
    return huge_price_note_huge(&price, PAGES, nanoseconds * PAGES);
}

/* How many occasions pass unused before one is used. */
static size_t occasions_passed(void)
{
    size_t passed = 0;
    while (!huge_price_try(&price)) {
        passed++;
        assert_in_range(passed, 0, 2 * BACKOFF_MOST);
    }
    return passed;
}

TEST(nothing_is_bought_before_small_pages_have_a_price)
{
    for (unsigned i = 0; i < 2 * HUGE_PRICE_AGE; i++) {
        assert_true(huge_price_is_stale(&price));
        assert_false(huge_price_try(&price));
    }
    huge_price_note_small(&price, 16, 16000);
    assert_false(huge_price_is_stale(&price));
    assert_true(huge_price_try(&price));
}

TEST(a_price_is_stale_after_so_many_occasions)
{
    small_costs(1000);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < HUGE_PRICE_AGE; i++) {
            ASSERT_THAT(!huge_price_is_stale(&price), "round %u, after %u", round, i);
            huge_price_try(&price);
        }
        for (unsigned i = 0; i < 3; i++) { /* and stays so until it is measured again */
            assert_true(huge_price_is_stale(&price));
            huge_price_try(&price);
        }
        huge_price_note_small(&price, 16, 16000);
    }
}

TEST(occasions_that_pass_unused_count_for_its_age)
{
    small_costs(1000);
    for (unsigned i = 0; i < 4; i++)
        huge_costs(1000);
    assert_int_equal(price.backoff.wait, 8 * BACKOFF_LEAST);
    for (unsigned i = 0; i < HUGE_PRICE_AGE; i++)
        assert_false(huge_price_try(&price));
    assert_true(huge_price_is_stale(&price));
}

TEST(the_price_is_that_of_one_page)
{
    huge_price_note_small(&price, 256, 256 * 900);
    assert_in_range(price.small_ns, 900, 901);
}

TEST(three_quarters_are_the_border_of_cheap)
{
    static const uint32_t costs[] = {4, 100, 1000, 1001, 1600, 65536, UINT32_MAX};
    for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
        uint64_t border = (uint64_t)costs[i] * 3 / 4;
        small_costs(costs[i]);
        ASSERT_THAT(huge_costs(border - 1), "small pages cost %u", costs[i]);
        ASSERT_THAT(!huge_costs(border), "small pages cost %u", costs[i]);
        ASSERT_THAT(!huge_costs(border + 1), "small pages cost %u", costs[i]);
        assert_true(huge_costs(0));
    }
}

TEST(after_each_dear_one_twice_as_many_pass)
{
    static const size_t expected[] = {8, 16, 32, 64, 128, 256, 512, 1024, 1024, 1024};
    small_costs(1000);
    assert_int_equal(occasions_passed(), 0);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_false(huge_costs(4000));
        assert_int_equal(occasions_passed(), expected[i]);
    }
}

TEST(after_a_cheap_one_none_passes)
{
    small_costs(1000);
    for (unsigned i = 0; i < 5; i++) {
        assert_true(huge_costs(300));
        assert_int_equal(occasions_passed(), 0);
    }
}

TEST(cheap_ones_pay_dear_ones_back_first)
{
    small_costs(1000);
    for (size_t dear = 1; dear < 9; dear++) {
        size_t passed = 0;
        for (size_t i = 0; i < dear; i++) {
            assert_false(huge_costs(1650)); /* 900 too much */
            passed = occasions_passed();
            assert_int_equal(passed, BACKOFF_LEAST << i);
        }
        /* Each saves 450; more than 3,000 is not owed. */
        for (size_t left = dear < 4 ? 2 * dear : 7; left > 1; left--) {
            assert_true(huge_costs(300));
            assert_int_equal(occasions_passed(), passed);
        }
        assert_true(huge_costs(300));
        assert_int_equal(occasions_passed(), 0);
    }
}

/* What a run of `count` ranges costs where `dear` of ten huge pages are dear, in units of what
 * small pages for them would. */
static double cost_of_mixed(unsigned count, unsigned dear)
{
    double cost = 0;
    small_costs(1000);
    for (unsigned i = 0; i < count; i++) {
        uint64_t nanoseconds = 1000;
        if (huge_price_try(&price)) {
            nanoseconds = (i * 7919u >> 3) % 10 < dear ? 5000 : 300;
            huge_costs(nanoseconds);
        }
        cost += (double)nanoseconds / 1000;
    }
    return cost / count;
}

TEST(where_some_are_dear_the_mean_decides)
{
    assert_true(cost_of_mixed(10000, 0) < 0.31);
    assert_true(cost_of_mixed(10000, 1) < 1.05); /* all of them bought: 0.77 */
    assert_true(cost_of_mixed(10000, 3) < 1.05); /* 1.71 */
    assert_true(cost_of_mixed(10000, 6) < 1.05); /* 3.12 */
}

TEST(an_interrupted_measurement_doubles_the_price_at_most)
{
    small_costs(1000);
    huge_price_note_small(&price, 16, 16 * 10000);
    assert_int_equal(price.small_ns, 2000);
    assert_false(huge_costs(1500));
    huge_price_note_small(&price, 16, 16 * 1000);
    assert_in_range(price.small_ns, 1000, 1001);
}

TEST(what_stays_dearer_is_believed_by_and_by)
{
    small_costs(1000);
    for (unsigned i = 0; i < 4; i++)
        huge_price_note_small(&price, 16, 16 * 10000);
    assert_in_range(price.small_ns, 10000, 10001);
    assert_true(huge_costs(7000));
    huge_price_note_small(&price, 16, 16 * 100); /* what is cheaper, at once */
    assert_in_range(price.small_ns, 100, 101);
    assert_false(huge_costs(100));
}

TEST(numbers_may_be_as_large_or_small_as_they_like)
{
    static const uint64_t times[] = {
        0, 1, UINT32_MAX - 1, UINT32_MAX, (uint64_t)UINT32_MAX + 1, UINT64_MAX - 1, UINT64_MAX};
    static const size_t pages[] = {1, 16, PAGES, (size_t)1 << 40};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        for (size_t j = 0; j < sizeof(pages) / sizeof(pages[0]); j++) {
            memset(&price, 0, sizeof(price));
            huge_price_note_small(&price, pages[j], times[i]);
            uint64_t each = times[i] / pages[j];
            uint64_t expected = each < UINT32_MAX ? each + 1 : UINT32_MAX;
            ASSERT_THAT(price.small_ns == expected, "%zu pages in %zu ns: %u", pages[j],
                        (size_t)times[i], price.small_ns);
            assert_false(huge_price_is_stale(&price));
            assert_true(huge_price_try(&price));
            bool cheap = huge_price_note_huge(&price, pages[j], times[i]);
            ASSERT_THAT(!cheap || each > UINT32_MAX / 4 * 3, "%zu pages in %zu ns", pages[j],
                        (size_t)times[i]);
        }
    small_costs(UINT32_MAX);
    huge_price_note_small(&price, 1, UINT64_MAX);
    assert_int_equal(price.small_ns, UINT32_MAX);
    price.backoff.waited = UINT32_MAX;
    assert_false(huge_costs(UINT32_MAX));
    assert_int_equal(price.backoff.wait, BACKOFF_MOST);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(nothing_is_bought_before_small_pages_have_a_price, begin, options_reset),
        ROW_WITH(a_price_is_stale_after_so_many_occasions, begin, options_reset),
        ROW_WITH(occasions_that_pass_unused_count_for_its_age, begin, options_reset),
        ROW_WITH(the_price_is_that_of_one_page, begin, options_reset),
        ROW_WITH(three_quarters_are_the_border_of_cheap, begin, options_reset),
        ROW_WITH(after_each_dear_one_twice_as_many_pass, begin, options_reset),
        ROW_WITH(after_a_cheap_one_none_passes, begin, options_reset),
        ROW_WITH(cheap_ones_pay_dear_ones_back_first, begin, options_reset),
        ROW_WITH(where_some_are_dear_the_mean_decides, begin, options_reset),
        ROW_WITH(an_interrupted_measurement_doubles_the_price_at_most, begin, options_reset),
        ROW_WITH(what_stays_dearer_is_believed_by_and_by, begin, options_reset),
        ROW_WITH(numbers_may_be_as_large_or_small_as_they_like, begin, options_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
