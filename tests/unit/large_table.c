/*
 * Tests of pageheap/large_table.h against a shadow: addresses that collide, groups of them that go
 * on from the table's end to its beginning, growing, and what becomes of it without memory.
 */
#include "support.h"

#include <string.h>

#include "meta/meta.h"
#include "pageheap/large_table.h"
#include "pageheap/page_heap.h"

/* ---- Spans by number, and whether they are in the table ---- */

enum { SPANS = 20000 };
static struct span all[SPANS];
static bool is_in[SPANS];
static size_t in_count;
static struct large_table table;
static struct meta *meta;

static int begin(void **state)
{
    memset(&table, 0, sizeof(table));
    memset(is_in, 0, sizeof(is_in));
    in_count = 0;
    meta = &meta_system;
    for (size_t i = 0; i < SPANS; i++)
        all[i] = (struct span){.start = (char *)((uintptr_t)0x7f0000000000 + (i << PAGE_SHIFT)),
                               .pages = 1,
                               .kind = SPAN_LARGE};
    return options_reset(state);
}

static void add(size_t i)
{
    assert_false(is_in[i]);
    assert_true(large_table_reserve(&table, meta));
    large_table_add(&table, &all[i]);
    is_in[i] = true;
    in_count++;
}

static void take_out(size_t i)
{
    assert_true(is_in[i]);
    large_table_remove(&table, &all[i]);
    is_in[i] = false;
    in_count--;
}

static void assert_as_shadow(size_t page_heap)
{
    assert_int_equal(table.count, in_count);
    for (size_t i = 0; i < page_heap; i++)
        ASSERT_THAT(large_table_find(&table, all[i].start) == (is_in[i] ? &all[i] : NULL),
                    "%zu of %zu at %p", i, in_count, (void *)all[i].start);
}

/* ---- Use ---- */

TEST(an_empty_table_has_nothing)
{
    assert_as_shadow(100);
    assert_null(large_table_find(&table, NULL));
    assert_null(table.slots);
    large_table_clear(&table);
    assert_as_shadow(100);
}

TEST(what_is_in_is_found_and_nothing_else_is)
{
    for (size_t i = 0; i < SPANS; i += 2)
        add(i);
    assert_as_shadow(SPANS);
    assert_null(large_table_find(&table, NULL));
    assert_null(large_table_find(&table, all[0].start + 1)); /* the address, not the page */
    assert_null(large_table_find(&table, all[0].start + PAGE_BYTES - 1));
    for (size_t i = 0; i < SPANS; i += 4)
        take_out(i);
    assert_as_shadow(SPANS);
}

/* The most slots in a row that are taken: so many are looked at for an address, at worst. */
static size_t longest_group(void)
{
    size_t longest = 0, group = 0, slots = (size_t)1 << table.log;
    for (size_t i = 0; i < 2 * slots && group < slots; i++) {
        group = table.slots[i % slots] != NULL ? group + 1 : 0;
        longest = size_max(longest, group);
    }
    return longest;
}

TEST(addresses_of_any_distance_are_told_apart)
{
    static const unsigned shifts[] = {PAGE_SHIFT, 13, 16, 21, 27, 30, 32};
    for (size_t shift = 0; shift < sizeof(shifts) / sizeof(shifts[0]); shift++) {
        begin(NULL);
        enum { MANY = 2000 };
        for (size_t i = 0; i < MANY; i++) {
            all[i].start = (char *)((i + 1) << shifts[shift]);
            add(i);
        }
        assert_as_shadow(MANY);
        ASSERT_THAT(longest_group() < 64, "%zu, %u bits apart", longest_group(), shifts[shift]);
        for (size_t i = 0; i < MANY; i++)
            take_out((i * 7) % MANY);
        assert_as_shadow(MANY);
    }
}

TEST(it_grows_when_it_is_half_full)
{
    for (size_t i = 0; i < 5000; i++) {
        add(i);
        size_t slots = (size_t)1 << table.log;
        ASSERT_THAT(table.count <= slots / 2, "%zu in %zu", table.count, slots);
        ASSERT_THAT(slots == 64 || table.count > slots / 4, "%zu in %zu", table.count, slots);
        if ((i & (i + 1)) == 0)
            assert_as_shadow(i + 10);
    }
    assert_as_shadow(5010);
}

TEST(smaller_tables_are_given_back)
{
    size_t before = meta_bytes_used();
    for (size_t i = 0; i < 5000; i++)
        add(i);
    assert_true((sizeof(struct span *) << table.log) > META_MOST);
    assert_int_equal(meta_bytes_used(), before);
}

