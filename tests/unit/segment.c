/*
 * Tests of segment/: a segment has what it needs before it is used, and nothing is left behind
 * when one cannot be had or given back.
 */
#include "support.h"

#include "fake_provider.h"
#include "meta/meta.h"
#include "meta/page_map.h"
#include "pageheap/segment.h"
#include "platform/memory.h"

static struct fake_provider fake;

static int begin(void **state)
{
    fake_provider_init(&fake);
    return options_reset(state);
}

static int end(void **state)
{
    (void)state;
    bool bad = fake.unknown_range || fake.range_count != 0;
    fake_provider_end(&fake);
    return bad ? -1 : 0;
}

TEST(a_segment_is_taken_and_given)
{
    size_t used = meta_bytes_used();
    struct segment *segment = segment_new(NULL, &fake.provider, &meta_system, 1024);
    assert_non_null(segment);
    assert_int_equal(segment->pages, 1024);
    assert_int_equal(segment->used_pages, 0);
    assert_true(list_empty(&segment->link));
    assert_ptr_equal(segment->start, fake.ranges[0].start);
    assert_int_equal(fake.bytes, 4 * MIB);
    assert_ptr_equal(segment_end(segment), segment->start + 4 * MIB);
    /* Its pages can be entered in the map at once. */
    page_map_set_entry(segment->start, 0x1230);
    page_map_set_entry(segment_end(segment) - PAGE_BYTES, 0x4560);
    assert_int_equal(page_map_entry((uintptr_t)segment->start), 0x1230);
    assert_int_equal(page_map_entry((uintptr_t)segment_end(segment) - 1), 0x4560);
    page_map_fill_entries(segment->start, segment->pages, 0);
    assert_true(segment_free(&fake.provider, &meta_system, segment));
    assert_int_equal(fake.range_count, 0);
    assert_int_equal(meta_bytes_used(), used);
}

TEST(odd_sizes_are_rounded_to_the_systems_pages)
{
    for (size_t pages = 1; pages < 70; pages += 7) {
        struct segment *segment = segment_new(NULL, &fake.provider, &meta_system, pages);
        assert_non_null(segment);
        assert_int_equal(segment->pages << PAGE_SHIFT,
                         align_up(pages << PAGE_SHIFT, os_page_size()));
        assert_true(segment_free(&fake.provider, &meta_system, segment));
    }
}

TEST(a_refusal_leaves_nothing_behind)
{
    size_t used = meta_bytes_used();
    fake.refuse_take = true;
    assert_null(segment_new(NULL, &fake.provider, &meta_system, 1024));
    assert_int_equal(meta_bytes_used(), used);
    assert_int_equal(fake.range_count, 0);
}

TEST(a_segment_that_cannot_go_stays_as_it_was)
{
    size_t used = meta_bytes_used();
    struct segment *segment = segment_new(NULL, &fake.provider, &meta_system, 16);
    char *start = segment->start;
    segment->start[0] = 1;
    fake.refuse_give = true;
    assert_false(segment_free(&fake.provider, &meta_system, segment));
    assert_ptr_equal(segment->start, start);
    assert_int_equal(segment->pages, 16);
    assert_int_equal(segment->start[0], 1);
    fake.refuse_give = false;
    assert_true(segment_free(&fake.provider, &meta_system, segment));
    assert_int_equal(meta_bytes_used(), used);
}

/* ---- A provider whose addresses the page map cannot hold ---- */

static unsigned far_given;

static void *far_take(const struct provider *provider, size_t bytes, size_t alignment)
{
    (void)provider;
    (void)bytes;
    (void)alignment;
    return (void *)((uintptr_t)1 << 48);
}

static bool far_give(const struct provider *provider, void *start, size_t bytes)
{
    (void)provider;
    assert_int_equal(start, (uintptr_t)1 << 48);
    assert_int_equal(bytes, MIB);
    far_given++;
    return true;
}

TEST(a_range_beyond_the_page_map_goes_back)
{
    static const struct provider far = {.take = far_take, .give = far_give};
    size_t used = meta_bytes_used();
    far_given = 0;
    assert_null(segment_new(NULL, &far, &meta_system, 256));
    assert_int_equal(far_given, 1);
    assert_int_equal(meta_bytes_used(), used);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(a_segment_is_taken_and_given, begin, end),
        ROW_WITH(odd_sizes_are_rounded_to_the_systems_pages, begin, end),
        ROW_WITH(a_refusal_leaves_nothing_behind, begin, end),
        ROW_WITH(a_segment_that_cannot_go_stays_as_it_was, begin, end),
        ROW_WITH(a_range_beyond_the_page_map_goes_back, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
