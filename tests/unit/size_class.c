/*
 * Tests of slab/size_class.h: the class of every size, and the arithmetic of the grid against plain
 * division, for every class and every offset.
 */
#include "support.h"

#include "magazine/magazine.h"
#include "slab/slab.h"

TEST(classes_rise_in_steps_of_the_least_alignment)
{
    assert_int_equal(class_bytes(0), 0);
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        assert_true(class_bytes(class) > class_bytes(class - 1));
        assert_int_equal(class_bytes(class) % MIN_ALIGN, 0);
        assert_int_equal(class_size(class), class_bytes(class));
    }
    assert_int_equal(class_bytes(CLASS_COUNT - 1), SMALL_MOST);
    assert_in_range(CLASS_COUNT, 2, PAGE_MAP_CLASSES);
}

TEST(every_size_has_the_smallest_class_that_holds_it)
{
    assert_int_equal(class_of_size(0), 0);
    for (size_t bytes = 1; bytes <= SMALL_MOST; bytes++) {
        size_t class = class_of_size(bytes);
        ASSERT_THAT(class >= 1 && class < CLASS_COUNT, "%zu bytes", bytes);
        ASSERT_THAT(class_bytes(class) >= bytes && class_bytes(class - 1) < bytes,
                    "%zu bytes: class %zu", bytes, class);
    }
}

/* The class is that of the smallest multiple of the alignment, and so aligned itself: what aligned
 * blocks rely on. */
TEST(every_alignment_has_the_smallest_class_that_is_aligned)
{
    for (size_t alignment = 1; alignment <= SMALL_MOST; alignment *= 2)
        for (size_t bytes = 1; bytes <= SMALL_MOST; bytes++) {
            size_t class = class_of_aligned(alignment, bytes);
            ASSERT_THAT(class == class_of_size(align_up(bytes, alignment)), "%zu at %zu", bytes,
                        alignment);
            ASSERT_THAT(class_bytes(class) % alignment == 0, "%zu at %zu", bytes, alignment);
        }
}

TEST(what_is_too_large_for_a_class_has_none)
{
    static const size_t sizes[] = {SMALL_MOST + 1, 5000, SIZE_MAX - 4096, SIZE_MAX};
    for (size_t i = 0; i < 4; i++)
        for (size_t alignment = 1; alignment != 0; alignment *= 2) {
            assert_int_equal(class_of_aligned(alignment, sizes[i]), 0);
            assert_int_equal(class_of_aligned(alignment, 0), 0);
            if (alignment > SMALL_MOST)
                assert_int_equal(class_of_aligned(alignment, 1), 0);
        }
    assert_int_equal(class_of_aligned(0, 100), 0);
}

TEST(slabs_fit_their_descriptors)
{
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        const struct size_class *row = &size_classes[class];
        size_t bytes = (size_t)row->slab_pages << PAGE_SHIFT;
        assert_true(is_power_of_two(row->slab_pages));
        assert_true(bytes <= GRID_BYTES);
        assert_true(bytes / row->bytes <= SLAB_OBJECTS_MOST);
        assert_true(bytes / row->bytes >= 4);
        assert_in_range(row->magazine_log, 0, MAGAZINE_LOG_MOST);
    }
}

TEST(the_grid_agrees_with_division)
{
    static const uintptr_t bases[] = {0, 0x7f1234560000, 0xffffffff0000};
    for (size_t class = 1; class < CLASS_COUNT; class++)
        for (size_t base = 0; base < 3; base++)
            for (size_t offset = 0; offset < GRID_BYTES; offset++) {
                uintptr_t address = bases[base] + offset;
                ASSERT_THAT(on_grid(address, class) == (offset % class_bytes(class) == 0),
                            "class %zu, offset %zu", class, offset);
                ASSERT_THAT(grid_index(address, class) == offset / class_bytes(class),
                            "class %zu, offset %zu", class, offset);
            }
}

TEST(keys_depend_on_the_secret_and_the_address)
{
    assert_int_not_equal(object_key(0x1000), object_key(0x1010));
    assert_int_equal(object_key(0x1010) - object_key(0x1000), 0x10);
    /* The highest bits make it no address and no small number. */
    assert_int_equal(page_map.key >> 62, 1);
    for (uintptr_t address = 0; address < (uintptr_t)1 << 48; address += (uintptr_t)1 << 40) {
        assert_false(page_map_covers((uintptr_t)object_key(address)));
        assert_true(object_key(address) != 0);
    }
    assert_ptr_equal(object_key_word(0x1000), 0x1000);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(classes_rise_in_steps_of_the_least_alignment),
        ROW(every_size_has_the_smallest_class_that_holds_it),
        ROW(every_alignment_has_the_smallest_class_that_is_aligned),
        ROW(what_is_too_large_for_a_class_has_none),
        ROW(slabs_fit_their_descriptors),
        ROW(the_grid_agrees_with_division),
        ROW(keys_depend_on_the_secret_and_the_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
