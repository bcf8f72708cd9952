/*
 * Tests of what slabs say of wrong pointers, and of bin_check: one field after the other is
 * damaged, and each damage is found.
 */
#include "slab_support.h"

#include <stdio.h>

#include "base/bits.h"
#include "options/options.h"
#include "platform/check.h"

static struct bin bin;
static uintptr_t objects[3 * OBJECTS_64];

static int begin(void **state)
{
    int result = page_heap_begin(state);
    bin_begin(&bin, CLASS_64);
    return result;
}

/* ---- Misuse ---- */

static void assert_misuse(uintptr_t address, int kind, size_t bytes, uintptr_t start)
{
    struct misuse misuse = slab_misuse(address);
    assert_int_equal(misuse.kind, kind);
    assert_int_equal(misuse.address, address);
    if (kind == MISUSE_DOUBLE_FREE || kind == MISUSE_INSIDE)
        assert_int_equal(misuse.bytes, bytes);
    if (kind == MISUSE_INSIDE)
        assert_int_equal(misuse.start, start);
}

TEST(each_address_in_a_slab_has_its_answer)
{
    objects_alloc(&bin, objects, 40);
    objects_free(objects + 20, 1);
    for (size_t i = 0; i < 40; i++)
        for (uintptr_t offset = 0; offset < 64; offset++) {
            int kind = i == 20 ? MISUSE_DOUBLE_FREE : offset == 0 ? MISUSE_NONE : MISUSE_INSIDE;
            assert_misuse(objects[i] + offset, kind, 64, objects[i]);
        }
    /* Behind them are objects that nobody was ever given. */
    assert_misuse(objects[39] + 64, MISUSE_UNKNOWN, 0, 0);
    assert_misuse(objects[0] + 4 * PAGE_BYTES - 1, MISUSE_UNKNOWN, 0, 0);
    objects_free(objects, 20);
    objects_free(objects + 21, 19);
    bin_trim(&bin);
    assert_misuse(objects[0], MISUSE_UNKNOWN, 0, 0); /* no slab is there any more */
    assert_page_heap_empty();
}

TEST(what_no_object_covers_is_unknown)
{
    /* 208 bytes: neither the begin nor the end of a slab is on the grid. */
    size_t class = class_of_size(208);
    bin_begin(&bin, class);
    static uintptr_t all[4 * SLAB_OBJECTS_MOST];
    size_t count = 0;
    for (size_t i = 0; i < 4; i++)
        count += slab_take_all(&bin, all + count);
    size_t unknown = 0;
    for (size_t i = 0; i < count; i++) {
        const struct slab *slab = slab_at(all[i]);
        uintptr_t start = (uintptr_t)slab->span.start, end = (uintptr_t)span_end(&slab->span);
        assert_misuse(all[i], MISUSE_NONE, 0, 0);
        if (i == 0 || slab_at(all[i - 1]) != slab)
            for (uintptr_t at = start; at < all[i]; at++, unknown++)
                assert_misuse(at, MISUSE_UNKNOWN, 0, 0);
        if (i == count - 1 || slab_at(all[i + 1]) != slab)
            for (uintptr_t at = all[i] + 208; at < end; at++, unknown++)
                assert_misuse(at, MISUSE_UNKNOWN, 0, 0);
    }
    assert_true(unknown > 0);
    objects_free(all, count);
    bin_trim(&bin);
    assert_page_heap_empty();
}

/* Gives one wrong pointer among right ones; the right ones are free afterwards, and one line is
 * said. */
static void give_one_wrong(uintptr_t wrong, const char *call, const char *expected)
{
    uintptr_t batch[9];
    objects_alloc(&bin, batch, 4);
    objects_alloc(&bin, batch + 5, 4);
    batch[4] = wrong;
    size_t before = bin.free_objects;
    stderr_capture();
    slabs_free(batch, 9, call);
    assert_string_equal(stderr_restore(), expected);
    assert_int_equal(bin.free_objects, before + 8);
    assert_bin_sound(&bin);
}

