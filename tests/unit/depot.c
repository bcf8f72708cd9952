/*
 * Tests of the depots of magazine/arena.h: handing over, bounds, decay; and planted faults for
 * arenas_check.
 */
#include "arena_support.h"

#include "cell_calls.h"
#include "options/options.h"
#include "stats/stats.h"

static struct depot *depot_of(size_t class)
{
    return &class_in(0, class)->depot;
}

/* Puts so many full magazines into the depot. */
static void fill_depot(size_t class, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_true(put_full(class, magazine_filled(class)));
}

/* ---- Handing over ---- */

TEST(magazines_are_handed_over_whole)
{
    struct magazine *first = magazine_filled(CLASS_64), *second = magazine_filled(CLASS_64);
    assert_null(get_full(CLASS_64));
    assert_true(put_full(CLASS_64, first));
    assert_true(put_full(CLASS_64, second));
    assert_int_equal(depot_of(CLASS_64)->count, 2);
    assert_arenas_sound();
    assert_null(get_full(class_of_size(80)));
    assert_ptr_equal(get_full(CLASS_64), second); /* the newest is the warmest */
    assert_ptr_equal(get_full(CLASS_64), first);
    assert_null(get_full(CLASS_64));
    assert_int_equal(depot_of(CLASS_64)->count, 0);
    magazine_drain(first);
    magazine_drain(second);
    assert_arenas_empty();
}

/* Swaps each second object of two full magazines. */
static void mix(struct magazine *first, struct magazine *second)
{
    uintptr_t *low = magazine_begin(first), *high = magazine_begin(second);
    for (size_t i = 0; i < magazine_capacity(first->log); i += 2) {
        uintptr_t other = low[i];
        low[i] = high[i];
        high[i] = other;
    }
}

/* What a tree was that is taken down: it goes back to the slabs, which hand it out by address. */
static void assert_mixed_waits(size_t class, size_t used_pages, bool waits)
{
    struct magazine *first = magazine_filled(class), *second = magazine_filled(class);
    size_t used = page_heap.used_pages;
    mix(first, second);
    page_heap.used_pages = used_pages;
    assert_int_equal(put_full(class, first), waits);
    assert_int_equal(depot_of(class)->count, waits);
    if (waits)
        assert_ptr_equal(get_full(class), first);
    page_heap.used_pages = used;
    magazine_drain(first);
    magazine_drain(second);
    assert_arenas_empty();
}

TEST(what_lies_in_no_order_does_not_wait)
{
    size_t held = options.dirty >> PAGE_SHIFT; /* so much is in the processor's caches */
    assert_mixed_waits(CLASS_64, held + 1, false);
    assert_mixed_waits(CLASS_64, held, true);
    assert_mixed_waits(class_of_size(112), held + 1, false);
    assert_mixed_waits(class_of_size(128), held + 1, true); /* lines of its own */
}

TEST(empty_magazines_are_handed_back)
{
    enum { FULL = 10 };
    unsigned log = size_classes[CLASS_64].magazine_log;
    struct depot *depot = depot_of(CLASS_64);
    struct magazine *full[FULL], *empty[FULL], *given;
    for (size_t i = 0; i < FULL; i++)
        assert_true(put_full(CLASS_64, full[i] = magazine_filled(CLASS_64)));
    for (size_t i = FULL; i-- != 0;) {
        given = empty[i] = magazine_new(log);
        assert_ptr_equal(arenas_get_full(&arenas, CLASS_64, &given), full[i]);
        assert_null(given);
        assert_int_equal(depot->empties + depot->count, FULL);
        assert_arenas_sound();
    }
    struct magazine *got, *mine = magazine_new(log), *before = mine;
    assert_null(arenas_get_full(&arenas, CLASS_64, &mine)); /* for nothing nothing is given */
    assert_ptr_equal(mine, before);
    for (size_t i = 0; i < FULL; i++) {
        assert_true(arenas_put_full(&arenas, CLASS_64, full[i], &got));
        assert_ptr_equal(got, empty[i]); /* the newest */
        magazine_free(got);
    }
    assert_int_equal(depot->high, FULL);
    /* One is taken for nothing; from then on there is room for one more. */
    given = NULL;
    assert_ptr_equal(arenas_get_full(&arenas, CLASS_64, &given), full[FULL - 1]);
    for (size_t i = FULL - 1; i-- != 0;) {
        given = magazine_new(log);
        assert_ptr_equal(arenas_get_full(&arenas, CLASS_64, &given), full[i]);
        assert_null(given);
    }
    assert_int_equal(depot->empties, FULL - 1);
    magazine_free(mine);
    depot_tick(depot, 1);
    assert_int_equal(depot->empties, 0);
    assert_int_equal(depot->high, 0);
    assert_true(arenas_put_full(&arenas, CLASS_64, full[0], &got));
    assert_null(got);
    for (size_t i = 1; i < FULL; i++)
        magazine_drain(full[i]);
    arenas_trim(&arenas);
    assert_arenas_empty();
}

