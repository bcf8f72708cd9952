/*
 * Tests of cell/cell_purge.c: which free cells give their pages back, when, and that they are as
 * good as before.
 */
#include "cell_support.h"

#include <string.h>

#include "cell/cell_list.h"
#include "options/options.h"
#include "platform/memory.h"

/* Cells below this many bytes are never purged. */
#define AGED_BYTES (32 * KIB)

/* The heap ticks, and what is kept is looked at. */
static void pass_tick(void)
{
    uint32_t looks = cells.looks;
    cells_tick(&cells);
    assert_int_equal(cells.looks, looks + 1);
}

/* A cell of so many units between two live ones, so that it stays what it is when it is free. */
struct hole {
    uintptr_t before, block, behind;
};

static struct hole hole_make(size_t units)
{
    struct hole hole;
    hole.before = cell_get_units(100);
    hole.block = cell_get_units(units);
    hole.behind = cell_get_units(100);
    return hole;
}

static void hole_end(const struct hole *hole)
{
    cell_put(hole->before);
    cell_put(hole->behind);
}

/* How much of it is whole pages. */
static size_t whole_pages(const struct hole *hole, size_t units)
{
    uintptr_t end = hole->block - CELL_HEADER + units * CELL_UNIT - CELL_HEADER;
    uintptr_t start = align_up(hole->block + 32, os_page_size());
    return align_down(end, os_page_size()) - start;
}

TEST(a_purge_of_all_takes_the_pages_inside)
{
    struct hole hole = hole_make(4000), small = hole_make(1000);
    cell_put(hole.block);
    cell_put(small.block);
    size_t expected = whole_pages(&hole, 4000);
    assert_true(expected >= 4000 * CELL_UNIT - 3 * os_page_size());
    static struct cells before;
    before = cells;
    size_t purged = cells_purge(&cells, true);
    assert_int_equal(purged, fake.purged_bytes);
    /* The hole, and the rest of the span behind all of them. */
    assert_int_equal(fake.purges, 2);
    assert_true(purged > expected);
    assert_cells_sound();
    assert_memory_equal(cells.free, before.free, sizeof(cells.free));
    assert_int_equal(cells_purge(&cells, true), 0); /* nothing is left to give */
    uintptr_t block = cell_get_units(4000);
    assert_int_equal(block, hole.block);
    cell_put(block);
    assert_true(cells_purge(&cells, true) >= expected); /* used again, so dirty again */
    hole_end(&hole);
    hole_end(&small);
    assert_cells_empty();
}

/* Nobody knows how long it is, nor where its links lead: what is behind it may be live. */
TEST(a_cell_that_the_program_wrote_to_stays)
{
    struct hole hole = hole_make(4000), other = hole_make(3000);
    cell_put(hole.block);
    cell_put(other.block);
    struct cell *cell = cell_of(hole.block);
    char sound[CELL_HEADER + sizeof(struct free_links)];
    memcpy(sound, cell, sizeof(sound));
    for (unsigned damage = 0; damage < 3; damage++) {
        if (damage == 0)
            cell_links(cell)->next = (struct free_links *)0x4141414141414140;
        else if (damage == 1)
            cell_links(cell)->prev = (struct free_links *)0x4141414141414140;
        else
            cell->units = 9000;
        size_t purged = cells_purge(&cells, true);
        if (damage == 0) /* the other, and the rest of the span */
            assert_true(purged > whole_pages(&other, 3000));
        else
            assert_int_equal(purged, 0);
        memcpy(cell, sound, sizeof(sound));
        assert_cells_sound();
    }
    assert_int_equal(cells_purge(&cells, true), whole_pages(&hole, 4000));
    hole_end(&hole);
    hole_end(&other);
    assert_cells_empty();
}

TEST(an_empty_span_goes_when_it_is_idle)
{
    cell_put(cell_get_units(100));
    assert_int_equal(cells.span_count, 1);
    pass_tick();
    assert_int_equal(cells.span_count, 1);
    cell_put(cell_get_units(100)); /* it is used after all */
    pass_tick();
    assert_int_equal(cells.span_count, 1);
    pass_tick();
    assert_int_equal(cells.span_count, 0);
    assert_cells_empty();
}

enum { HOLES = 100, HOLE_UNITS = 2100 };
static struct hole many[HOLES];

