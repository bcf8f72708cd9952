/*
 * Tests of magazine/arena.h: where objects are taken from, and what the totals and locks say. The
 * depot is in depot.c.
 */
#include "arena_support.h"

#include <sched.h>
#include <string.h>

#include "cell_calls.h"
#include "cell/cell_list.h"
#include "meta/meta.h"
#include "platform/thread.h"
#include "stats/stats.h"

static uintptr_t objects[4096];

/* Takes so many objects of 64 bytes. */
static void take(size_t count)
{
    for (size_t done = 0; done < count;) {
        size_t got = arenas_refill(&arenas, CLASS_64, objects + done, count - done);
        assert_in_range(got, 1, count - done);
        done += got;
    }
}

TEST(the_number_of_arenas_is_bounded)
{
    static struct arena only;
    struct arenas many;
    memset(&many, 0, sizeof(many));
    arenas_init(&many, &page_heap, &only, 5000);
    assert_int_equal(many.count, ARENAS_MOST);
    arenas_init(&many, &page_heap, &only, 3);
    assert_int_equal(many.count, 3);
    assert_ptr_equal(many.list[0], &only);
    assert_int_equal(many.end, 1);
    many.end = 3; /* a heap that is made where one was still has its arenas */
    arenas_init(&many, &page_heap, &only, 3);
    assert_int_equal(many.end, 3);
    assert_ptr_equal(many.page_heap, &page_heap);
}

TEST(objects_come_from_the_arena_of_the_thread)
{
    take(1);
    assert_int_equal(class_in(0, CLASS_64)->bin.slab_count, 1);
    assert_null(class_in(1, CLASS_64)->bin.page_heap);
    arenas_swap();
    uintptr_t here;
    assert_int_equal(arenas_refill(&arenas, class_of_size(32), &here, 1), 1);
    assert_int_equal(class_in(0, class_of_size(32))->bin.slab_count, 1);
    assert_null(class_in(1, class_of_size(32))->bin.page_heap);
    objects_free(objects, 1);
    objects_free(&here, 1);
    assert_arenas_empty();
}

TEST(what_others_can_spare_comes_before_fresh_memory)
{
    /* More than a slab's worth is free in the other arena. */
    take(3 * OBJECTS_64);
    objects_free(objects, 2 * OBJECTS_64 - 10);
    assert_true(class_in(0, CLASS_64)->bin.free_objects > OBJECTS_64);
    arenas_swap();
    uint64_t made = COUNTED(slabs_made);
    uintptr_t got[1000];
    size_t count = arenas_refill(&arenas, CLASS_64, got, 10);
    assert_int_equal(count, 10);
    assert_int_equal(COUNTED(slabs_made), made);
    assert_int_equal(class_in(0, CLASS_64)->bin.slab_count, 0);
    /* It keeps one slab's worth. */
    while (COUNTED(slabs_made) == made)
        count += arenas_refill(&arenas, CLASS_64, got + count, 10);
    assert_in_range(class_in(1, CLASS_64)->bin.free_objects, OBJECTS_64 - 10, OBJECTS_64);
    assert_int_equal(class_in(0, CLASS_64)->bin.slab_count, 1);
    objects_free(got, count);
    objects_free(objects + 2 * OBJECTS_64 - 10, OBJECTS_64 + 10);
    assert_arenas_empty();
}

TEST(what_waits_in_a_depot_comes_before_fresh_memory)
{
    assert_true(put_full(CLASS_64, magazine_filled(CLASS_64)));
    uint64_t made = COUNTED(slabs_made);
    size_t count = 0;
    for (size_t got = 0; count < OBJECTS_64; count += got) {
        got = arenas_refill(&arenas, CLASS_64, objects + count, 10);
        assert_in_range(got, 1, 10);
        assert_arenas_sound();
    }
    assert_int_equal(count, OBJECTS_64);
    assert_int_equal(COUNTED(slabs_made), made);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(objects[i] != objects[j]);
    assert_int_equal(arenas_refill(&arenas, CLASS_64, objects + count, 1), 1);
    assert_int_equal(COUNTED(slabs_made), made + 1);
    objects_free(objects, count + 1);
    assert_arenas_empty();
}