TEST(a_depot_keeps_no_more_empty_magazines_than_were_full)
{
    struct depot *depot = depot_of(CLASS_64);
    struct magazine *full = magazine_filled(CLASS_64), *got;
    struct magazine *given = magazine_new(size_classes[CLASS_64].magazine_log), *mine = given;
    assert_true(arenas_put_full(&arenas, CLASS_64, full, &got));
    depot->high = 0; /* as if the most were long ago */
    assert_ptr_equal(arenas_get_full(&arenas, CLASS_64, &given), full);
    assert_ptr_equal(given, mine);
    assert_int_equal(depot->empties, 0);
    magazine_free(mine);
    magazine_drain(full);
    assert_arenas_empty();
}

TEST(the_depots_of_other_arenas_are_looked_into)
{
    struct magazine *magazine = magazine_filled(CLASS_64);
    assert_true(put_full(CLASS_64, magazine));
    arenas_swap();
    assert_ptr_equal(get_full(CLASS_64), magazine);
    assert_null(get_full(CLASS_64));
    magazine_drain(magazine);
    assert_arenas_empty();
}

/* ---- Lines that two processors would share ---- */

/* The first arena puts a magazine into its depot, takes it again, and puts it there again, as who
 * goes up and down. The other one is the first then. */
static struct magazine *two_way_there(size_t class)
{
    struct magazine *magazine = magazine_filled(class);
    assert_true(put_full(class, magazine));
    assert_ptr_equal(get_full(class), magazine);
    assert_true(put_full(class, magazine));
    arenas_swap();
    return magazine;
}

TEST(small_objects_of_who_goes_up_and_down_stay_there)
{
    arenas_of_two_threads();
    struct magazine *magazine = two_way_there(CLASS_64);
    assert_null(get_full(CLASS_64));
    arenas_swap();
    depot_tick(depot_of(CLASS_64), 1); /* nobody took it since: it is for all */
    arenas_swap();
    assert_ptr_equal(get_full(CLASS_64), magazine);
    magazine_drain(magazine);
    assert_arenas_empty();
}

TEST(small_objects_that_flow_one_way_are_taken)
{
    arenas_of_two_threads();
    struct magazine *magazine = magazine_filled(CLASS_64);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(put_full(CLASS_64, magazine));
        arenas_swap();
        assert_ptr_equal(get_full(CLASS_64), magazine);
        arenas_swap();
    }
    magazine_drain(magazine);
    assert_arenas_empty();
}

TEST(objects_of_whole_lines_are_taken)
{
    arenas_of_two_threads();
    size_t class = class_of_size(LINE_SHARED_BELOW);
    struct magazine *magazine = two_way_there(class);
    assert_ptr_equal(get_full(class), magazine);
    magazine_drain(magazine);
    assert_arenas_empty();
}

TEST(a_thread_that_is_alone_takes_all)
{
    arenas.threads = 1;
    struct magazine *magazine = two_way_there(CLASS_64);
    assert_ptr_equal(get_full(CLASS_64), magazine);
    magazine_drain(magazine);
    assert_arenas_empty();
}

