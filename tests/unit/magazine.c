/*
 * Tests of magazine/magazine.h: the layout on which the fast path relies.
 */
#include "support.h"

#include "magazine/magazine.h"
#include "meta/meta.h"

TEST(a_magazine_fills_its_block)
{
    size_t expected = 4;
    for (unsigned log = 0; log <= MAGAZINE_LOG_MOST; log++) {
        size_t capacity = magazine_capacity(log);
        assert_int_equal(capacity, expected);
        assert_true(capacity <= MAGAZINE_SLOTS_MOST);
        /* header, mark, slots, mark */
        size_t bytes = sizeof(struct magazine) + (capacity + 2) * sizeof(uintptr_t);
        assert_int_equal(bytes, META_LEAST << log);
        assert_true(capacity < MARK_LIMIT);
        expected = 2 * expected + 4;
    }
    assert_int_equal(magazine_capacity(MAGAZINE_LOG_MOST), MAGAZINE_SLOTS_MOST);
}

TEST(a_new_magazine_is_empty_between_its_marks)
{
    for (unsigned log = 0; log <= MAGAZINE_LOG_MOST; log++) {
        size_t used = meta_bytes_used();
        struct magazine *magazine = magazine_new(log);
        size_t capacity = magazine_capacity(log);
        assert_int_equal(meta_bytes_used() - used, META_LEAST << log);
        assert_int_equal(magazine->log, log);
        assert_int_equal(magazine->count, 0);
        assert_null(magazine->link);
        assert_int_equal(magazine->slots[0], capacity);
        assert_true(is_end_mark(magazine->slots[capacity + 1]));
        for (size_t i = 1; i <= capacity; i++) {
            assert_true(magazine->slots[i] >= MARK_LIMIT);
            assert_false(is_end_mark(magazine->slots[i]));
        }
        magazine_free(magazine);
        assert_int_equal(meta_bytes_used(), used);
    }
}

TEST(both_ends_lead_back_to_the_magazine)
{
    for (unsigned log = 0; log <= MAGAZINE_LOG_MOST; log++) {
        struct magazine *magazine = magazine_new(log);
        uintptr_t *begin = magazine_begin(magazine), *end = magazine_end(magazine);
        assert_int_equal(end - begin, magazine_capacity(log));
        assert_true(begin[-1] < MARK_LIMIT);
        assert_true(is_end_mark(*end));
        assert_ptr_equal(magazine_of_end(end), magazine);
        assert_ptr_equal(magazine_of_full(begin), magazine);
        magazine_free(magazine);
    }
}

/* Fills it with addresses of objects of 48 bytes: so many objects further, and so many, in turns.
 */
static void fill_by_steps(struct magazine *magazine, intptr_t step, intptr_t other)
{
    uintptr_t object = (uintptr_t)1 << 30;
    uintptr_t *slots = magazine_begin(magazine);
    for (size_t i = 0; i < magazine_capacity(magazine->log); i++)
        slots[i] = object += (uintptr_t)((i % 2 == 0 ? step : other) * 48);
}

TEST(order_is_near_the_one_before_or_further_on)
{
    for (unsigned log = 1; log <= MAGAZINE_LOG_MOST; log++) {
        struct magazine *magazine = magazine_new(log);
        for (intptr_t step = 1; step <= 300; step *= 3) {
            fill_by_steps(magazine, step, step);
            assert_true(magazine_is_in_order(magazine, 48));
            fill_by_steps(magazine, -step, -step);
            assert_true(magazine_is_in_order(magazine, 48));
        }
        for (intptr_t step = 1; step <= 9; step++) {
            fill_by_steps(magazine, step, -step);
            assert_int_equal(magazine_is_in_order(magazine, 48), step <= 4);
        }
        /* Two runs one after the other. */
        fill_by_steps(magazine, 1, 1);
        for (size_t i = magazine_capacity(log) / 2; i < magazine_capacity(log); i++)
            magazine_begin(magazine)[i] -= 64 * PAGE_BYTES;
        assert_true(magazine_is_in_order(magazine, 48));
        magazine_free(magazine);
    }
}

TEST(a_quarter_that_lies_elsewhere_is_no_order)
{
    struct magazine *magazine = magazine_new(MAGAZINE_LOG_MOST);
    fill_by_steps(magazine, 1, 1);
    for (size_t i = 3; i < magazine_capacity(MAGAZINE_LOG_MOST); i += 4)
        magazine_begin(magazine)[i] += 64 * PAGE_BYTES;
    assert_false(magazine_is_in_order(magazine, 48));
    magazine_free(magazine);
}

TEST(each_top_leads_to_its_magazine)
{
    for (unsigned log = 0; log <= MAGAZINE_LOG_MOST; log++) {
        struct magazine *magazine = magazine_new(log);
        for (uintptr_t *top = magazine_begin(magazine); top <= magazine_end(magazine); top++) {
            struct magazine_part part = magazine_above(top);
            assert_ptr_equal(part.magazine, magazine);
            assert_ptr_equal(part.objects, top);
            assert_int_equal(part.count, (size_t)(magazine_end(magazine) - top));
        }
        magazine_free(magazine);
    }
}

TEST(what_is_no_magazine_is_not_taken_for_one)
{
    _Alignas(META_LEAST << MAGAZINE_LOG_MOST) static uintptr_t words[512];
    for (size_t i = 0; i < 512; i++)
        words[i] = MARK_LIMIT + i;
    assert_null(magazine_above(words + 100).magazine); /* no end */
    words[200] = end_mark_of(MAGAZINE_LOG_MOST + 1);
    assert_null(magazine_above(words + 100).magazine); /* an end of no size */
    words[200] = end_mark_of(0);
    assert_null(magazine_above(words + 100).magazine); /* too many above */
    assert_null(magazine_above(words + 198).magazine); /* not where one lies */
    words[207] = end_mark_of(0);
    assert_null(magazine_above(words + 205).magazine); /* without marks on both sides */
    struct magazine *magazine = (struct magazine *)(words + 200);
    magazine->log = 0;
    magazine->slots[0] = 4;
    assert_ptr_equal(magazine_above(words + 205).magazine, magazine);
    magazine->log = 1;
    assert_null(magazine_above(words + 205).magazine); /* of another size */
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(a_magazine_fills_its_block),
        ROW(a_new_magazine_is_empty_between_its_marks),
        ROW(both_ends_lead_back_to_the_magazine),
        ROW(order_is_near_the_one_before_or_further_on),
        ROW(a_quarter_that_lies_elsewhere_is_no_order),
        ROW(each_top_leads_to_its_magazine),
        ROW(what_is_no_magazine_is_not_taken_for_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