/* Makes many cells free that can be purged, each apart, on a provider that can do it together. */
static size_t free_many(void)
{
    size_t bytes = 0;
    fake.provider.purge_ranges = fake_purge_together;
    for (size_t i = 0; i < HOLES; i++)
        many[i] = hole_make(HOLE_UNITS);
    for (size_t i = 0; i < HOLES; i++) {
        bytes += whole_pages(&many[i], HOLE_UNITS);
        cell_put(many[i].block);
    }
    return bytes;
}

static void end_many(void)
{
    for (size_t i = 0; i < HOLES; i++)
        hole_end(&many[i]);
    assert_cells_empty();
}

TEST(many_cells_go_in_few_calls)
{
    NEED_SMALL_PAGES;
    size_t bytes = free_many();
    size_t purged = cells_purge(&cells, true);
    assert_true(purged >= bytes);
    assert_int_equal(purged, fake.purged_bytes);
    assert_int_equal(fake.most_together, OS_RANGES_MOST);
    assert_int_equal(fake.calls_together, 3);       /* the top, and two for all others */
    assert_true(cells_kept_pages(&cells) <= HOLES); /* less than a page at the ends of each */
    assert_cells_sound();
    assert_int_equal(cells_purge(&cells, true), 0);
    end_many();
}

TEST(what_is_refused_of_many_is_still_there)
{
    NEED_SMALL_PAGES;
    free_many();
    fake.refused_together = 0x5555555555555554;
    size_t purged = cells_purge(&cells, true);
    assert_int_equal(purged, fake.purged_bytes);
    size_t kept = cells_kept_pages(&cells);
    assert_true(kept >= 40 * (HOLE_UNITS * CELL_UNIT / PAGE_BYTES - 1));
    assert_cells_sound();
    fake.refused_together = 0;
    fake.purged_bytes = 0;
    purged = cells_purge(&cells, true);
    assert_int_equal(purged, fake.purged_bytes);
    assert_int_equal(fake.purged_bytes, (kept - cells_kept_pages(&cells)) << PAGE_SHIFT);
    assert_true(cells_kept_pages(&cells) <= HOLES);
    end_many();
}

TEST(purged_pages_are_zero_and_the_rest_stays)
{
    struct hole hole = hole_make(4000);
    cell_put(hole.block);
    cells_purge(&cells, true);
    const char *start = (const char *)hole.block;
    size_t zero = 0;
    for (size_t i = 0; i < 4000 * CELL_UNIT - CELL_HEADER; i++)
        zero += start[i] == 0;
    assert_true(zero >= whole_pages(&hole, 4000));
    assert_int_equal(start[64], (char)0xa5); /* not a whole page */
    hole_end(&hole);
    assert_cells_empty();
}

TEST(small_cells_keep_their_pages)
{
    size_t units = AGED_BYTES / CELL_UNIT;
    struct hole hole = hole_make(units - 1), large = hole_make(units);
    uintptr_t rest[REST_MOST];
    size_t count = cells_alloc_rest(rest);
    cell_put(hole.block);
    cell_put(large.block);
    assert_true(cells_purge(&cells, true) > 0);
    assert_int_equal(fake.purges, 1);
    while (count > 0)
        cell_put(rest[--count]);
    hole_end(&hole);
    hole_end(&large);
    assert_cells_empty();
}

TEST(cells_are_purged_when_they_have_been_idle)
{
    options.dirty = 128 * KIB; /* more than is freed at once here */
    struct hole hole = hole_make(4000), work = hole_make(200);
    cell_put(hole.block);
    cell_put(work.block);
    options.dirty = 32 * KIB;
    pass_tick();
    assert_int_equal(fake.purges, 0);
    pass_tick();
    /* Two ticks old: the hole, and the rest of the span. */
    assert_int_equal(fake.purges, 2);
    assert_true(fake.purged_bytes > whole_pages(&hole, 4000));
    pass_tick();
    assert_int_equal(fake.purges, 2); /* once is enough */
    assert_cells_sound();
    hole_end(&hole);
    hole_end(&work);
    assert_cells_empty();
}

TEST(much_that_is_freed_at_once_is_purged_soon)
{
    options.dirty = 512 * KIB;
    struct hole holes[40];
    for (size_t i = 0; i < 40; i++)
        holes[i] = hole_make(8000);
    for (size_t i = 0; i < 40; i++)
        cell_put(holes[i].block); /* 5 MiB in 40 frees */
    assert_true(fake.purged_bytes > 2 * MIB);
    assert_cells_sound();
    for (size_t i = 0; i < 40; i++)
        hole_end(&holes[i]);
    assert_cells_empty();
}