/* ---- Bounds ---- */

TEST(a_depot_is_bounded_in_bytes)
{
    static const size_t sizes[] = {16, 64, 128, 256, 512, 1024};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t class = class_of_size(sizes[i]);
        size_t bytes = magazine_capacity(size_classes[class].magazine_log) * sizes[i];
        options.depot = 10 * bytes + bytes / 2;
        struct magazine *magazine = magazine_filled(class);
        /* Of the smallest objects fewer, as magazines take a share themselves. */
        size_t most = size_min(10, options.depot / 8 / (META_LEAST << magazine->log));
        fill_depot(class, most);
        assert_false(put_full(class, magazine));
        assert_int_equal(depot_of(class)->count, most);
        magazine_drain(magazine); /* it is still ours */
        assert_arenas_sound();
        arenas_empty_depots(&arenas, class);
    }
    options.depot = 0;
    struct magazine *magazine = magazine_filled(class_of_size(32));
    assert_false(put_full(class_of_size(32), magazine));
    magazine_drain(magazine);
    assert_arenas_empty();
}

TEST(all_depots_together_are_bounded)
{
    enum { MADE = 160 };
    static struct magazine *magazines[MADE];
    size_t given = 0, most = options.dirty / 2;
    for (size_t i = 0; i < MADE; i++) /* all first: making slabs lets depots decay */
        magazines[i] = magazine_filled(4 + i % 16 * 4);
    arenas_tick(&arenas);
    arenas_tick(&arenas); /* what was stocked meanwhile goes */
    for (size_t i = 0; i < MADE; i++) {
        size_t class = 4 + i % 16 * 4;
        size_t bytes = magazine_capacity(magazines[i]->log) * class_bytes(class);
        bool room = arenas.list[0]->waiting < most;
        assert_int_equal(put_full(class, magazines[i]), room);
        given += room ? bytes : 0;
        if (!room)
            magazine_drain(magazines[i]);
        assert_int_equal(arenas.list[0]->waiting, given);
    }
    assert_in_range(given, most, most + 16 * KIB);
    arenas_trim(&arenas);
    assert_int_equal(arenas.list[0]->waiting, 0);
    assert_arenas_empty();
}

TEST(the_depots_of_homes_are_bounded_as_those_of_processors)
{
    size_t pages = options.dirty / PAGE_BYTES / 2;
    struct magazine *magazine = magazine_filled(CLASS_64);
    struct magazine *large = magazine_filled(class_of_size(LINE_SHARED_BELOW));
    arenas.end = 8 * arenas.count;
    arenas.list[0]->waiting = (pages / 8 - 1) * PAGE_BYTES;
    assert_true(put_full(CLASS_64, magazine));
    assert_ptr_equal(get_full(CLASS_64), magazine);
    arenas.list[0]->waiting = pages / 8 * PAGE_BYTES;
    assert_false(put_full(CLASS_64, magazine));
    assert_true(put_full(class_of_size(LINE_SHARED_BELOW), large));
    arenas.list[0]->waiting -= pages / 8 * PAGE_BYTES;
    arenas.end = 2;
    magazine_drain(magazine);
    arenas_empty_depots(&arenas, class_of_size(LINE_SHARED_BELOW));
    assert_arenas_empty();
}

TEST(a_depot_is_bounded_in_magazines)
{
    enum { MOST = 128, MORE = 10 }; /* of a KiB each, an eighth of what their objects may have */
    static struct magazine *magazines[MOST + MORE];
    options.depot = MIB;
    for (size_t i = 0; i < MOST + MORE; i++) /* all first: making slabs lets depots decay */
        magazines[i] = magazine_filled(1);
    arenas_empty_depots(&arenas, 1); /* of what was stocked meanwhile */
    for (size_t i = 0; i < MOST + MORE; i++)
        assert_int_equal(put_full(1, magazines[i]), i < MOST);
    for (size_t i = MOST; i < MOST + MORE; i++)
        magazine_drain(magazines[i]);
    assert_arenas_empty();
}

