/*
 * Tests of slab/slab.h: how slabs are cut, which object is handed out next, and when slabs are made
 * and released. Misuse and the checker are in slab_check.c.
 */
#include "slab_support.h"

#include <stdlib.h>
#include <string.h>

#include "stats/stats.h"

static struct bin bin;
static uintptr_t objects[4 * SLAB_OBJECTS_MOST];

/* ---- How slabs are cut ---- */

static uintptr_t page_of(uintptr_t address)
{
    return address / PAGE_BYTES;
}

/* Takes a whole slab batch by batch; each batch ends with the page it began in. */
static void take_by_pages(size_t class)
{
    size_t bytes = class_bytes(class);
    bin_begin(&bin, class);
    size_t got = bin_alloc(&bin, objects, SLAB_OBJECTS_MOST, true);
    const struct slab *slab = slab_at(objects[0]);
    for (size_t begin = 0;; got = bin_alloc(&bin, objects + begin, SLAB_OBJECTS_MOST, true)) {
        uintptr_t page = page_of(objects[begin]);
        for (size_t i = begin; i < begin + got; i++) {
            ASSERT_THAT(page_of(objects[i]) == page, "class %zu", class);
            ASSERT_THAT(i == 0 || objects[i] == objects[i - 1] + bytes, "class %zu", class);
            ASSERT_THAT(*object_key_word(objects[i]) == object_key(objects[i]), "class %zu", class);
        }
        begin += got;
        assert_int_equal(slab->fresh, begin);
        if (begin == slab->capacity)
            break;
        ASSERT_THAT(page_of(objects[begin - 1] + bytes) != page, "class %zu stops early", class);
    }
    objects_free(objects, slab->capacity);
    bin_trim(&bin);
}

TEST(new_objects_come_page_by_page)
{
    for (size_t class = 1; class < CLASS_COUNT; class++)
        take_by_pages(class);
    assert_page_heap_empty();
}

static void assert_cut(size_t class)
{
    size_t bytes = class_bytes(class),
           slab_bytes = (size_t)size_classes[class].slab_pages << PAGE_SHIFT;
    size_t capacity = slab_take_all(&bin, objects);
    const struct slab *slab = slab_at(objects[0]);
    uintptr_t start = (uintptr_t)slab->span.start;
    assert_int_equal(start % slab_bytes, 0);
    assert_int_equal(slab->span.pages, size_classes[class].slab_pages);
    for (size_t i = 0; i < capacity; i++) {
        assert_true(on_grid(objects[i], class));
        assert_true(objects[i] >= start && objects[i] + bytes <= start + slab_bytes);
        assert_ptr_equal(slab_at(objects[i]), slab);
        assert_int_equal(page_map_class(objects[i] + bytes - 1), class);
    }
    /* No object more would fit. */
    assert_true(objects[0] - start < bytes);
    assert_true(start + slab_bytes - (objects[capacity - 1] + bytes) < bytes);
    assert_int_equal(bin.total_objects - bin.free_objects, capacity * bin.slab_count);
}

TEST(slabs_are_full_of_objects_on_the_grid)
{
    static uintptr_t first[SLAB_OBJECTS_MOST];
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        bin_begin(&bin, class);
        assert_cut(class);
        size_t capacity = bin.total_objects;
        memcpy(first, objects, capacity * sizeof(*first));
        size_t second = bin_alloc(&bin, objects, 1, true); /* of another slab, beside the first */
        assert_int_equal(second, 1);
        assert_ptr_not_equal(slab_at(objects[0]), slab_at(first[0]));
        assert_bin_sound(&bin);
        objects_free(first, capacity);
        objects_free(objects, 1);
        bin_trim(&bin);
        assert_int_equal(bin.slab_count, 0);
        assert_int_equal(bin.total_objects, 0);
        assert_int_equal(bin.free_objects, 0);
    }
    assert_page_heap_empty();
}

TEST(where_a_slab_lies_in_its_grid_does_not_matter)
{
    /* Eight neighbours at all places that slabs of 8 pages have in 64 KiB. */
    size_t class = class_of_size(1008);
    bin_begin(&bin, class);
    static uintptr_t all[8 * 40];
    size_t count = 0;
    for (size_t i = 0; i < 8; i++) {
        assert_cut(class);
        size_t capacity = slab_at(objects[0])->capacity;
        memcpy(all + count, objects, capacity * sizeof(*all));
        count += capacity;
    }
    assert_bin_sound(&bin);
    objects_free(all, count);
    bin_trim(&bin);
    assert_page_heap_empty();
}

/* ---- Which object is next ---- */

static int by_address(const void *a, const void *b)
{
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return (x > y) - (x < y);
}