TEST(wrong_pointers_are_left_out_and_said)
{
    char line[128];
    options.misuse = MISUSE_WARN;
    objects_alloc(&bin, objects, 40);
    objects_free(objects + 20, 20);
    snprintf(line, sizeof(line), "snug: double free: %#zx, a 64-byte object\n", objects[39]);
    give_one_wrong(objects[39], "free", line);
    snprintf(line, sizeof(line), "snug: invalid realloc: %#zx is a 64-byte object that is free\n",
             objects[39]);
    give_one_wrong(objects[39], "realloc", line);
    snprintf(line, sizeof(line),
             "snug: invalid free: %#zx is inside a 64-byte object that starts at %#zx\n",
             objects[3] + 16, objects[3]);
    give_one_wrong(objects[3] + 16, "free", line);
    snprintf(line, sizeof(line), "snug: invalid free: %#zx was not allocated by snug\n",
             objects[39] + 640);
    give_one_wrong(objects[39] + 640, "free", line);
    snprintf(line, sizeof(line), "snug: invalid free: %#zx was not allocated by snug\n",
             (uintptr_t)line);
    give_one_wrong((uintptr_t)line, "free", line);
    give_one_wrong(objects[39], NULL, "");
    give_one_wrong(objects[3] + 16, NULL, "");
}

/* What an overflow leaves behind the last object that was handed out. */
TEST(what_is_written_to_before_it_is_handed_out_is_said)
{
    char line[128];
    struct misuse misuse;
    options.misuse = MISUSE_WARN;
    objects_alloc(&bin, objects, 10);
    struct slab *slab = slab_at(objects[0]);
    assert_true(slab->span.zero);
    uintptr_t next = objects[9] + 64;
    memset((void *)(next + 8), 0x41, 56); /* what is behind the first word is nobody's */
    bin_inspect(&bin, 100, &misuse);
    assert_int_equal(misuse.kind, MISUSE_NONE);
    *(char *)next = 0x41;
    bin_inspect(&bin, 100, &misuse);
    assert_int_equal(misuse.kind, MISUSE_BEYOND);
    assert_int_equal(misuse.address, next);
    snprintf(line, sizeof(line),
             "snug: overflow: %#zx, a 64-byte object, never handed out, was written to, found "
             "0x41\n",
             next);
    stderr_capture();
    objects_alloc(&bin, objects + 10, 1);
    assert_string_equal(stderr_restore(), line);
    assert_int_equal(objects[10], next);
    assert_int_equal(*object_key_word(next), object_key(next));
    slab->span.zero = false; /* nothing is known of what was there */
    *(char *)(next + 64) = 0x41;
    stderr_capture();
    objects_alloc(&bin, objects + 11, 1);
    assert_string_equal(stderr_restore(), "");
    objects_free(objects, 12);
}

TEST(a_last_look_finds_what_was_written_to_free_objects)
{
    struct misuse misuse;
    objects_alloc(&bin, objects, 40);
    objects_free(objects, 30);
    assert_true(bin_inspect(&bin, 1000, &misuse) >= 30);
    assert_int_equal(misuse.kind, MISUSE_NONE);
    *object_key_word(objects[20]) ^= 1;
    bin_inspect(&bin, 1000, &misuse);
    assert_int_equal(misuse.kind, MISUSE_WRITTEN);
    assert_int_equal(misuse.address, objects[20]);
    assert_int_equal(misuse.found, *object_key_word(objects[20]));
    assert_true(bin_inspect(&bin, 10, &misuse) <= 11); /* no more than it was told to */
    assert_int_equal(misuse.kind, MISUSE_NONE);
    *object_key_word(objects[20]) ^= 1;
    *object_key_word(objects[35]) = 7; /* it is not free */
    bin_inspect(&bin, 1000, &misuse);
    assert_int_equal(misuse.kind, MISUSE_NONE);
    objects_free(objects + 30, 10);
    *object_key_word(objects[35]) = object_key(objects[35]);
}