TEST(clear_forgets_all_and_keeps_the_slots)
{
    for (size_t i = 0; i < 1000; i++)
        add(i);
    unsigned log = table.log;
    large_table_clear(&table);
    memset(is_in, 0, sizeof(is_in));
    in_count = 0;
    assert_as_shadow(1000);
    for (size_t i = 0; i <= ((size_t)1 << log) - 1; i++)
        assert_null(table.slots[i]);
    for (size_t i = 500; i < 1500; i++)
        add(i);
    assert_int_equal(table.log, log);
    assert_as_shadow(1500);
}

/* ---- Collisions ---- */

/* In which slot of 64 an address alone stands. */
static size_t home_of(const char *start)
{
    static struct span probe;
    struct large_table alone = {0};
    assert_true(large_table_reserve(&alone, &meta_system));
    probe.start = (char *)(uintptr_t)start;
    large_table_add(&alone, &probe);
    size_t slots = (size_t)1 << alone.log, home = slots;
    for (size_t i = 0; i < slots; i++)
        if (alone.slots[i] == &probe)
            home = i;
    assert_in_range(home, 0, slots - 1);
    meta_free(alone.slots, sizeof(struct span *) << alone.log);
    return home;
}

enum { LEAST_SLOTS = 64, LEAST_HOLDS = 32 };

/* Gives the first `count` spans addresses whose homes are one of `homes`, in turn. */
static void collide(size_t count, const size_t *homes, size_t home_count)
{
    uintptr_t page = 1;
    for (size_t i = 0; i < count; i++) {
        while (home_of((char *)(page << PAGE_SHIFT)) != homes[i % home_count])
            page++;
        all[i].start = (char *)(page++ << PAGE_SHIFT);
    }
}

/* Adds and takes out at random. */
static void use_at_random(size_t count, size_t most, unsigned turns, uint64_t seed)
{
    for (unsigned turn = 0; turn < turns; turn++) {
        size_t i = random_below(&seed, count);
        if (is_in[i])
            take_out(i);
        else if (in_count < most)
            add(i);
        assert_as_shadow(count);
    }
}

TEST(what_collides_is_found_in_any_order)
{
    static const size_t homes[][3] = {
        {5, 5, 5},  {5, 6, 7},   {7, 6, 5},   {63, 63, 63}, {62, 63, 0},
        {63, 0, 1}, {0, 63, 62}, {60, 63, 1}, {0, 0, 63},
    };
    for (size_t i = 0; i < sizeof(homes) / sizeof(homes[0]); i++) {
        begin(NULL);
        collide(40, homes[i], 3);
        use_at_random(40, LEAST_HOLDS, 2000, i + 1);
        assert_int_equal((size_t)1 << table.log, LEAST_SLOTS);
        for (size_t j = 0; j < 40; j++)
            if (is_in[j])
                take_out(j);
        for (size_t j = 0; j < LEAST_SLOTS; j++) /* without marks of what was there */
            assert_null(table.slots[j]);
    }
}

TEST(a_group_that_wraps_is_closed_wherever_a_hole_is_made)
{
    static const size_t homes[] = {61, 62, 63};
    enum { GROUP = 12 };
    collide(GROUP, homes, 3);
    for (size_t hole = 0; hole < GROUP; hole++) {
        for (size_t i = 0; i < GROUP; i++)
            add(i);
        assert_non_null(table.slots[0]); /* it does wrap */
        take_out(hole);
        assert_as_shadow(GROUP);
        for (size_t i = GROUP; i-- > 0;)
            if (is_in[i])
                take_out(i);
        assert_as_shadow(GROUP);
    }
}

TEST(random_use_with_growth)
{
    begin(NULL);
    uint64_t seed = 17;
    for (unsigned turn = 0; turn < 200000; turn++) {
        size_t i = random_below(&seed, turn < 100000 ? SPANS : 500);
        if (is_in[i])
            take_out(i);
        else
            add(i);
        if (turn % 10000 == 0)
            assert_as_shadow(SPANS);
    }
    assert_as_shadow(SPANS);
}

/* ---- Without memory ---- */

static char memory[4 * KIB] __attribute__((aligned(4096)));
static struct meta fixed;

static void meta_of(size_t bytes)
{
    memset(memory, 0, sizeof(memory));
    meta_init(&fixed, memory, bytes);
    meta = &fixed;
}

TEST(without_memory_for_a_first_table_nothing_fits)
{
    meta_of(256);
    for (unsigned i = 0; i < 3; i++) {
        assert_false(large_table_reserve(&table, meta));
        assert_null(table.slots);
        assert_int_equal(fixed.used, 0);
    }
    assert_as_shadow(100);
}