TEST(so_does_what_waits_in_that_of_another_arena)
{
    assert_true(put_full(CLASS_64, magazine_filled(CLASS_64)));
    uint64_t made = COUNTED(slabs_made);
    arenas_swap();
    assert_int_equal(arenas_refill(&arenas, CLASS_64, objects, 10), 10);
    assert_int_equal(COUNTED(slabs_made), made);
    assert_int_equal(arenas_totals(NULL, &arenas, CLASS_64).waiting, 0);
    objects_free(objects, 10);
    assert_arenas_empty();
}

/* From here on nothing comes from the provider, and the segments have no pages left. */
static void exhaust_pages(void)
{
    fake.refuse_take = true;
    while (span_new(SPAN_LARGE, 1, PAGE_BYTES) != NULL)
        continue;
}

TEST(without_memory_others_give_what_they_have)
{
    take(OBJECTS_64);
    objects_free(objects, 5);
    arenas_swap();
    exhaust_pages();
    uintptr_t got[10];
    assert_int_equal(arenas_refill(&arenas, CLASS_64, got, 10), 5);
    assert_int_equal(arenas_refill(&arenas, CLASS_64, got, 10), 0);
    objects_free(got, 5);
    assert_arenas_sound();
}

TEST(without_memory_what_waits_in_depots_makes_room)
{
    size_t waiting = class_of_size(48);
    struct magazine *magazine = magazine_filled(waiting);
    assert_true(put_full(waiting, magazine));
    arenas_swap();
    exhaust_pages();
    uintptr_t got;
    assert_int_equal(arenas_refill(&arenas, CLASS_64, &got, 1), 0);
    arenas_trim(&arenas); /* as heap_reclaim does */
    assert_int_equal(arenas_refill(&arenas, CLASS_64, &got, 1), 1);
    assert_int_equal(arenas_totals(NULL, &arenas, waiting).waiting, 0);
    assert_int_equal(arenas_totals(NULL, &arenas, waiting).slabs, 0);
    assert_int_equal(arenas_refill(&arenas, class_of_size(1024), &got, 1), 0);
    assert_arenas_sound();
}

TEST(a_thread_on_another_processor_uses_another_arena)
{
    cpu_set_t all, one;
    CPU_ZERO(&all);
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    arenas.count = ARENAS_MOST;
    arenas.list[1] = NULL;
    arenas.threads = 2;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all))
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
        uintptr_t object;
        assert_int_equal(arenas_refill(&arenas, CLASS_64, &object, 1), 1);
        assert_non_null(arenas.list[cpu % ARENAS_MOST]);
        assert_ptr_equal(slab_at(object)->span.owner, &class_in(cpu % ARENAS_MOST, CLASS_64)->bin);
        objects_free(&object, 1);
    }
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
    arenas.threads = 0;
    assert_arenas_empty();
}

/* ---- Cold classes ---- */

/* ---- Cells ---- */

static uintptr_t alloc_cell(size_t bytes, size_t alignment)
{
    struct misuse misuse;
    size_t dirty;
    uintptr_t block =
        (uintptr_t)arenas_alloc_cell(&arenas, bytes, alignment, CELLS_NEW, &misuse, &dirty);
    assert_int_equal(misuse.kind, MISUSE_NONE);
    return block;
}

static void free_cell(uintptr_t block)
{
    cell_set_state(block, CELL_CACHED);
    cells_free(&block, 1);
}

TEST(a_class_is_cold_for_its_first_requests)
{
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        unsigned cold = 0;
        while (cold < 1000 && arenas_class_is_cold(&arenas, class))
            cold++;
        if (class_bytes(class) <= 256)
            assert_int_equal(cold, 0);
        else
            assert_in_range(cold, 1, 200);
        assert_false(arenas_class_is_cold(&arenas, class));
    }
}

