/*
 * Tests of meta/page_map.h: what it says of any address before and after something is written to
 * it, up to the borders of its leaves and of what it covers. No memory need be there.
 */
#include "support.h"

#include "heap/heap.h"
#include "meta/meta.h"
#include "meta/page_map.h"

#define LEAF_SPAN ((uintptr_t)1 << 32)
#define CHUNK_SPAN ((uintptr_t)1 << PAGE_MAP_CHUNK_BITS)
#define NODE_SPAN ((uintptr_t)1 << PAGE_MAP_NODE_BITS)
#define HOME_SPAN ((uintptr_t)1 << PAGE_MAP_HOME_BITS)
#define CHUNK_BYTES (PAGE_MAP_CHUNK * sizeof(uintptr_t))
#define END ((uintptr_t)1 << 48)

/* Addresses that no test makes a leaf for. */
static const uintptr_t wild[] = {0,           1,          15,         4095,
                                 4096,        0xdeadbeef, LEAF_SPAN,  END / 2,
                                 END / 2 - 1, END - 1,    END - 4096, 0x123456789abc};

TEST(nothing_is_known_of_a_wild_address)
{
    assert_int_equal(page_map.far_limit, 0);
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
        assert_int_equal(page_map_class(beyond[i]), 0);
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

/* The heap has made its first segment before main. */
TEST(around_the_first_segment_is_the_home)
{
    const char *segment =
        CONTAINER_OF(heap_default.page_heap.segments.next, struct segment, link)->start;
    assert_true(page_map_is_home((uintptr_t)segment));
    assert_int_equal(page_map.home % CHUNK_SPAN, 0);
    assert_in_range((uintptr_t)segment - page_map.home, HOME_SPAN / 4 * 3,
                    HOME_SPAN / 4 * 3 + CHUNK_SPAN - 1);
    assert_true(page_map_is_home(page_map.home));
    assert_true(page_map_is_home(page_map.home + HOME_SPAN - 1));
    assert_false(page_map_is_home(page_map.home - 1));
    assert_false(page_map_is_home(page_map.home + HOME_SPAN));
}

/* A program whose memory is all at home has no map of the rest. */
TEST(the_home_needs_no_far_map)
{
    size_t mapped = meta_bytes_mapped();
    assert_true(page_map_reserve((void *)page_map.home, HOME_SPAN));
    assert_int_equal(page_map.far_limit, 0);
    assert_in_range(meta_bytes_mapped() - mapped, 1,
                    HOME_SPAN / CHUNK_SPAN * CHUNK_BYTES + 2 * MIB);
    uintptr_t starts[] = {page_map.home, page_map.home + HOME_SPAN - 2 * CHUNK_SPAN};
    size_t pages = 2 * CHUNK_SPAN >> PAGE_SHIFT;
    for (size_t i = 0; i < 2; i++) {
        page_map_fill_classes((void *)starts[i], pages, 3);
        page_map_fill_entries((void *)starts[i], pages, entry_tagged((void *)0x4560, 9));
        for (size_t page = 0; page < pages; page++) {
            uintptr_t address = starts[i] + (page << PAGE_SHIFT);
            ASSERT_THAT(page_map_class(address) == 3, "page %zu", page);
            ASSERT_THAT(page_map_home_class(address + 4095) == 3, "page %zu", page);
            ASSERT_THAT(page_map_entry(address) == 0x4560, "page %zu", page);
            ASSERT_THAT(page_map_home_entry(address + 4095) == entry_tagged((void *)0x4560, 9),
                        "page %zu", page);
        }
    }
    assert_int_equal(page_map_class(starts[0] + 2 * CHUNK_SPAN), 0);
    assert_int_equal(page_map_entry(starts[0] + 2 * CHUNK_SPAN), 0);
    assert_int_equal(page_map_class(starts[1] - 1), 0);
    assert_int_equal(page_map_entry(starts[1] - 1), 0);
    /* What is beside it. */
    assert_int_equal(page_map_class(page_map.home - 1), 0);
    assert_int_equal(page_map_class(page_map.home + HOME_SPAN), 0);
    assert_int_equal(page_map_home_entry(page_map.home - 1), 0);
    assert_int_equal(page_map_home_entry(page_map.home + HOME_SPAN), 0);
    for (size_t i = 0; i < 2; i++) {
        page_map_fill_classes((void *)starts[i], pages, 0);
        page_map_fill_entries((void *)starts[i], pages, 0);
    }
}

TEST(a_reserved_range_begins_empty)
{
    uintptr_t start = 0x200a00000000;
    assert_true(page_map_reserve((void *)start, 64 * PAGE_BYTES));
    assert_int_equal(page_map.far_limit, PAGE_MAP_ROOT);
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(page_map_class(start + i * PAGE_BYTES), 0);
        assert_int_equal(page_map_entry(start + i * PAGE_BYTES), 0);
    }
    /* A second time costs nothing. */
    size_t mapped = meta_bytes_mapped();
    assert_true(page_map_reserve((void *)start, 64 * PAGE_BYTES));
    assert_true(page_map_reserve((void *)(start + PAGE_BYTES), CHUNK_SPAN - PAGE_BYTES));
    assert_int_equal(meta_bytes_mapped(), mapped);
    /* The rest of the leaf costs entries alone, in one mapping. */
    size_t ranges = meta_system.range_count;
    assert_true(page_map_reserve((void *)start, LEAF_SPAN));
    assert_in_range(meta_bytes_mapped() - mapped, 1, LEAF_SPAN / CHUNK_SPAN * CHUNK_BYTES);
    assert_int_equal(meta_system.range_count, ranges + 1);
}