TEST(what_waits_is_known_by_its_key)
{
    objects_alloc(&bin, objects, 40);
    *object_key_word(objects[7]) = 0;
    for (size_t i = 0; i < 40; i++)
        assert_int_equal(object_waits(bin.page_heap, CLASS_64, objects[i]), i != 7);
    assert_false(object_waits(bin.page_heap, CLASS_64 + 1, objects[0]));
    assert_false(object_waits(bin.page_heap, CLASS_64, objects[0] + 16));
    assert_false(object_waits(bin.page_heap, CLASS_64, (uintptr_t)objects));
    assert_false(object_waits(bin.page_heap, CLASS_64, UINTPTR_MAX));
    assert_false(object_waits(bin.page_heap, CLASS_64, 0));
    *object_key_word(objects[7]) = object_key(objects[7]);
    objects_free(objects, 40);
}

TEST(an_object_twice_in_a_batch_is_said)
{
    char line[128];
    options.misuse = MISUSE_WARN;
    objects_alloc(&bin, objects, 10);
    uintptr_t batch[] = {objects[1], objects[2], objects[1]};
    stderr_capture();
    objects_free(batch, 3);
    snprintf(line, sizeof(line), "snug: double free: %#zx, a 64-byte object\n", objects[1]);
    assert_string_equal(stderr_restore(), line);
    assert_int_equal(bin.total_objects - bin.free_objects, 8);
    assert_bin_sound(&bin);
}

static void give_twice(void *argument)
{
    (void)argument;
    objects_free(objects, 1);
    objects_free(objects, 1);
}

TEST(by_default_the_process_aborts)
{
    objects_alloc(&bin, objects, 10);
    assert_aborts(give_twice, NULL, "snug: double free: 0x");
}

/* ---- bin_check ---- */

#define PLANT(field, damage, expected) ASSERT_FOUND(field, damage, bin_check(&bin), expected)

/* Three slabs: one with few free objects, one with many, one current. */
static struct slab *few, *many, *current;

static int plant(void **state)
{
    int result = begin(state);
    slab_take_all(&bin, objects);
    slab_take_all(&bin, objects + OBJECTS_64);
    objects_alloc(&bin, objects + 2 * OBJECTS_64, 100);
    objects_free(objects, 10);
    objects_free(objects + OBJECTS_64, 200);
    few = slab_at(objects[0]);
    many = slab_at(objects[OBJECTS_64]);
    current = slab_at(objects[2 * OBJECTS_64]);
    return result;
}

TEST(the_bin_is_as_it_is_meant_to_be)
{
    assert_ptr_equal(bin.current, current);
    assert_int_equal(few->free_count, 10);
    assert_int_equal(many->free_count, 200);
    assert_int_equal(current->fresh, 100);
    assert_bin_sound(&bin);
}

TEST(wrong_counts_are_found)
{
    struct slab *all[] = {few, many, current};
    static const char differ[] = "a slab's bits and its count of free objects differ";
    for (size_t i = 0; i < 3; i++) {
        struct slab *slab = all[i];
        PLANT(slab->free_count, slab->free_count + 1, differ);
        PLANT(slab->free_count, slab->free_count - 1, differ);
        PLANT(slab->free_count, OBJECTS_64 + 1, "a slab counts more objects than it has");
        PLANT(slab->fresh, OBJECTS_64 + 1, "a slab counts more objects than it has");
        PLANT(slab->fresh, slab->fresh - 1, "a slab");
        PLANT(slab->capacity, slab->capacity - 1, "a slab");
    }
    PLANT(current->fresh, current->fresh + 1, differ);
    PLANT(bin.free_objects, bin.free_objects + 1, "a bin's count of free objects is wrong");
    PLANT(bin.free_objects, 0, "a bin's count of free objects is wrong");
}

TEST(damaged_bitmaps_are_found)
{
    static const char differ[] = "a slab's bits and its count of free objects differ";
    for (size_t bit = 0; bit < OBJECTS_64; bit++) {
        PLANT(few->free_bits[bit / 64], few->free_bits[bit / 64] ^ (uint64_t)1 << (bit % 64),
              differ);
        PLANT(many->free_bits[bit / 64], many->free_bits[bit / 64] ^ (uint64_t)1 << (bit % 64),
              differ);
    }
    PLANT(few->free_bits[slab_words(few) - 1], (uint64_t)1 << 63, differ);
}