TEST(no_class_is_cold_when_such_cells_hold_more_than_pages_would)
{
    enum { BYTES = 600, MOST = 1000 };
    static uintptr_t blocks[MOST];
    size_t count = 0;
    /* Others are asked for as well, so none of them is asked for often. */
    for (size_t class = class_of_size(BYTES); arenas_class_is_cold(&arenas, class); class++) {
        for (size_t i = 0; i < 40; i++)
            blocks[count++] = alloc_cell(BYTES, 16);
        assert_in_range(class, 1, CLASS_COUNT - 2);
    }
    /* a page for each class above 256 bytes, and the step that goes over it */
    assert_in_range(count * BYTES, 48 * 4096, 48 * 4096 + 41 * BYTES);
    assert_false(arenas_class_is_cold(&arenas, CLASS_COUNT - 1));
    for (size_t i = 0; i < count; i++)
        free_cell(blocks[i]);
    /* That which was too many is warm for good, others are as before. */
    assert_false(arenas_class_is_cold(&arenas, CLASS_COUNT - 1));
    assert_true(arenas_class_is_cold(&arenas, class_of_size(300)));
    assert_null(arenas_check(&arenas));
}

TEST(cells_come_from_the_arena_of_the_thread)
{
    uintptr_t first = alloc_cell(5000, 16);
    assert_int_equal(arenas.list[0]->cells.span_count, 1);
    assert_int_equal(arenas.list[1]->cells.span_count, 0);
    arenas_swap();
    /* The other has a lot free, but no more than a span's worth: a span of its own. */
    uintptr_t second = alloc_cell(5000, 256);
    assert_int_equal(second % 256, 0);
    assert_int_equal(arenas.list[0]->cells.span_count, 1);
    struct cell_totals totals = arenas_cell_totals(NULL, &arenas);
    assert_int_equal(totals.bytes, 2 * CELL_SPAN_BYTES);
    assert_int_equal(totals.free,
                     (arenas.list[0]->cells.free_units + arenas.list[1]->cells.free_units) *
                         CELL_UNIT);
    assert_arenas_sound();
    free_cell(first);
    free_cell(second);
    assert_arenas_empty();
}

/* What is freed together may be of several arenas, of which each looks at what it keeps. */
TEST(what_is_too_much_goes_in_every_arena)
{
    enum { BLOCKS = 1000 };
    static uintptr_t blocks[2][BLOCKS];
    options.dirty = MIB;
    arenas_of_two_threads();
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[0][i] = alloc_cell(131000, 16); /* nothing is left that the others would use */
    arenas_swap();
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[1][i] = alloc_cell(1100, 16);
    /* Every other one, so that no span is empty; the last of each call is of one arena. */
    for (size_t i = 0; i + 1 < BLOCKS; i += 2) {
        uintptr_t two[] = {blocks[0][i], blocks[1][i]};
        cell_set_state(two[0], CELL_CACHED);
        cell_set_state(two[1], CELL_CACHED);
        cells_free(two, 2);
    }
    for (unsigned i = 0; i < 2; i++) {
        size_t kept = cells_kept_pages(&arenas.list[i]->cells) << PAGE_SHIFT;
        ASSERT_THAT(kept < 16 * MIB, "arena %u keeps %zu bytes of 65 MB", i, kept);
    }
    for (size_t i = 1; i < BLOCKS; i += 2) {
        free_cell(blocks[0][i]);
        free_cell(blocks[1][i]);
    }
    assert_arenas_sound();
}