TEST(the_lowest_free_objects_are_handed_out_first)
{
    bin_begin(&bin, CLASS_64);
    size_t capacity = slab_take_all(&bin, objects);
    assert_int_equal(capacity, OBJECTS_64);
    uintptr_t given[100], taken[100];
    uint64_t seed = 1;
    for (unsigned round = 0; round < 50; round++) {
        bool chosen[OBJECTS_64] = {false};
        for (size_t i = 0; i < 100;) {
            size_t at = random_below(&seed, capacity);
            if (!chosen[at])
                given[i++] = objects[at];
            chosen[at] = true;
        }
        objects_free(given, 100);
        qsort(given, 100, sizeof(*given), by_address);
        assert_int_equal(bin_alloc(&bin, taken, 30, false), 30);
        assert_int_equal(bin_alloc(&bin, taken + 30, 1, false), 1);
        assert_int_equal(bin_alloc(&bin, taken + 31, 200, false), 69);
        assert_memory_equal(taken, given, sizeof(given));
        assert_bin_sound(&bin);
    }
    objects_free(objects, capacity);
    bin_trim(&bin);
    assert_page_heap_empty();
}

/* Takes three slabs whole, into `objects`. */
static void take_three_slabs(void)
{
    bin_begin(&bin, CLASS_64);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(slab_take_all(&bin, objects + i * OBJECTS_64), OBJECTS_64);
    assert_int_equal(bin.slab_count, 3);
    assert_int_equal(bin.free_objects, 0);
}

static void give_all_and_trim(void)
{
    objects_free(objects, 3 * OBJECTS_64);
    bin_trim(&bin);
    assert_int_equal(bin.slab_count, 0);
    assert_page_heap_empty();
}

TEST(the_fullest_slabs_are_taken_from_first)
{
    take_three_slabs();
    uintptr_t *first = objects, *second = objects + OBJECTS_64, taken[300];
    objects_free(first, 200);
    objects_free(second, 10);
    assert_bin_sound(&bin);
    assert_int_equal(bin_alloc(&bin, taken, 8, false), 8);
    for (size_t i = 0; i < 8; i++)
        assert_ptr_equal(slab_at(taken[i]), slab_at(second[0]));
    /* What is current stays so until it has none, then comes the next. */
    objects_free(first + 200, 56);
    assert_int_equal(bin_alloc(&bin, taken + 8, 4, false), 4);
    assert_ptr_equal(slab_at(taken[9]), slab_at(second[0]));
    assert_ptr_equal(slab_at(taken[10]), slab_at(first[0]));
    assert_int_equal(bin_alloc(&bin, taken + 12, 300, false), 254);
    assert_int_equal(bin.free_objects, 0);
    assert_int_equal(bin_alloc(&bin, taken, 1, false), 0);
    assert_bin_sound(&bin);
    give_all_and_trim();
}

TEST(what_lies_in_a_nearly_empty_slab_should_move)
{
    take_three_slabs(); /* the third is current */
    uintptr_t *first = objects, *second = objects + OBJECTS_64, *third = second + OBJECTS_64;
    objects_free(first, 200);
    assert_false(object_should_move(first[200])); /* the others are full */
    objects_free(second, 55);
    assert_false(object_should_move(first[200])); /* one place too few */
    objects_free(second + 55, 1);
    assert_true(object_should_move(first[200]));
    assert_false(object_should_move(second[56])); /* the fuller one */
    objects_free(third, 250);
    assert_false(object_should_move(third[250])); /* the emptiest, but it is filled next */
    assert_ptr_equal(slab_at(bin_alloc_beside(first[200])), slab_at(third[0]));
    assert_false(object_should_move((uintptr_t)&bin));
    objects_free(third, 1);
    assert_bin_sound(&bin);
    bin_clear(&bin);
}

TEST(no_new_slab_is_made_while_there_are_objects)
{
    take_three_slabs();
    uintptr_t taken[300];
    objects_free(objects + 5, 1);
    objects_free(objects + OBJECTS_64 + 7, 2);
    assert_int_equal(bin_alloc(&bin, taken, 300, true), 3);
    assert_int_equal(bin.slab_count, 3);
    assert_int_equal(bin_alloc(&bin, taken, 300, false), 0);
    assert_int_equal(bin.slab_count, 3);
    assert_true(bin_alloc(&bin, taken, 300, true) > 0);
    assert_int_equal(bin.slab_count, 4);
    objects_free(taken, 1);
    assert_bin_sound(&bin);
}