/* ---- Decay ---- */

/* The heap ticks, and the depots are looked at. */
static void pass_look(void)
{
    arenas_tick(&arenas);
}

TEST(what_nobody_takes_goes_back)
{
    size_t class = class_of_size(128);
    fill_depot(class, 8);
    pass_look();
    assert_int_equal(depot_of(class)->count, 8); /* the first look only takes note */
    pass_look();
    assert_int_equal(depot_of(class)->count, 0);
    assert_int_equal(arenas_totals(NULL, &arenas, class).waiting, 0);
    assert_arenas_empty();
}

TEST(what_is_needed_between_looks_stays)
{
    size_t class = class_of_size(128);
    fill_depot(class, 8);
    pass_look();
    for (unsigned round = 0; round < 3; round++) {
        /* Down to three, and up again. */
        struct magazine *taken[5];
        for (size_t i = 0; i < 5; i++)
            assert_non_null(taken[i] = get_full(class));
        for (size_t i = 0; i < 5; i++)
            assert_true(put_full(class, taken[i]));
        pass_look();
        assert_int_equal(depot_of(class)->count, 5); /* three were idle; five are worked with */
        if (round == 0)
            continue;
        assert_arenas_sound();
    }
    arenas_trim(&arenas);
    assert_int_equal(depot_of(class)->count, 0);
    assert_arenas_empty();
}

TEST(a_trim_empties_all_depots)
{
    for (size_t class = 1; class < CLASS_COUNT; class += 9)
        fill_depot(class, 2);
    arenas_swap();
    fill_depot(CLASS_64, 2);
    assert_arenas_sound();
    arenas_trim(&arenas);
    for (size_t class = 1; class < CLASS_COUNT; class++)
        assert_int_equal(arenas_totals(NULL, &arenas, class).total, 0);
    assert_arenas_empty();
}

/* ---- Growing and shrinking ---- */

enum { MANY = 1 << 17 };

static uintptr_t many[MANY]; /* 8 MiB of objects of 64 bytes */

static void take_many(size_t count, size_t at_a_time)
{
    for (size_t i = 0; i < count;) {
        size_t wanted = size_min(count - i, at_a_time);
        size_t taken = arenas_refill(&arenas, CLASS_64, &many[i], wanted);
        assert_true(taken != 0);
        i += taken;
    }
}

TEST(what_nobody_takes_goes_when_fresh_memory_is_taken)
{
    size_t class = class_of_size(128);
    fill_depot(class, 8);
    size_t epoch = options.dirty / 16, few = epoch / 2 / 64, all = 2 * epoch / 64;
    pass_look();
    take_many(few, 1);
    assert_int_equal(depot_of(class)->count, 8);
    for (size_t i = few; i < all; i++)
        assert_int_equal(arenas_refill(&arenas, CLASS_64, &many[i], 1), 1);
    assert_int_equal(depot_of(class)->count, 0);
    objects_free(many, all);
    assert_arenas_empty();
}

/* A slab cannot have the pages of a free cell: the arena would have both. */
TEST(idle_pages_of_cells_go_when_fresh_memory_is_taken)
{
    struct misuse misuse;
    size_t dirty, all = 4 * options.dirty / 16 / 64;
    uintptr_t blocks[3];
    for (size_t i = 0; i < 3; i++) {
        blocks[i] =
            (uintptr_t)arenas_alloc_cell(&arenas, 100 * KIB, MIN_ALIGN, CELLS_NEW, &misuse, &dirty);
        cell_set_state(blocks[i], CELL_CACHED);
    }
    struct cells *here = &arenas.list[0]->cells;
    cells_free(&blocks[1], 1);
    size_t kept = cells_kept_pages(here);
    assert_true(kept >= 20);
    int64_t delay = options.purge_delay;
    options.purge_delay = DELAY_NEVER;
    take_many(all, 1);
    objects_free(many, all);
    assert_int_equal(cells_kept_pages(here), kept);
    options.purge_delay = delay;
    take_many(2 * all, 1);
    assert_true(cells_kept_pages(here) <= 1); /* less than a page at its ends */
    objects_free(many, 2 * all);
    cells_free(&blocks[0], 1);
    cells_free(&blocks[2], 1);
    assert_arenas_empty();
}