TEST(a_bit_beyond_what_was_handed_out_is_found)
{
    objects_free(objects + 2 * OBJECTS_64, 1);
    assert_bin_sound(&bin);
    current->free_bits[0] = 0; /* moved there, so that the count is right */
    bitmap_set(current->free_bits, 100);
    const char *found = bin_check(&bin);
    bitmap_clear(current->free_bits, 100);
    current->free_bits[0] = 1;
    assert_said(found, "a slab has a bit for an object that was never handed out", "a bit moved");
    assert_bin_sound(&bin);
}

TEST(slabs_in_the_wrong_place_are_found)
{
    static struct bin other;
    bin_begin(&other, CLASS_64);
    struct slab *all[] = {few, many, current};
    for (size_t i = 0; i < 3; i++) {
        PLANT(all[i]->span.owner, &other, "a slab stands in another bin's list");
        PLANT(all[i]->span.class, CLASS_64 + 1, "a slab stands in another bin's list");
    }
    PLANT(bin.current, NULL, "a bin's count of free objects is wrong");
    assert_null(bin_check(&bin));
    list_remove(&few->span.link);
    list_push(&bin.level[1], &few->span.link);
    const char *found = bin_check(&bin);
    list_remove(&few->span.link);
    const char *lost = bin_check(&bin);
    list_push(&bin.level[0], &few->span.link);
    assert_said(found, "a slab stands in the wrong list", "a slab in another list");
    assert_said(lost, "a bin's count of free objects is wrong", "a slab in no list");
    assert_bin_sound(&bin);
}

TEST(objects_that_were_written_to_are_found)
{
    objects_alloc(&bin, objects, 10);
    objects_free(objects + 2, 3);
    for (size_t i = 2; i < 5; i++) {
        PLANT(*object_key_word(objects[i]), 7, "a small block was written to when it was free");
        *object_key_word(objects[i]) ^= 1;
        assert_non_null(bin_check(&bin));
        assert_int_equal(check_place(), objects[i]);
        *object_key_word(objects[i]) ^= 1;
    }
    *object_key_word(objects[5]) = 7; /* it is not free */
    assert_bin_sound(&bin);
    page_heap.untouched = true; /* there, nothing is written into objects */
    *object_key_word(objects[2]) = 7;
    assert_bin_sound(&bin);
    page_heap.untouched = false;
    *object_key_word(objects[2]) = object_key(objects[2]);
    objects_free(objects, 2);
    objects_free(objects + 5, 5);
    bin_trim(&bin);
    assert_page_heap_empty();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(each_address_in_a_slab_has_its_answer, begin, page_heap_end),
        ROW_WITH(what_no_object_covers_is_unknown, begin, page_heap_end),
        ROW_WITH(wrong_pointers_are_left_out_and_said, begin, page_heap_end),
        ROW_WITH(what_waits_is_known_by_its_key, begin, page_heap_end),
        ROW_WITH(what_is_written_to_before_it_is_handed_out_is_said, begin, page_heap_end),
        ROW_WITH(a_last_look_finds_what_was_written_to_free_objects, begin, page_heap_end),
        ROW_WITH(an_object_twice_in_a_batch_is_said, begin, page_heap_end),
        ROW_WITH(by_default_the_process_aborts, begin, page_heap_end),
        ROW_WITH(the_bin_is_as_it_is_meant_to_be, plant, page_heap_end),
        ROW_WITH(wrong_counts_are_found, plant, page_heap_end),
        ROW_WITH(damaged_bitmaps_are_found, plant, page_heap_end),
        ROW_WITH(a_bit_beyond_what_was_handed_out_is_found, plant, page_heap_end),
        ROW_WITH(slabs_in_the_wrong_place_are_found, plant, page_heap_end),
        ROW_WITH(objects_that_were_written_to_are_found, begin, page_heap_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