TEST(used_objects_come_before_new_ones)
{
    uintptr_t taken[100];
    bin_begin(&bin, CLASS_64);
    objects_alloc(&bin, objects, 40);
    objects_free(objects + 10, 5);
    /* The five, and nothing of the memory that nobody has touched. */
    assert_int_equal(bin_alloc(&bin, taken, 100, true), 5);
    assert_memory_equal(taken, objects + 10, 5 * sizeof(*taken));
    assert_int_equal(bin_alloc(&bin, taken, 100, true), 24); /* the rest of the first page */
    assert_true(taken[0] == objects[39] + 64);
    assert_bin_sound(&bin);
}

TEST(without_memory_there_is_none)
{
    bin_begin(&bin, CLASS_64);
    assert_int_equal(bin_alloc(&bin, objects, 10, false), 0);
    assert_int_equal(fake.calls, 0);
    fake.refuse_take = true;
    assert_int_equal(bin_alloc(&bin, objects, 10, true), 0);
    assert_int_equal(bin.slab_count, 0);
    assert_bin_sound(&bin);
    fake.refuse_take = false;
    assert_int_equal(bin_alloc(&bin, objects, 10, true), 10);
    objects_free(objects, 10);
    bin_trim(&bin);
    assert_page_heap_empty();
}

/* ---- Making and releasing ---- */

TEST(an_empty_slab_is_kept_as_long_as_it_is_the_reserve)
{
    take_three_slabs();
    /* The first to be empty is all that the bin has. */
    objects_free(objects, OBJECTS_64);
    assert_int_equal(bin.slab_count, 3);
    /* With the second there is more than one slab's worth. */
    objects_free(objects + OBJECTS_64, OBJECTS_64);
    assert_int_equal(bin.slab_count, 2);
    assert_bin_sound(&bin);
    /* The third is current, and stays. */
    objects_free(objects + 2 * OBJECTS_64, OBJECTS_64);
    assert_int_equal(bin.slab_count, 2);
    assert_int_equal(bin.free_objects, 2 * OBJECTS_64);
    assert_bin_sound(&bin);
    bin_trim(&bin);
    assert_int_equal(bin.slab_count, 0);
    assert_bin_sound(&bin);
    assert_page_heap_empty();
}

TEST(going_up_and_down_makes_and_releases_nothing)
{
    bin_begin(&bin, CLASS_64);
    slab_take_all(&bin, objects);
    uint64_t made = COUNTED(slabs_made), released = COUNTED(slabs_released);
    for (unsigned round = 0; round < 100; round++) {
        uintptr_t more[2];
        objects_alloc(&bin, more, 2);
        objects_free(more, 2);
        objects_free(objects, 3);
        objects_alloc(&bin, objects, 3);
    }
    assert_int_equal(COUNTED(slabs_made), made + 1);
    assert_int_equal(COUNTED(slabs_released), released);
    objects_free(objects, OBJECTS_64);
    bin_trim(&bin);
    assert_int_equal(COUNTED(slabs_released), released + 2);
    assert_page_heap_empty();
}

TEST(a_trim_takes_empty_slabs_only)
{
    take_three_slabs();
    objects_free(objects, OBJECTS_64);                  /* empty */
    objects_free(objects + OBJECTS_64, OBJECTS_64 - 1); /* one in use */
    bin_trim(&bin);
    assert_int_equal(bin.slab_count, 2);
    assert_int_equal(bin.free_objects, OBJECTS_64 - 1);
    assert_bin_sound(&bin);
    objects_free(objects + 2 * OBJECTS_64 - 1, 1 + OBJECTS_64);
    bin_trim(&bin);
    assert_page_heap_empty();
}

TEST(a_released_slab_leaves_its_size_behind)
{
    bin_begin(&bin, CLASS_64);
    slab_take_all(&bin, objects);
    uintptr_t page = (uintptr_t)slab_at(objects[0])->span.start;
    assert_int_equal(page_map_class(page), CLASS_64);
    objects_free(objects, OBJECTS_64);
    bin_trim(&bin);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(page_map_class(page + i * PAGE_BYTES), 0);
    assert_int_equal(page_map_entry(page + PAGE_BYTES), entry_freed(64));
    assert_page_heap_empty();
}

/* ---- All together ---- */

TEST(objects_of_several_bins_go_back_in_one_batch)
{
    static struct bin bins[3];
    static const size_t sizes[] = {16, 208, 1024};
    uintptr_t mixed[60];
    for (size_t i = 0; i < 3; i++) {
        bin_begin(&bins[i], class_of_size(sizes[i]));
        objects_alloc(&bins[i], mixed + 20 * i, 20);
    }
    for (size_t i = 0; i < 60; i++) { /* a shuffle */
        uintptr_t other = mixed[(i * 7) % 60];
        mixed[(i * 7) % 60] = mixed[i];
        mixed[i] = other;
    }
    objects_free(mixed, 60);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(bins[i].free_objects, bins[i].total_objects);
        assert_bin_sound(&bins[i]);
        bin_trim(&bins[i]);
    }
    assert_page_heap_empty();
}

