/*
 * Tests of where a large block lies when threads on several processors free some: where its own
 * processor freed one last (pageheap/recent.c).
 */
#include "pageheap/sparse.h" /* before names of ours that parameters in it have too */

#include "page_heap_support.h"

#include <pthread.h>
#include <sched.h>

#include "options/options.h"
#include "pageheap/large.h"

enum { BLOCK = 200 * KIB, BLOCK_PAGES = BLOCK / PAGE_BYTES, SHORTER = BLOCK - 10 * PAGE_BYTES };

/* Bytes: what large blocks in use may have where there is one processor (OWN_MOST). */
#define OWN_BYTES (4 * MIB)

static cpu_set_t processors;
static uint8_t here; /* as page_heap->home has it */
static char *walls[4], *blocks[3];

/* Three blocks with a wall on each side, on a processor that the thread stays on. */
static int begin(void **state)
{
    if (page_heap_begin(state) != 0 || sched_getaffinity(0, sizeof(processors), &processors) != 0)
        return -1;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)sched_getcpu(), &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0)
        return -1;
    here = (uint8_t)(sched_getcpu() + 1);
    options.dirty = GIB;
    page_heap.large_most = 16 * MIB;
    for (size_t i = 0; i < 4; i++) {
        walls[i] = large_get(PAGE_BYTES);
        if (i < 3)
            blocks[i] = large_get(BLOCK);
    }
    return 0;
}

static int end(void **state)
{
    for (size_t i = 0; i < 4; i++)
        large_put(walls[i]);
    assert_page_heap_empty();
    sched_setaffinity(0, sizeof(processors), &processors);
    return page_heap_end(state);
}

/* Frees a block as if that was done on another processor, or here. */
static void put(char *start, bool own)
{
    large_put(start);
    page_heap.recent.homes[page_heap.recent.count - 1] = own ? here : (uint8_t)(here + 1);
}

/* Frees the three, that in the middle here, and takes a shorter one, as long as so many more may
 * lie where their processor freed one. Says which of the three it is in. */
static size_t place_after(uint8_t turns)
{
    put(blocks[0], false);
    put(blocks[1], true);
    put(blocks[2], false);
    page_heap.own_turns = turns;
    char *start = large_get(SHORTER);
    size_t at = 0;
    while (at < 3 && (uintptr_t)(start - blocks[at]) >= BLOCK)
        at++;
    assert_int_equal(page_heap.recent.count, 0); /* the others are joined */
    large_put(start);
    return at;
}

TEST(a_block_lies_where_its_processor_freed_one)
{
    assert_int_equal(place_after(1), 1);
    assert_int_equal(page_heap.own_turns, 0);
}

TEST(it_lies_anywhere_when_one_processor_alone_frees)
{
    assert_int_not_equal(place_after(0), 1);
    assert_int_equal(page_heap.own_turns, 0);
}

TEST(it_lies_anywhere_where_much_is_in_use)
{
    /* the three, four pages and this */
    size_t rest = OWN_BYTES - 3 * BLOCK - 4 * PAGE_BYTES;
    char *much = large_get(rest + PAGE_BYTES);
    assert_int_not_equal(place_after(1), 1);
    assert_int_equal(page_heap.own_turns, 1);
    large_put(much);
}

TEST(as_much_as_the_caches_hold_is_not_much)
{
    char *much = large_get(OWN_BYTES - 3 * BLOCK - 4 * PAGE_BYTES);
    assert_int_equal(place_after(1), 1);
    large_put(much);
}

TEST(there_may_be_more_where_there_are_more_processors)
{
    char *much = large_get(OWN_BYTES);
    page_heap.nearby_log = 1;
    assert_int_equal(place_after(1), 1);
    page_heap.nearby_log = 0;
    large_put(much);
}

TEST(what_is_for_many_blocks_does_not_count)
{
    struct span *cells = span_new(SPAN_CELLS, OWN_BYTES / PAGE_BYTES, PAGE_BYTES);
    assert_non_null(cells);
    assert_int_equal(place_after(1), 1);
    span_put(cells);
}

TEST(blocks_that_stay_empty_lie_elsewhere)
{
    page_heap.sparse_seen = SPARSE_SEEN;
    place_after(1); /* at a multiple of more than a page, which may be there by chance */
    assert_int_equal(page_heap.own_turns, 1);
}

TEST(the_newest_of_its_own_is_taken)
{
    put(blocks[1], true);
    put(blocks[0], true);
    put(blocks[2], false);
    page_heap.own_turns = 1;
    char *start = large_get(SHORTER);
    assert_ptr_equal(start, blocks[0]);
    large_put(start);
}