/* Many chunks one after the other take few mappings. */
TEST(mappings_for_entries_grow)
{
    uintptr_t start = 0x201000000000;
    size_t ranges = meta_system.range_count, mapped = meta_bytes_mapped();
    enum { CHUNKS = 2000 };
    for (size_t i = 0; i < CHUNKS; i++)
        assert_true(page_map_reserve((void *)(start + i * CHUNK_SPAN), PAGE_BYTES));
    size_t leaves = CHUNKS * CHUNK_SPAN / LEAF_SPAN + 1;
    assert_in_range(meta_system.range_count - ranges, leaves, leaves + 40);
    assert_in_range(meta_bytes_mapped() - mapped, CHUNKS * CHUNK_BYTES,
                    (CHUNKS + CHUNKS / 4) * CHUNK_BYTES + leaves * PAGE_MAP_LEAF);
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

static void assert_border(uintptr_t border)
{
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

TEST(ranges_may_cross_leaves)
{
    assert_border(0x200600000000);
}

TEST(ranges_may_cross_chunks)
{
    assert_border(0x200c00000000 + CHUNK_SPAN);
}

TEST(ranges_may_cross_nodes)
{
    assert_border(0x20c000000000);
    assert_int_equal(0x20c000000000 % NODE_SPAN, 0);
}

TEST(ranges_may_lead_home_and_away)
{
    assert_border(page_map.home);
    assert_border(page_map.home + HOME_SPAN);
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
    const uint8_t *shared = (const uint8_t *)(page_map.far_root + PAGE_MAP_ROOT);
    for (size_t i = 0; i < PAGE_MAP_LEAF; i++)
        ASSERT_THAT(shared[i] == 0, "at %zu", i);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(nothing_is_known_of_a_wild_address),
        ROW(what_has_more_than_48_bits_is_not_covered),
        ROW(entries_tell_spans_from_what_was_freed),
        ROW(around_the_first_segment_is_the_home),
        ROW(the_home_needs_no_far_map),
        ROW(a_reserved_range_begins_empty),
        ROW(mappings_for_entries_grow),
        ROW(pages_are_written_one_by_one),
        ROW(ranges_may_cross_leaves),
        ROW(ranges_may_cross_chunks),
        ROW(ranges_may_cross_nodes),
        ROW(ranges_may_lead_home_and_away),
        ROW(the_last_leaf_is_covered),
        ROW(every_class_number_fits),
        ROW(the_shared_leaf_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