TEST(random_use_keeps_all_invariants)
{
    enum { LIVE = 3000 };
    static uintptr_t live[LIVE];
    uint64_t seed = 9;
    size_t count = 0;
    bin_begin(&bin, class_of_size(112));
    for (unsigned turn = 0; turn < 4000; turn++) {
        size_t batch = 1 + random_below(&seed, 60);
        bool grows = random_below(&seed, 100) < (turn / 500 % 2 == 0 ? 60 : 40);
        if (grows && count + batch <= LIVE) {
            size_t taken = bin_alloc(&bin, live + count, batch, true);
            for (size_t i = count; i < count + taken; i++)
                memset((char *)live[i], (int)(live[i] >> 4), 112);
            count += taken;
        } else if (!grows) {
            batch = size_min(batch, count);
            for (size_t i = count - batch; i < count; i++) {
                size_t other = random_below(&seed, i + 1);
                uintptr_t chosen = live[other];
                live[other] = live[i];
                live[i] = chosen;
                for (size_t at = 0; at < 112; at++)
                    ASSERT_THAT(((char *)chosen)[at] == (char)(chosen >> 4), "turn %u", turn);
            }
            count -= batch;
            for (size_t i = count; i < count + batch; i++)
                *object_key_word(live[i]) = object_key(live[i]);
            objects_free(live + count, batch);
        }
        assert_int_equal(bin.total_objects - bin.free_objects, count);
        assert_int_equal(bin_free_objects(&bin), bin.free_objects);
        if (turn % 20 == 0)
            assert_bin_sound(&bin);
    }
    for (size_t i = 0; i < count; i++)
        *object_key_word(live[i]) = object_key(live[i]);
    objects_free(live, count);
    bin_trim(&bin);
    assert_page_heap_empty();
}

/* Threads that hand blocks to each other free those of all bins in no order. */
TEST(each_bin_is_locked_once_for_all_its_objects)
{
    enum { EACH = 60 };
    static struct bin first, second;
    uintptr_t of_first[EACH], of_second[EACH], mixed[2 * EACH];
    bin_begin(&first, CLASS_64);
    bin_begin(&second, CLASS_64);
    objects_alloc(&first, of_first, EACH);
    objects_alloc(&second, of_second, EACH);
    for (size_t i = 0; i < EACH; i++) {
        mixed[2 * i] = of_first[i];
        mixed[2 * i + 1] = of_second[i];
    }
    slabs_free(mixed, 2 * EACH, "free");
    assert_memory_equal(mixed, of_second, sizeof of_second); /* what waited for the second lock */
    assert_int_equal(bin_free_objects(&first), first.total_objects);
    assert_int_equal(bin_free_objects(&second), second.total_objects);
    assert_bin_sound(&first);
    assert_bin_sound(&second);
    bin_trim(&first);
    bin_trim(&second);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(new_objects_come_page_by_page, page_heap_begin, page_heap_end),
        ROW_WITH(slabs_are_full_of_objects_on_the_grid, page_heap_begin, page_heap_end),
        ROW_WITH(where_a_slab_lies_in_its_grid_does_not_matter, page_heap_begin, page_heap_end),
        ROW_WITH(the_lowest_free_objects_are_handed_out_first, page_heap_begin, page_heap_end),
        ROW_WITH(the_fullest_slabs_are_taken_from_first, page_heap_begin, page_heap_end),
        ROW_WITH(what_lies_in_a_nearly_empty_slab_should_move, page_heap_begin, page_heap_end),
        ROW_WITH(no_new_slab_is_made_while_there_are_objects, page_heap_begin, page_heap_end),
        ROW_WITH(used_objects_come_before_new_ones, page_heap_begin, page_heap_end),
        ROW_WITH(without_memory_there_is_none, page_heap_begin, page_heap_end),
        ROW_WITH(an_empty_slab_is_kept_as_long_as_it_is_the_reserve, page_heap_begin,
                 page_heap_end),
        ROW_WITH(going_up_and_down_makes_and_releases_nothing, page_heap_begin, page_heap_end),
        ROW_WITH(a_trim_takes_empty_slabs_only, page_heap_begin, page_heap_end),
        ROW_WITH(a_released_slab_leaves_its_size_behind, page_heap_begin, page_heap_end),
        ROW_WITH(objects_of_several_bins_go_back_in_one_batch, page_heap_begin, page_heap_end),
        ROW_WITH(each_bin_is_locked_once_for_all_its_objects, page_heap_begin, page_heap_end),
        ROW_WITH(random_use_keeps_all_invariants, page_heap_begin, page_heap_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