/* Though all could stay: slabs cannot have these pages, and take others meanwhile. */
TEST(idle_pages_go_for_fresh_ones)
{
    options.dirty = GIB;
    struct hole hole = hole_make(8000), other = hole_make(8000);
    size_t bytes = whole_pages(&hole, 8000), pages = bytes >> PAGE_SHIFT;
    uintptr_t rest[REST_MOST];
    size_t count = cells_alloc_rest(rest); /* so that no top is purged */
    cell_put(hole.block);
    cell_put(other.block);
    for (unsigned i = 0; i < IDLE_LOOKS - 1; i++)
        cells_end_epoch(&cells, pages);
    assert_int_equal(fake.purged_bytes, 0); /* they may just have been free */
    cells_end_epoch(&cells, 0);
    assert_int_equal(fake.purged_bytes, 0);
    cells_end_epoch(&cells, pages);
    assert_int_equal(fake.purged_bytes, bytes); /* as many, not both */
    assert_cells_sound();
    uintptr_t block = cell_get_units(8000);
    cell_put(block == hole.block ? block : cell_get_units(8000)); /* wanted again */
    cell_put(block == hole.block ? cell_get_units(8000) : block);
    assert_true(cells.retention.wanted >= pages);
    cells.retention.wanted = cells_kept_pages(&cells);
    for (unsigned i = 0; i < 2 * IDLE_LOOKS; i++)
        cells_end_epoch(&cells, pages);
    assert_int_equal(fake.purged_bytes, bytes); /* what was missed stays */
    while (count > 0)
        cell_put(rest[--count]);
    hole_end(&hole);
    hole_end(&other);
    assert_cells_empty();
}

/* Whatever else is free: as many are looked at as pages were fresh. */
TEST(for_fresh_pages_few_cells_are_looked_at)
{
    options.dirty = GIB;
    struct hole longer = hole_make(8000), idle = hole_make(7000);
    uintptr_t rest[REST_MOST];
    size_t count = cells_alloc_rest(rest);
    cell_put(idle.block);
    for (unsigned i = 0; i < IDLE_LOOKS; i++)
        cells_end_epoch(&cells, 0);
    cell_put(longer.block);
    cells_end_epoch(&cells, 1); /* which is for the longer */
    assert_int_equal(fake.purged_bytes, 0);
    cells_end_epoch(&cells, 2);
    assert_true(fake.purged_bytes > 0);
    while (count > 0)
        cell_put(rest[--count]);
    hole_end(&longer);
    hole_end(&idle);
    assert_cells_empty();
}

enum { WAVE = 40 };

/* Frees many large cells, and takes them again. Returns the bytes that were purged. */
static size_t wave(struct hole *holes)
{
    size_t before = fake.purged_bytes;
    for (size_t i = 0; i < WAVE; i++)
        cell_put(holes[i].block);
    assert_cells_sound();
    size_t purged = fake.purged_bytes - before;
    for (size_t i = 0; i < WAVE; i++)
        holes[i].block = cell_get_units(8000);
    assert_cells_sound();
    return purged;
}

TEST(what_was_missed_is_kept_until_it_is_not_needed)
{
    options.dirty = 512 * KIB;
    struct hole holes[WAVE], work = hole_make(200);
    for (size_t i = 0; i < WAVE; i++)
        holes[i] = hole_make(8000);
    assert_true(wave(holes) > 2 * MIB);
    for (unsigned i = 0; i < 10; i++) {
        fake_now += FAKE_SECOND / 1000;
        assert_int_equal(wave(holes), 0);
    }
    for (size_t i = 0; i < WAVE; i++)
        cell_put(holes[i].block);
    cell_put(work.block);
    size_t before = fake.purged_bytes;
    for (unsigned i = 0; i < 4; i++) {
        fake_now += FAKE_SECOND;
        pass_tick();
    }
    assert_true(fake.purged_bytes - before > 4 * MIB);
    for (size_t i = 0; i < WAVE; i++)
        hole_end(&holes[i]);
    hole_end(&work);
    assert_cells_empty();
}

TEST(what_was_learned_stays_and_the_largest_goes_first)
{
    NEED_SMALL_PAGES;
    options.dirty = GIB;
    struct hole large = hole_make(8000), small[WAVE];
    for (size_t i = 0; i < WAVE; i++)
        small[i] = hole_make(4000);
    for (size_t i = 0; i < WAVE; i++)
        cell_put(small[i].block);
    cell_put(large.block);
    pass_tick();
    size_t learned = cells_kept_pages(&cells) / 2;
    cells.retention.wanted = learned;
    cells.retention.high = GIB >> PAGE_SHIFT;
    options.dirty = PAGE_BYTES;
    pass_tick();
    assert_true(cells_kept_pages(&cells) <= learned);
    assert_true(cells_kept_pages(&cells) > learned - 4000 * CELL_UNIT / PAGE_BYTES);
    assert_int_equal(((char *)large.block)[8192], 0);
    assert_cells_sound();
    for (size_t i = 0; i < WAVE; i++)
        hole_end(&small[i]);
    hole_end(&large);
    assert_cells_empty();
}