TEST(cells_that_others_can_spare_come_before_a_new_span)
{
    uintptr_t blocks[40];
    for (size_t i = 0; i < 40; i++)
        blocks[i] = alloc_cell(100 * KIB, 16);
    for (size_t i = 0; i < 40; i += 2)
        free_cell(blocks[i]);
    assert_true(arenas.list[0]->cells.free_units > CELL_UNITS);
    arenas_swap();
    uintptr_t block = alloc_cell(90 * KIB, 16);
    assert_int_equal(arenas.list[0]->cells.span_count, 0);
    fake.refuse_take = true;
    free_cell(block);
    for (size_t i = 1; i < 40; i += 2)
        free_cell(blocks[i]);
    assert_arenas_empty();
}

/* So many blocks fill a span. */
enum { OF_A_SPAN = 8, SPAN_BLOCK = 131000 };

static uintptr_t span_blocks[64 * OF_A_SPAN];

/* Fills 32 spans of the first arena, and swaps them. Half of the spans went back, and each of the
 * others has one block free, more than a span in all: others may spare that. */
static void fill_and_free_half(void)
{
    for (size_t i = 0; i < 32 * OF_A_SPAN; i++)
        span_blocks[i] = alloc_cell(SPAN_BLOCK, 16);
    assert_int_equal(arenas.list[0]->cells.span_count, 32);
    for (size_t i = 0; i < 32 * OF_A_SPAN; i++)
        if (i < 16 * OF_A_SPAN || i % OF_A_SPAN == 0) {
            free_cell(span_blocks[i]);
            span_blocks[i] = 0;
        }
    assert_in_range(arenas.list[0]->cells.span_count, 16, 17);
    assert_true(arenas.list[0]->cells.free_units > CELL_UNITS);
    arenas_swap();
}

/* Takes blocks until the first arena gets one of the other; returns how many. */
static size_t take_until_others_spare(void)
{
    const struct cells *other = &arenas.list[1]->cells;
    size_t taken = other->taken, count = 0;
    for (size_t i = 0; other->taken == taken; i++) {
        assert_in_range(i, 0, 64 * OF_A_SPAN - 1);
        if (span_blocks[i] == 0) {
            span_blocks[i] = alloc_cell(SPAN_BLOCK, 16);
            count++;
        }
    }
    return count;
}

static void free_span_blocks(void)
{
    for (size_t i = 0; i < 64 * OF_A_SPAN; i++)
        if (span_blocks[i] != 0)
            free_cell(span_blocks[i]);
    memset(span_blocks, 0, sizeof(span_blocks));
    assert_arenas_empty();
}

TEST(an_arena_grows_to_what_all_had_of_late_before_others_spare_any)
{
    fill_and_free_half();
    size_t count = take_until_others_spare();
    /* Of late is when the 32nd span was needed. What 31 spans had and a sixteenth of them is less
     * than 33 spans. */
    size_t own = arenas.list[0]->cells.span_count;
    assert_int_equal(own + arenas.list[1]->cells.span_count, 32);
    assert_int_equal(count, own * OF_A_SPAN + 1);
    free_span_blocks();
}

/* What cells had may be something else now. */
TEST(what_else_the_heap_has_counts_as_much_as_cells)
{
    fill_and_free_half();
    struct span *span = span_get(16 * MIB >> PAGE_SHIFT);
    assert_int_equal(take_until_others_spare(), 1);
    assert_int_equal(arenas.list[0]->cells.span_count, 0);
    span_free(&page_heap, span, 0);
    free_span_blocks();
}

TEST(where_memory_is_limited_others_spare_some_before_an_arena_grows)
{
    fill_and_free_half();
    size_t spans = arenas.list[1]->cells.span_count;
    arenas.held_most = (spans + 2) * CELL_SPAN_BYTES; /* a part of the limit */
    assert_int_equal(take_until_others_spare(), 2 * OF_A_SPAN + 1);
    assert_int_equal(arenas.list[0]->cells.span_count, 2);
    free_span_blocks();
}

TEST(in_a_heap_of_the_programs_own_others_spare_some_first)
{
    page_heap.other = true;
    fill_and_free_half();
    assert_int_equal(take_until_others_spare(), 1);
    assert_int_equal(arenas.list[0]->cells.span_count, 0);
    free_span_blocks();
}