/* Its own threads may sleep. */
TEST(what_nobody_takes_goes_when_another_arena_takes_fresh_memory)
{
    size_t class = class_of_size(128), all = 4 * options.dirty / 16 / 64;
    fill_depot(class, 8);
    struct depot *there = depot_of(class);
    arenas_swap();
    take_many(all, 1);
    assert_int_equal(there->count, 0);
    objects_free(many, all);
    assert_arenas_empty();
}

TEST(a_class_that_grows_stocks_its_depot)
{
    size_t capacity = magazine_capacity(size_classes[CLASS_64].magazine_log);
    struct depot *depot = depot_of(CLASS_64);
    take_many(MANY / 32, capacity / 2);
    assert_int_equal(depot->count, 0); /* a 64th is not yet a magazine */
    take_many(MANY, capacity / 2);
    assert_true(depot->count > 0);
    size_t waiting = depot->count * capacity;
    size_t total = class_in(0, CLASS_64)->bin.total_objects;
    assert_true(waiting <= total / 64);
    assert_arenas_sound();
    struct magazine *magazine = get_full(CLASS_64);
    assert_int_equal(magazine_capacity(magazine->log), capacity);
    magazine_drain(magazine);
    arenas_clear(&arenas);
    page_heap_clear(&page_heap, false);
    assert_arenas_empty();
}

TEST(stock_is_taken_from_the_lowest_on)
{
    size_t half = magazine_capacity(size_classes[CLASS_64].magazine_log) / 2;
    take_many(MANY, half);
    arenas_empty_depots(&arenas, CLASS_64); /* what came bit by bit as the class grew */
    while (depot_of(CLASS_64)->count == 0)
        take_many(half, half);
    size_t total = class_in(0, CLASS_64)->bin.total_objects;
    assert_in_range(depot_of(CLASS_64)->count, 8, total / 64 / (2 * half));
    size_t falls = 0;
    uintptr_t before = 0;
    for (struct magazine *m; (m = get_full(CLASS_64)) != NULL; magazine_free(m)) {
        const uintptr_t *objects = magazine_begin(m);
        for (size_t i = 0; i < magazine_capacity(m->log); before = objects[i++])
            falls += objects[i] < before;
    }
    assert_in_range(falls, 0, 2); /* where one segment ends and another begins */
    assert_int_equal(depot_of(CLASS_64)->stock, 0);
    arenas_clear(&arenas);
    page_heap_clear(&page_heap, false);
    assert_arenas_empty();
}

TEST(stock_goes_into_the_empty_magazines)
{
    unsigned log = size_classes[CLASS_64].magazine_log;
    size_t capacity = magazine_capacity(log), half = capacity / 2, empties = 0;
    struct depot *depot = depot_of(CLASS_64);
    take_many(MANY, half);
    while (depot->count == 0)
        take_many(half, half);
    for (struct magazine *full, *given; depot->count != 0; magazine_drain(full), empties++) {
        given = magazine_new(log);
        assert_non_null(full = arenas_get_full(&arenas, CLASS_64, &given));
        assert_null(given);
    }
    assert_int_equal(depot->empties, empties);
    uintptr_t objects[MAGAZINE_SLOTS_MOST];
    while (depot->count == 0)
        assert_true(arenas_refill(&arenas, CLASS_64, objects, half) != 0);
    assert_int_equal(depot->empties, empties - size_min(empties, depot->count));
    arenas_clear(&arenas);
    page_heap_clear(&page_heap, false);
    assert_arenas_empty();
}

