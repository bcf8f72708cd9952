/*
 * Tests of meta/page_map.h: what it says of any address before and after something is written to
 * it, up to the borders of its leaves and of what it covers. No memory need be there.
 */
#include "support.h"

#include "meta/meta.h"
#include "meta/page_map.h"

#define LEAF_SPAN ((uintptr_t)1 << 32)
#define END ((uintptr_t)1 << 48)

/* Addresses that no test makes a leaf for. */
static const uintptr_t wild[] = {0,           1,          15,         4095,
                                 4096,        0xdeadbeef, LEAF_SPAN,  END / 2,
                                 END / 2 - 1, END - 1,    END - 4096, 0x123456789abc};

TEST(nothing_is_known_of_a_wild_address)
{
    for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
        assert_true(page_map_covers(wild[i]));
        assert_int_equal(page_map_class(wild[i]), 0);
        assert_int_equal(page_map_entry(wild[i]), 0);
    }
    int local;
    static int global;
    assert_int_equal(page_map_class((uintptr_t)&local), 0);
    assert_int_equal(page_map_entry((uintptr_t)&local), 0);
    assert_int_equal(page_map_class((uintptr_t)&global), 0);
    assert_int_equal(page_map_entry((uintptr_t)&global), 0);
}

TEST(what_has_more_than_48_bits_is_not_covered)
{
    static const uintptr_t beyond[] = {END,
                                       END + 1,
                                       ~END,
                                       (uintptr_t)1 << 63,
                                       UINTPTR_MAX,
                                       UINTPTR_MAX - 4095,
                                       0xffff800000000000};
    for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
        assert_false(page_map_covers(beyond[i]));
        assert_int_equal(page_map_entry(beyond[i]), 0);
    }
    assert_false(page_map_reserve((void *)END, PAGE_BYTES));
    assert_false(page_map_reserve((void *)((uintptr_t)1 << 63), PAGE_BYTES));
    assert_false(page_map_reserve((void *)(END - PAGE_BYTES), 2 * PAGE_BYTES));
}

TEST(entries_tell_spans_from_what_was_freed)
{
    int64_t descriptor;
    assert_false(entry_is_span(0));
    assert_true(entry_is_span((uintptr_t)&descriptor));
    static const size_t sizes[] = {0, 1, 16, 16384, (size_t)1 << 40};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        assert_false(entry_is_span(entry_freed(sizes[i])));
        assert_true(entry_freed(sizes[i]) != 0);
        assert_int_equal(entry_freed(sizes[i]) >> 1, sizes[i]);
    }
}

TEST(a_reserved_range_begins_empty)
{
    uintptr_t start = 0x200100000000;
    assert_true(page_map_reserve((void *)start, 64 * PAGE_BYTES));
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(page_map_class(start + i * PAGE_BYTES), 0);
        assert_int_equal(page_map_entry(start + i * PAGE_BYTES), 0);
    }
    /* A second time costs nothing. */
    size_t mapped = meta_bytes_mapped();
    assert_true(page_map_reserve((void *)start, 64 * PAGE_BYTES));
    assert_true(page_map_reserve((void *)(start + PAGE_BYTES), LEAF_SPAN - PAGE_BYTES));
    assert_int_equal(meta_bytes_mapped(), mapped);
}

/* All of the page, and nothing of its neighbours, says `class` and `entry`. */
static void assert_page(uintptr_t page, size_t class, uintptr_t entry)
{
    static const size_t offsets[] = {0, 1, 16, 2048, 4095};
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        assert_int_equal(page_map_class(page + offsets[i]), class);
        assert_int_equal(page_map_entry(page + offsets[i]), entry);
    }
}

TEST(pages_are_written_one_by_one)
{
    uintptr_t start = 0x200300000000;
    assert_true(page_map_reserve((void *)start, LEAF_SPAN));
    static const size_t pages[] = {
        0, 1, 2, 500, 65535, 65536, PAGE_MAP_LEAF - 2, PAGE_MAP_LEAF - 1};
    for (size_t i = 0; i < 8; i++) {
        uintptr_t page = start + pages[i] * PAGE_BYTES;
        page_map_set_entry((void *)(page), 0x1000 + 16 * i);
        page_map_fill_classes((void *)page, 1, i + 1);
    }
    for (size_t i = 0; i < 8; i++)
        assert_page(start + pages[i] * PAGE_BYTES, i + 1, 0x1000 + 16 * i);
    assert_page(start + 3 * PAGE_BYTES, 0, 0);
    assert_page(start + 499 * PAGE_BYTES, 0, 0);
    assert_page(start + 501 * PAGE_BYTES, 0, 0);
    /* The leaves around are others. */
    assert_page(start - PAGE_BYTES, 0, 0);
    assert_page(start + LEAF_SPAN, 0, 0);
}

TEST(ranges_may_cross_leaves)
{
    uintptr_t border = 0x200600000000;
    uintptr_t start = border - 3 * PAGE_BYTES;
    assert_true(page_map_reserve((void *)start, 7 * PAGE_BYTES));
    page_map_fill_entries((void *)start, 7, 0xabcd0);
    page_map_fill_classes((void *)start, 7, 91);
    for (size_t i = 0; i < 7; i++)
        assert_page(start + i * PAGE_BYTES, 91, 0xabcd0);
    assert_page(start - PAGE_BYTES, 0, 0);
    assert_page(start + 7 * PAGE_BYTES, 0, 0);
    page_map_fill_entries((void *)(start + PAGE_BYTES), 5, entry_freed(48));
    page_map_fill_classes((void *)(start + PAGE_BYTES), 5, 0);
    assert_page(start, 91, 0xabcd0);
    for (size_t i = 1; i < 6; i++)
        assert_page(start + i * PAGE_BYTES, 0, entry_freed(48));
    assert_page(start + 6 * PAGE_BYTES, 91, 0xabcd0);
}

TEST(the_last_leaf_is_covered)
{
    uintptr_t last = END - PAGE_BYTES;
    uintptr_t first_of_leaf = END - LEAF_SPAN;
    assert_true(page_map_reserve((void *)last, PAGE_BYTES));
    page_map_set_entry((void *)last, 0x5550);
    page_map_fill_classes((void *)last, 1, 7);
    assert_page(last, 7, 0x5550);
    assert_page(first_of_leaf, 0, 0);
    page_map_fill_classes((void *)last, 1, 0);
    page_map_set_entry((void *)last, 0);
}

TEST(every_class_number_fits)
{
    uintptr_t page = 0x200900000000;
    assert_true(page_map_reserve((void *)page, PAGE_BYTES));
    for (size_t class = 0; class < PAGE_MAP_CLASSES; class++) {
        page_map_fill_classes((void *)page, 1, class);
        assert_int_equal(page_map_class(page), class);
    }
}

/* The last: nobody has written where all other addresses lead. */
TEST(the_shared_leaf_is_zero)
{
    for (size_t i = 0; i < PAGE_MAP_LEAF; i++)
        ASSERT_THAT(page_map_no_class[i] == 0, "at %zu", i);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(nothing_is_known_of_a_wild_address),
        ROW(what_has_more_than_48_bits_is_not_covered),
        ROW(entries_tell_spans_from_what_was_freed),
        ROW(a_reserved_range_begins_empty),
        ROW(pages_are_written_one_by_one),
        ROW(ranges_may_cross_leaves),
        ROW(the_last_leaf_is_covered),
        ROW(every_class_number_fits),
        ROW(the_shared_leaf_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