TEST(what_was_in_use_long_ago_is_not_of_late)
{
    fill_and_free_half();
    fake_now += options.purge_delay * (FAKE_SECOND / 1000);
    span_blocks[0] = alloc_cell(SPAN_BLOCK, 16);
    assert_int_equal(arenas.list[0]->cells.span_count, 1);
    for (size_t i = 1; i < OF_A_SPAN; i++)
        span_blocks[i] = alloc_cell(SPAN_BLOCK, 16);
    fake_now++;
    assert_int_equal(take_until_others_spare(), 1);
    assert_int_equal(arenas.list[0]->cells.span_count, 1);
    free_span_blocks();
}

TEST(cells_of_others_are_the_last_resort)
{
    uintptr_t wall = alloc_cell(5000, 16);
    exhaust_pages();
    arenas_swap();
    uintptr_t block = alloc_cell(5000, 16);
    assert_true(block != 0);
    assert_int_equal(arenas.list[0]->cells.span_count, 0);
    uintptr_t more = 1;
    while ((more = alloc_cell(100 * KIB, 16)) != 0)
        continue;
    assert_int_equal(alloc_cell(128000, 16), 0);
    free_cell(wall);
    free_cell(block);
    assert_arenas_sound();
}

TEST(damage_is_told_though_another_arena_serves)
{
    uintptr_t damaged = alloc_cell(5000, 16), wall = alloc_cell(5000, 16), blocks[40];
    arenas_swap();
    for (size_t i = 0; i < 40; i++)
        blocks[i] = alloc_cell(100 * KIB, 16);
    for (size_t i = 0; i < 40; i += 2)
        free_cell(blocks[i]);
    arenas_swap();
    free_cell(damaged);
    struct free_links *links = cell_links(cell_of(damaged)), sound = *links;
    links->next = (struct free_links *)0xdeadbeef0;
    struct misuse misuse;
    size_t dirty, others = arenas.list[1]->cells.taken;
    void *block = arenas_alloc_cell(&arenas, 4900, 16, CELLS_HELD, &misuse, &dirty);
    assert_non_null(block);
    assert_int_equal(arenas.list[1]->cells.taken, others + 1);
    assert_int_equal(misuse.kind, MISUSE_WRITTEN);
    assert_int_equal(misuse.address, damaged);
    *links = sound;
    free_cell((uintptr_t)block);
    free_cell(wall);
    for (size_t i = 1; i < 40; i += 2)
        free_cell(blocks[i]);
    assert_arenas_empty();
}

/* ---- All of them ---- */

TEST(totals_are_sums_over_the_arenas)
{
    take(300);
    objects_free(objects, 40);
    struct magazine *of_first = magazine_filled(CLASS_64);
    arenas_swap();
    assert_true(put_full(CLASS_64, magazine_filled(CLASS_64)));
    arenas_swap();
    assert_true(put_full(CLASS_64, of_first));
    arenas_swap();
    struct arena_totals totals = arenas_totals(NULL, &arenas, CLASS_64);
    const struct bin *first = &class_in(0, CLASS_64)->bin, *second = &class_in(1, CLASS_64)->bin;
    assert_int_equal(totals.slabs, first->slab_count + second->slab_count);
    assert_int_equal(totals.total, first->total_objects + second->total_objects);
    assert_int_equal(totals.free, first->free_objects + second->free_objects);
    assert_int_equal(totals.waiting, 2 * magazine_capacity(size_classes[CLASS_64].magazine_log));
    assert_int_equal(totals.total, totals.free + totals.waiting + 260);
    totals = arenas_totals(NULL, &arenas, class_of_size(80));
    assert_int_equal(totals.slabs + totals.total + totals.free + totals.waiting, 0);
    objects_free(objects + 40, 260);
    assert_arenas_empty();
}

static unsigned lock_ranks[4 * CLASS_COUNT];
static size_t lock_count;