TEST(stock_is_for_its_own_arena)
{
    struct magazine *stock = magazine_filled(CLASS_64), *freed = magazine_filled(CLASS_64);
    assert_true(depot_put_stock(depot_of(CLASS_64), stock, 1));
    assert_false(depot_put_stock(depot_of(CLASS_64), freed, 1));
    arenas_swap();
    assert_null(get_full(CLASS_64));
    arenas_swap();
    assert_true(put_full(CLASS_64, freed));
    arenas_swap();
    assert_ptr_equal(get_full(CLASS_64), freed);
    assert_null(get_full(CLASS_64));
    arenas_swap();
    assert_int_equal(depot_of(CLASS_64)->stock, 1);
    assert_arenas_sound();
    assert_ptr_equal(get_full(CLASS_64), stock);
    assert_int_equal(depot_of(CLASS_64)->stock, 0);
    magazine_drain(stock);
    magazine_drain(freed);
    assert_arenas_empty();
}

TEST(who_takes_little_at_a_time_stocks_nothing)
{
    take_many(MANY, 16);
    assert_int_equal(depot_of(CLASS_64)->count, 0);
    objects_free(many, MANY);
    assert_arenas_empty();
}

TEST(a_sparse_class_keeps_nothing_waiting)
{
    take_many(MANY, 16);
    struct magazine *first = magazine_filled(CLASS_64), *second = magazine_filled(CLASS_64);
    assert_true(put_full(CLASS_64, first));
    assert_false(arenas_class_is_sparse(&arenas, CLASS_64));
    /* Every second object: no slab empties, half of all is free. */
    for (size_t i = 0; i < MANY; i += 2)
        objects_free(&many[i], 1);
    assert_false(arenas_class_is_sparse(&arenas, CLASS_64));
    for (size_t i = 1; i < MANY; i += 8)
        objects_free(&many[i], 1);
    assert_true(arenas_class_is_sparse(&arenas, CLASS_64));
    assert_false(arenas_class_is_sparse(&arenas, CLASS_64 + 1));
    assert_false(put_full(CLASS_64, second));
    assert_int_equal(depot_of(CLASS_64)->count, 0); /* what waited has gone as well */
    magazine_drain(second);
    arenas_clear(&arenas);
    page_heap_clear(&page_heap, false);
    assert_arenas_empty();
}

TEST(a_small_class_is_never_sparse)
{
    take_many(4000, 16);
    objects_free(many, 3900);
    assert_false(arenas_class_is_sparse(&arenas, CLASS_64));
    objects_free(many + 3900, 100);
    assert_arenas_empty();
}

/* ---- arenas_check ---- */

#define PLANT(field, damage, expected) ASSERT_FOUND(field, damage, arenas_check(&arenas), expected)

TEST(damaged_depots_are_found)
{
    size_t class = class_of_size(128);
    fill_depot(class, 3);
    uintptr_t other;
    assert_int_equal(arenas_refill(&arenas, CLASS_64, &other, 1), 1);
    struct depot *depot = depot_of(class);
    PLANT(depot->count, 2, "a depot's count of magazines is wrong");
    PLANT(depot->count, 4, "a depot's count of magazines is wrong");
    PLANT(depot->stock, 4, "a depot's count of magazines is wrong");
    PLANT(depot->full, depot->full->link, "a depot's count of magazines is wrong");
    PLANT(depot->empties, 1, "a depot's count of magazines is wrong");
    PLANT(depot->high, 2, "a depot's count of magazines is wrong");
    size_t capacity = magazine_capacity(depot->full->log);
    struct magazine *last = depot->full->link->link;
    static const char foreign[] = "a magazine holds an object of another class";
    for (size_t i = 0; i < capacity; i += 13) {
        PLANT(magazine_begin(depot->full)[i], other, foreign);
        PLANT(magazine_begin(last)[i], 0x10000, foreign);
        PLANT(*object_key_word(magazine_begin(last)[i]), 0,
              "a small block was written to when it was free");
    }
    objects_free(&other, 1);
    assert_arenas_empty();
}