TEST(blocks_shorter_than_a_page_miss_the_pages_they_take)
{
    options.dirty = PAGE_BYTES;
    struct hole hole = hole_make(8000);
    size_t pages = whole_pages(&hole, 8000) >> PAGE_SHIFT, taken = 0;
    cell_put(hole.block);
    pass_tick();
    pass_tick();
    assert_int_equal(cells.gone_pages, pages);
    size_t ghosts = cells.retention.ghosts; /* those of the top among them */
    uintptr_t block[8000 / 200], last = hole.block;
    for (; last < hole.behind && taken < 8000 / 200; taken++)
        last = block[taken] = cell_get_units(200);
    assert_int_equal(cells.gone_pages, 0);
    assert_int_equal(cells.retention.ghosts, ghosts - pages);
    assert_true(cells.retention.wanted >= pages);
    assert_cells_sound();
    while (taken > 0)
        cell_put(block[--taken]);
    hole_end(&hole);
    assert_cells_empty();
}

TEST(a_span_that_goes_after_its_cells_teaches_to_keep)
{
    options.dirty = 32 * KIB;
    struct hole hole = hole_make(8000), work = hole_make(200);
    uintptr_t rest[REST_MOST];
    size_t count = cells_alloc_rest(rest), span_count = cells.span_count;
    uintptr_t other = cell_get_units(2000);
    assert_int_equal(cells.span_count, span_count + 1);
    cell_put(hole.block);
    pass_tick();
    pass_tick();
    assert_true(fake.purged_bytes >= whole_pages(&hole, 8000));
    assert_int_equal(cells.retention.wanted, 0);
    cell_put(work.block);
    while (count > 0)
        cell_put(rest[--count]);
    hole_end(&work);
    hole_end(&hole);
    assert_int_equal(cells.span_count, span_count);
    assert_true(cells.retention.wanted >= whole_pages(&hole, 8000) >> PAGE_SHIFT);
    cell_put(other);
    assert_cells_empty();
}

TEST(few_idle_cells_are_left_alone)
{
    struct hole hole = hole_make(4000), work = hole_make(200);
    cell_put(hole.block);
    cell_put(work.block);
    options.dirty = cells_kept_pages(&cells) << PAGE_SHIFT;
    for (unsigned i = 0; i < 4; i++)
        pass_tick();
    assert_int_equal(fake.purges, 0);
    options.dirty -= PAGE_BYTES;
    pass_tick();
    assert_int_equal(fake.purges, 2);
    hole_end(&hole);
    hole_end(&work);
    assert_cells_empty();
}

/* Nobody needs to free or take cells any more for what was learned to go. */
TEST(what_is_kept_asks_for_a_tick)
{
    options.dirty = GIB;
    struct hole hole = hole_make(8000);
    cell_put(hole.block);
    assert_false(page_heap_tick_is_due(&page_heap));
    cells.retention.wanted = cells.retention.high = GIB >> PAGE_SHIFT;
    options.dirty = PAGE_BYTES;
    pass_tick();
    assert_int_equal(fake.purges, 0);
    fake_now += 20 * FAKE_SECOND;
    assert_true(page_heap_tick_is_due(&page_heap));
    assert_true(page_heap_tick(&page_heap));
    assert_false(page_heap_tick(&page_heap)); /* one thread goes on */
    hole_end(&hole);
    assert_cells_empty();
}

/* One base for the whole heap: what cells keep of it runs do not, but half of it is for either. */
TEST(cells_and_runs_share_a_base)
{
    options.dirty = 64 * PAGE_BYTES;
    assert_int_equal(page_heap_base(&page_heap), 64);
    assert_int_equal(page_heap_base_of_cells(&page_heap, 0), 64);
    page_heap_note_cells(&page_heap, 20, 30, 0);
    assert_int_equal(page_heap_base_of_cells(&page_heap, 20), 64); /* its own do not count */
    assert_int_equal(page_heap_base_of_cells(&page_heap, 5), 49);
    page_heap_note_cells(&page_heap, 50, 50, 0);
    assert_int_equal(page_heap_base_of_cells(&page_heap, 0), 32);
    page_heap_note_cells(&page_heap, (size_t)-70, (size_t)-80, 0);
    assert_int_equal(page_heap.cells_kept, 0);
    assert_int_equal(page_heap.cells_idle, 0);
}