/* Where it is enough together with what is free beside it, and at the end that is nearer. */
TEST(a_block_lies_at_the_nearer_end)
{
    for (size_t own = 0; own < 2; own++) {
        char *left = large_get(BLOCK), *right = large_get(BLOCK);
        if (right < left) {
            char *other = left;
            left = right;
            right = other;
        }
        assert_ptr_equal(left + BLOCK, right);
        put(left, own == 0);
        put(right, own == 1);
        page_heap.own_turns = 1;
        char *start = large_get(SHORTER);
        assert_ptr_equal(start, own == 0 ? left : right + BLOCK - SHORTER);
        large_put(start);
    }
    for (size_t i = 0; i < 3; i++)
        large_put(blocks[i]);
}

TEST(a_longer_one_lies_where_it_fits)
{
    put(blocks[1], true);
    page_heap.own_turns = 1;
    char *start = large_get(2 * BLOCK);
    assert_true((uintptr_t)(start - blocks[1]) >= BLOCK);
    large_put(start);
    large_put(blocks[0]);
    large_put(blocks[2]);
}

TEST(an_aligned_one_is_aligned_there)
{
    enum { ALIGNMENT = 64 * KIB };
    size_t dirty;
    for (size_t i = 0; i < 3; i++)
        large_put(blocks[i]);
    char *start = large_get(2 * MIB + PAGE_BYTES);
    put(start, true);
    page_heap.own_turns = 1;
    char *aligned = large_alloc(&page_heap, BLOCK, ALIGNMENT, &dirty);
    assert_int_equal((uintptr_t)aligned % ALIGNMENT, 0);
    assert_page_heap_sound();
    large_put(aligned);
}

/* ---- Where a block is freed ---- */

TEST(another_processor_begins_the_turns)
{
    page_heap.home = 0; /* nobody has freed anything yet */
    recent_note_home(&page_heap);
    assert_int_equal(page_heap.home, here);
    assert_int_equal(page_heap.own_turns, 0);
    recent_note_home(&page_heap);
    assert_int_equal(page_heap.own_turns, 0);
    page_heap.home = (uint8_t)(here + 1);
    recent_note_home(&page_heap);
    assert_int_equal(page_heap.home, here);
    assert_int_equal(page_heap.own_turns, 64);
    page_heap.own_turns = 0;
    for (size_t i = 0; i < 3; i++)
        large_put(blocks[i]);
}

static void *stay_until(void *lock)
{
    lock_acquire((struct lock *)lock);
    lock_release((struct lock *)lock);
    return NULL;
}

TEST(a_block_knows_where_it_was_freed)
{
    struct lock lock;
    lock_init(&lock, RANK_INIT);
    lock_acquire(&lock);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, stay_until, &lock), 0);
    page_heap.home = 0;
    assert_true(large_free_recent(&page_heap, (uintptr_t)blocks[0]));
    assert_int_equal(page_heap.recent.homes[0], here);
    page_heap.home = 0;
    large_put(blocks[1]);
    assert_int_equal(page_heap.recent.homes[1], here);
    /* They move up with their blocks. */
    page_heap.recent.homes[0] = (uint8_t)(here + 1);
    assert_ptr_equal(recent_take_out(&page_heap.recent, 0)->start, blocks[0]);
    assert_int_equal(page_heap.recent.homes[0], here);
    struct span *span = large_table_find(&page_heap.large, blocks[0]);
    recent_add(&page_heap.recent, span);
    lock_release(&lock);
    pthread_join(thread, NULL);
    large_put(blocks[2]);
}

#define OWN_ROW(name) ROW_WITH(name, begin, end)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        OWN_ROW(a_block_lies_where_its_processor_freed_one),
        OWN_ROW(it_lies_anywhere_when_one_processor_alone_frees),
        OWN_ROW(it_lies_anywhere_where_much_is_in_use),
        OWN_ROW(as_much_as_the_caches_hold_is_not_much),
        OWN_ROW(there_may_be_more_where_there_are_more_processors),
        OWN_ROW(what_is_for_many_blocks_does_not_count),
        OWN_ROW(blocks_that_stay_empty_lie_elsewhere),
        OWN_ROW(the_newest_of_its_own_is_taken),
        OWN_ROW(a_block_lies_at_the_nearer_end),
        OWN_ROW(a_longer_one_lies_where_it_fits),
        OWN_ROW(an_aligned_one_is_aligned_there),
        OWN_ROW(another_processor_begins_the_turns),
        OWN_ROW(a_block_knows_where_it_was_freed),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