TEST(without_memory_to_grow_it_is_filled_to_seven_eighths)
{
    meta_of(LEAST_SLOTS * sizeof(struct span *));
    enum { MOST = LEAST_SLOTS / 8 * 7 };
    for (size_t i = 0; i < MOST; i++)
        add(i);
    struct span **slots = table.slots;
    assert_as_shadow(2 * MOST);
    for (unsigned i = 0; i < 3; i++) {
        assert_false(large_table_reserve(&table, meta));
        assert_ptr_equal(table.slots, slots);
        assert_int_equal((size_t)1 << table.log, LEAST_SLOTS);
        assert_as_shadow(2 * MOST);
    }
    take_out(3);
    add(MOST);
    use_at_random(2 * MOST, MOST, 2000, 5);
    assert_ptr_equal(table.slots, slots);
    /* What a block that is moved leaves free is its own, though the table is full. */
    while (in_count < MOST)
        for (size_t i = 0; i < 2 * MOST && in_count < MOST; i++)
            if (!is_in[i])
                add(i);
    assert_false(large_table_reserve(&table, meta));
    size_t moved = 0;
    while (!is_in[moved])
        moved++;
    take_out(moved);
    all[moved].start += (size_t)1 << 32;
    large_table_add(&table, &all[moved]);
    is_in[moved] = true;
    in_count++;
    assert_as_shadow(2 * MOST);
}

/* However many move at a time: as many others came while none of them was in the table. */
TEST(blocks_that_move_keep_their_places)
{
    enum { MOVING = 30 };
    for (size_t i = 0; i < MOVING; i++)
        add(i);
    for (size_t i = 0; i < MOVING; i++) {
        take_out(i);
        large_table_keep_place(&table);
    }
    for (size_t i = MOVING; i < 3 * MOVING; i++)
        add(i);
    size_t slots = (size_t)1 << table.log;
    for (size_t i = 0; i < MOVING; i++) {
        large_table_use_place(&table);
        large_table_add(&table, &all[i]);
        is_in[i] = true;
        in_count++;
    }
    assert_int_equal((size_t)1 << table.log, slots);
    ASSERT_THAT(table.count <= slots / 2, "%zu in %zu", table.count, slots);
    assert_as_shadow(3 * MOVING);
}

TEST(it_grows_later_if_there_is_memory_again)
{
    meta_of(LEAST_SLOTS * sizeof(struct span *));
    for (size_t i = 0; i < 50; i++)
        add(i);
    meta = &meta_system;
    for (size_t i = 50; i < 3000; i++)
        add(i);
    assert_as_shadow(3010);
    assert_true(((size_t)1 << table.log) >= 6000);
}

TEST(an_area_of_fixed_size_never_maps_a_table)
{
    static char area[16 * KIB] __attribute__((aligned(4096)));
    meta_init(&fixed, area, sizeof(area));
    meta = &fixed;
    size_t mapped = meta_bytes_mapped(), most = META_MOST / sizeof(struct span *) / 8 * 7;
    for (size_t i = 0; i < most; i++)
        add(i);
    assert_int_equal(sizeof(struct span *) << table.log, META_MOST);
    assert_false(large_table_reserve(&table, meta));
    assert_as_shadow(most + 10);
    assert_int_equal(meta_bytes_mapped(), mapped);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(an_empty_table_has_nothing, begin, options_reset),
        ROW_WITH(what_is_in_is_found_and_nothing_else_is, begin, options_reset),
        ROW_WITH(addresses_of_any_distance_are_told_apart, begin, options_reset),
        ROW_WITH(it_grows_when_it_is_half_full, begin, options_reset),
        ROW_WITH(smaller_tables_are_given_back, begin, options_reset),
        ROW_WITH(clear_forgets_all_and_keeps_the_slots, begin, options_reset),
        ROW_WITH(what_collides_is_found_in_any_order, begin, options_reset),
        ROW_WITH(a_group_that_wraps_is_closed_wherever_a_hole_is_made, begin, options_reset),
        ROW_WITH(random_use_with_growth, begin, options_reset),
        ROW_WITH(without_memory_for_a_first_table_nothing_fits, begin, options_reset),
        ROW_WITH(without_memory_to_grow_it_is_filled_to_seven_eighths, begin, options_reset),
        ROW_WITH(blocks_that_move_keep_their_places, begin, options_reset),
        ROW_WITH(it_grows_later_if_there_is_memory_again, begin, options_reset),
        ROW_WITH(an_area_of_fixed_size_never_maps_a_table, begin, options_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
