/*
 * Tests of page_heap_check: one field after the other is damaged, and each damage is found.
 */
#include "page_heap_support.h"

#include "meta/page_map.h"

/* A heap with something of everything: used | dirty | used | clean | used | dirty | clean. */
static struct span *used, *wall, *last;
static struct span *dirty, *clean;

static int plant(void **state)
{
    int result = page_heap_begin(state);
    used = span_get(8);
    struct span *second = span_get(10);
    wall = span_get(4);
    struct span *third = span_get(12);
    last = span_get(6);
    struct span *fourth = span_get(3);
    span_put(third);
    page_heap_purge(&page_heap, 0);
    span_put(second);
    span_put(fourth);
    dirty = second;
    clean = third;
    return result;
}

static int uproot(void **state)
{
    span_put(used);
    span_put(wall);
    span_put(last);
    assert_page_heap_empty();
    return page_heap_end(state);
}

TEST(the_heap_is_as_it_is_meant_to_be)
{
    NEED_SMALL_PAGES;
    assert_int_equal(dirty->kind, SPAN_DIRTY);
    assert_int_equal(clean->kind, SPAN_CLEAN);
    assert_int_equal(runs_count(&page_heap.dirty), 2);
    assert_int_equal(runs_count(&page_heap.clean), 2);
    assert_ptr_equal(span_end(used), dirty->start);
    assert_ptr_equal(span_end(dirty), wall->start);
    assert_ptr_equal(span_end(wall), clean->start);
    assert_ptr_equal(span_end(clean), last->start);
    assert_page_heap_sound();
}

#define PLANT(field, damage, expected) \
    ASSERT_FOUND(field, damage, page_heap_check(&page_heap), expected)

TEST(damaged_descriptors_are_found)
{
    struct span *all[] = {used, dirty, wall, clean, last};
    for (size_t i = 0; i < 5; i++) {
        struct span *span = all[i];
        PLANT(span->start, span->start + PAGE_BYTES, "spans do not tile their segment");
        PLANT(span->start, span->start - PAGE_BYTES, "spans do not tile their segment");
        PLANT(span->segment, NULL, "spans do not tile their segment");
        PLANT(span->pages, 0, "spans do not tile their segment");
        PLANT(span->pages, span->pages + 1, "spans do not tile their segment");
        PLANT(span->left, span, "spans do not tile their segment");
    }
    PLANT(used->pages, used->pages + dirty->pages, "spans do not tile their segment");
    PLANT(wall->right, NULL, "spans do not tile their segment");
    PLANT(used->right, wall, "spans do not tile their segment");
}

TEST(wrong_kinds_are_found)
{
    NEED_SMALL_PAGES;
    PLANT(wall->kind, SPAN_DIRTY, "two free runs of a kind side by side");
    PLANT(wall->kind, SPAN_CLEAN, "two free runs of a kind side by side");
    PLANT(used->kind, SPAN_CLEAN, "a segment's count of used pages is wrong");
    PLANT(dirty->kind, SPAN_LARGE, "a large block is not in the table");
    PLANT(wall->kind, SPAN_SLAB, "a page of a span leads elsewhere");
    PLANT(clean->kind, SPAN_DIRTY, "the page counts of the runs are wrong");
    PLANT(dirty->kind, SPAN_CLEAN, "the page counts of the runs are wrong");
}

/* Writes an entry of the page map, and fails unless that is found. */
static void assert_entry_found(char *page, uintptr_t damage, const char *expected)
{
    assert_page_heap_sound();
    uintptr_t sound = page_map_entry((uintptr_t)page);
    page_map_set_entry(page, damage);
    const char *found = page_heap_check(&page_heap);
    page_map_set_entry(page, sound);
    assert_said(found, expected, "an entry of the page map");
    assert_page_heap_sound();
}

TEST(damaged_entries_of_the_page_map_are_found)
{
    struct span *slab = span_new(SPAN_SLAB, 3, PAGE_BYTES);
    char *pages[] = {slab->start, span_end(slab) - PAGE_BYTES};
    for (size_t i = 0; i < 2; i++) {
        assert_entry_found(pages[i], 0, "a page of a span leads elsewhere");
        assert_entry_found(pages[i], entry_freed(64), "a page of a span leads elsewhere");
        assert_entry_found(pages[i], (uintptr_t)wall, "a page of a span leads elsewhere");
    }
    span_put(slab);
}

TEST(a_large_block_that_is_in_no_table_is_found)
{
    large_table_remove(&page_heap.large, wall);
    const char *found = page_heap_check(&page_heap);
    large_table_add(&page_heap.large, wall);
    assert_said(found, "a large block is not in the table", "a block out of the table");
    assert_page_heap_sound();
}

TEST(wrong_counts_are_found)
{
    struct segment *segment = used->segment;
    PLANT(segment->used_pages, segment->used_pages + 1, "a segment's count of used pages is wrong");
    PLANT(segment->used_pages, 0, "a segment's count of used pages is wrong");
    PLANT(page_heap.used_pages, page_heap.used_pages - 1, "the page counts of the runs are wrong");
    PLANT(page_heap.dirty.pages, page_heap.dirty.pages + 1,
          "the page counts of the runs are wrong");
    PLANT(page_heap.clean.pages, page_heap.clean.pages - 1,
          "the page counts of the runs are wrong");
    PLANT(page_heap.segment_pages, page_heap.segment_pages + 1, "are not those of the segments");
    PLANT(page_heap.shared_pages, 1, "the count of pages for slabs and cells is wrong");
    PLANT(page_heap.sizes.bytes[3], 100, "the rows of large blocks are wrong");
    PLANT(page_heap.huge_requested, 100, "the rows of large blocks are wrong");
    PLANT(page_heap.empty_segments, 1, "the count of empty segments is wrong");
}

TEST(a_lost_segment_is_found)
{
    struct span *second = span_get(FIRST_SEGMENT_PAGES);
    struct list *link = &second->segment->link;
    assert_page_heap_sound();
    list_remove(link);
    const char *found = page_heap_check(&page_heap);
    list_push(&page_heap.segments, link);
    assert_said(found, "the page counts of the runs are wrong", "a segment out of its list");
    assert_page_heap_sound();
    span_put(second);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(the_heap_is_as_it_is_meant_to_be, plant, uproot),
        ROW_WITH(damaged_descriptors_are_found, plant, uproot),
        ROW_WITH(wrong_kinds_are_found, plant, uproot),
        ROW_WITH(damaged_entries_of_the_page_map_are_found, plant, uproot),
        ROW_WITH(a_large_block_that_is_in_no_table_is_found, plant, uproot),
        ROW_WITH(wrong_counts_are_found, plant, uproot),
        ROW_WITH(a_lost_segment_is_found, plant, uproot),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