/* What is free inside of cells, in memory or gone, is in nobody's use. */
TEST(a_base_is_part_of_what_is_in_use)
{
    struct hole holes[WAVE];
    options.dirty = PAGE_BYTES;
    for (size_t i = 0; i < WAVE; i++)
        holes[i] = hole_make(8000);
    for (size_t i = 0; i < WAVE; i++)
        cell_put(holes[i].block);
    cells_tell(&cells);
    size_t used = page_heap.used_pages - (cells.free_units * CELL_UNIT >> PAGE_SHIFT);
    assert_true(cells.gone_pages != 0);
    assert_true(page_heap.used_pages > 4 * used);
    assert_int_equal(page_heap_base(&page_heap), used / 8);
    for (size_t i = 0; i < WAVE; i++)
        hole_end(&holes[i]);
    assert_cells_empty();
}

TEST(a_refused_purge_is_tried_again)
{
    struct hole hole = hole_make(4000);
    cell_put(hole.block);
    fake.refuse_purge = true;
    assert_int_equal(cells_purge(&cells, true), 0);
    assert_cells_sound();
    assert_int_equal(((char *)hole.block)[8192], (char)0xa5);
    fake.refuse_purge = false;
    assert_true(cells_purge(&cells, true) >= whole_pages(&hole, 4000));
    hole_end(&hole);
    assert_cells_empty();
}

TEST(purged_cells_are_joined_and_cut_like_others)
{
    uint64_t seed = 1;
    uintptr_t live[64] = {0};
    for (unsigned turn = 0; turn < 3000; turn++) {
        uintptr_t *block = &live[random_below(&seed, 64)];
        if (*block == 0) {
            *block = cell_get(1025 + random_below(&seed, 120 * KIB - 1025));
        } else {
            cell_put(*block);
            *block = 0;
        }
        if (turn % 40 == 0)
            cells_purge(&cells, true);
        if (turn % 40 < 2)
            assert_cells_sound();
    }
    assert_true(fake.purges > 100);
    for (size_t i = 0; i < 64; i++)
        if (live[i] != 0)
            cell_put(live[i]);
    assert_cells_empty();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(a_purge_of_all_takes_the_pages_inside, cells_begin, page_heap_end),
        ROW_WITH(a_cell_that_the_program_wrote_to_stays, cells_begin, page_heap_end),
        ROW_WITH(an_empty_span_goes_when_it_is_idle, cells_begin, page_heap_end),
        ROW_WITH(many_cells_go_in_few_calls, cells_begin, page_heap_end),
        ROW_WITH(what_is_refused_of_many_is_still_there, cells_begin, page_heap_end),
        ROW_WITH(purged_pages_are_zero_and_the_rest_stays, cells_begin, page_heap_end),
        ROW_WITH(small_cells_keep_their_pages, cells_begin, page_heap_end),
        ROW_WITH(cells_are_purged_when_they_have_been_idle, cells_begin, page_heap_end),
        ROW_WITH(much_that_is_freed_at_once_is_purged_soon, cells_begin, page_heap_end),
        ROW_WITH(idle_pages_go_for_fresh_ones, cells_begin, page_heap_end),
        ROW_WITH(for_fresh_pages_few_cells_are_looked_at, cells_begin, page_heap_end),
        ROW_WITH(what_was_missed_is_kept_until_it_is_not_needed, cells_begin, page_heap_end),
        ROW_WITH(what_was_learned_stays_and_the_largest_goes_first, cells_begin, page_heap_end),
        ROW_WITH(blocks_shorter_than_a_page_miss_the_pages_they_take, cells_begin, page_heap_end),
        ROW_WITH(a_span_that_goes_after_its_cells_teaches_to_keep, cells_begin, page_heap_end),
        ROW_WITH(few_idle_cells_are_left_alone, cells_begin, page_heap_end),
        ROW_WITH(what_is_kept_asks_for_a_tick, cells_begin, page_heap_end),
        ROW_WITH(cells_and_runs_share_a_base, cells_begin, page_heap_end),
        ROW_WITH(a_base_is_part_of_what_is_in_use, cells_begin, page_heap_end),
        ROW_WITH(a_refused_purge_is_tried_again, cells_begin, page_heap_end),
        ROW_WITH(purged_cells_are_joined_and_cut_like_others, cells_begin, page_heap_end),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