TEST(faults_of_any_arena_are_found)
{
    uintptr_t object;
    struct misuse misuse;
    size_t dirty;
    fill_depot(CLASS_64, 1);
    arenas_swap();
    assert_int_equal(arenas_refill(&arenas, CLASS_64, &object, 1), 1);
    uintptr_t cell = (uintptr_t)arenas_alloc_cell(&arenas, 5000, 16, CELLS_NEW, &misuse, &dirty);
    for (unsigned i = 0; i < 2; i++) {
        struct arena *arena = arenas.list[i];
        struct bin *bin = &arena->classes[CLASS_64].bin;
        if (bin->page_heap != NULL)
            PLANT(bin->free_objects, bin->free_objects + 1, "a bin's count of free objects");
        if (arena->cells.page_heap != NULL)
            PLANT(arena->cells.free_units, 0, "the count of free cell units is wrong");
    }
    objects_free(&object, 1);
    cell_set_state(cell, CELL_CACHED);
    cells_free(&cell, 1);
    assert_arenas_empty();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(magazines_are_handed_over_whole, arenas_begin, page_heap_end),
        ROW_WITH(what_lies_in_no_order_does_not_wait, arenas_begin, page_heap_end),
        ROW_WITH(empty_magazines_are_handed_back, arenas_begin, page_heap_end),
        ROW_WITH(a_depot_keeps_no_more_empty_magazines_than_were_full, arenas_begin, page_heap_end),
        ROW_WITH(the_depots_of_other_arenas_are_looked_into, two_arenas_begin, page_heap_end),
        ROW_WITH(small_objects_of_who_goes_up_and_down_stay_there, two_arenas_begin, page_heap_end),
        ROW_WITH(small_objects_that_flow_one_way_are_taken, two_arenas_begin, page_heap_end),
        ROW_WITH(objects_of_whole_lines_are_taken, two_arenas_begin, page_heap_end),
        ROW_WITH(a_thread_that_is_alone_takes_all, two_arenas_begin, page_heap_end),
        ROW_WITH(a_depot_is_bounded_in_bytes, arenas_begin, page_heap_end),
        ROW_WITH(all_depots_together_are_bounded, arenas_begin, page_heap_end),
        ROW_WITH(the_depots_of_homes_are_bounded_as_those_of_processors, arenas_begin,
                 page_heap_end),
        ROW_WITH(a_depot_is_bounded_in_magazines, arenas_begin, page_heap_end),
        ROW_WITH(what_nobody_takes_goes_back, arenas_begin, page_heap_end),
        ROW_WITH(what_nobody_takes_goes_when_fresh_memory_is_taken, arenas_begin, page_heap_end),
        ROW_WITH(idle_pages_of_cells_go_when_fresh_memory_is_taken, arenas_begin, page_heap_end),
        ROW_WITH(what_nobody_takes_goes_when_another_arena_takes_fresh_memory, two_arenas_begin,
                 page_heap_end),
        ROW_WITH(what_is_needed_between_looks_stays, arenas_begin, page_heap_end),
        ROW_WITH(a_trim_empties_all_depots, two_arenas_begin, page_heap_end),
        ROW_WITH(a_class_that_grows_stocks_its_depot, arenas_begin, page_heap_end),
        ROW_WITH(stock_is_taken_from_the_lowest_on, arenas_begin, page_heap_end),
        ROW_WITH(stock_goes_into_the_empty_magazines, arenas_begin, page_heap_end),
        ROW_WITH(stock_is_for_its_own_arena, two_arenas_begin, page_heap_end),
        ROW_WITH(who_takes_little_at_a_time_stocks_nothing, arenas_begin, page_heap_end),
        ROW_WITH(a_sparse_class_keeps_nothing_waiting, two_arenas_begin, page_heap_end),
        ROW_WITH(a_small_class_is_never_sparse, arenas_begin, page_heap_end),
        ROW_WITH(damaged_depots_are_found, arenas_begin, page_heap_end),
        ROW_WITH(faults_of_any_arena_are_found, two_arenas_begin, page_heap_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