static void note_lock(struct lock *lock)
{
    lock_ranks[lock_count++] = lock->rank;
}

static void note_locks(void)
{
    lock_count = 0;
    for (enum lock_rank rank = 0; rank < RANK_COUNT; rank++)
        arenas_each_lock_of(&arenas, rank, note_lock);
}

TEST(every_lock_in_use_is_visited_by_rank)
{
    note_locks();
    assert_int_equal(lock_count, 0);
    uintptr_t object[3];
    assert_int_equal(arenas_refill(&arenas, 1, &object[0], 1), 1);
    assert_int_equal(arenas_refill(&arenas, 2, &object[1], 1), 1);
    arenas_swap();
    assert_int_equal(arenas_refill(&arenas, 3, &object[2], 1), 1);
    uintptr_t cell = alloc_cell(5000, 16);
    note_locks();
    assert_int_equal(lock_count, 2 * 3 + 1);
    for (size_t i = 1; i < lock_count; i++)
        assert_true(lock_ranks[i] >= lock_ranks[i - 1]);
    assert_int_equal(lock_ranks[0], RANK_DEPOT);
    assert_int_equal(lock_ranks[5], RANK_BIN);
    assert_int_equal(lock_ranks[6], RANK_CELLS);
    objects_free(object, 3);
    free_cell(cell);
    assert_arenas_empty();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(the_number_of_arenas_is_bounded, arenas_begin, page_heap_end),
        ROW_WITH(objects_come_from_the_arena_of_the_thread, two_arenas_begin, page_heap_end),
        ROW_WITH(what_others_can_spare_comes_before_fresh_memory, two_arenas_begin, page_heap_end),
        ROW_WITH(what_waits_in_a_depot_comes_before_fresh_memory, two_arenas_begin, page_heap_end),
        ROW_WITH(so_does_what_waits_in_that_of_another_arena, two_arenas_begin, page_heap_end),
        ROW_WITH(without_memory_others_give_what_they_have, two_arenas_begin, page_heap_end),
        ROW_WITH(without_memory_what_waits_in_depots_makes_room, two_arenas_begin, page_heap_end),
        ROW_WITH(a_thread_on_another_processor_uses_another_arena, two_arenas_begin, page_heap_end),
        ROW_WITH(a_class_is_cold_for_its_first_requests, arenas_begin, page_heap_end),
        ROW_WITH(no_class_is_cold_when_such_cells_hold_more_than_pages_would, arenas_begin,
                 page_heap_end),
        ROW_WITH(cells_come_from_the_arena_of_the_thread, two_arenas_begin, page_heap_end),
        ROW_WITH(what_is_too_much_goes_in_every_arena, two_arenas_begin, page_heap_end),
        ROW_WITH(cells_that_others_can_spare_come_before_a_new_span, two_arenas_begin,
                 page_heap_end),
        ROW_WITH(an_arena_grows_to_what_all_had_of_late_before_others_spare_any, two_arenas_begin,
                 page_heap_end),
        ROW_WITH(what_else_the_heap_has_counts_as_much_as_cells, two_arenas_begin, page_heap_end),
        ROW_WITH(where_memory_is_limited_others_spare_some_before_an_arena_grows, two_arenas_begin,
                 page_heap_end),
        ROW_WITH(in_a_heap_of_the_programs_own_others_spare_some_first, two_arenas_begin,
                 page_heap_end),
        ROW_WITH(what_was_in_use_long_ago_is_not_of_late, two_arenas_begin, page_heap_end),
        ROW_WITH(cells_of_others_are_the_last_resort, two_arenas_begin, page_heap_end),
        ROW_WITH(damage_is_told_though_another_arena_serves, two_arenas_begin, page_heap_end),
        ROW_WITH(totals_are_sums_over_the_arenas, two_arenas_begin, page_heap_end),
        ROW_WITH(every_lock_in_use_is_visited_by_rank, two_arenas_begin, page_heap_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
