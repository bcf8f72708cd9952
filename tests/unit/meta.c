/*
 * Tests of meta/meta.h: sizes, alignment, reuse, and that no two blocks overlap.
 */
#include "support.h"

#include <pthread.h>
#include <string.h>

#include "meta/meta.h"
#include "platform/lock.h"
#include "platform/memory.h"

static size_t rounded(size_t bytes)
{
    size_t power = META_LEAST;
    while (power < bytes)
        power *= 2;
    return power;
}

static bool is_zero(const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* The first: of the chunk only malloc's heap has taken, and left one of the least blocks. */
TEST(aligning_wastes_nothing)
{
    meta_alloc(META_LEAST);
    char *first = meta_alloc(META_MOST);
    char *small = meta_alloc(META_LEAST);
    char *second = meta_alloc(META_MOST);
    assert_ptr_equal(small, first + META_MOST);
    assert_ptr_equal(second, small + META_MOST);
    size_t mapped = meta_bytes_mapped();
    /* What lies between is one block of each size. */
    for (size_t bytes = META_LEAST; bytes < META_MOST; bytes *= 2) {
        char *between = meta_alloc(bytes);
        assert_ptr_equal(between, small + bytes);
        meta_free(between, bytes);
    }
    assert_int_equal(meta_bytes_mapped(), mapped);
    meta_free(second, META_MOST);
    meta_free(small, META_LEAST);
    meta_free(first, META_MOST);
}

TEST(every_size_is_rounded_to_a_power_of_two_and_aligned_to_it)
{
    for (size_t bytes = 1; bytes <= META_MOST; bytes++) {
        size_t before = meta_bytes_used();
        char *block = meta_alloc(bytes);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % rounded(bytes), 0);
        assert_int_equal(meta_bytes_used() - before, rounded(bytes));
        memset(block, 0xee, rounded(bytes));
        meta_free(block, bytes);
        assert_int_equal(meta_bytes_used(), before);
    }
}

TEST(a_freed_block_is_the_next_of_its_size)
{
    for (size_t bytes = META_LEAST; bytes <= META_MOST; bytes *= 2) {
        char *first = meta_alloc(bytes);
        char *second = meta_alloc(bytes);
        assert_ptr_not_equal(first, second);
        meta_free(first, bytes);
        meta_free(second, bytes);
        assert_ptr_equal(meta_alloc(bytes - 1), second); /* the same class of sizes */
        assert_ptr_equal(meta_alloc(bytes), first);
        meta_free(first, bytes);
        meta_free(second, bytes);
    }
}

/* ---- Many ---- */

enum { BLOCKS = 1000 };

struct owner {
    struct block {
        char *start;
        size_t bytes;
        char mark;
    } blocks[BLOCKS];
    uint64_t seed;
    bool overlapped;
};

static void block_turn(struct owner *owner, size_t index)
{
    struct block *block = &owner->blocks[index];
    if (block->start == NULL) {
        block->bytes = 1 + random_below(&owner->seed, META_MOST);
        block->mark = (char)random_next(&owner->seed);
        block->start = meta_alloc(block->bytes);
        memset(block->start, block->mark, block->bytes);
        return;
    }
    for (size_t i = 0; i < block->bytes; i++)
        owner->overlapped |= block->start[i] != block->mark;
    meta_free(block->start, block->bytes);
    block->start = NULL;
}

static void *take_and_give(void *argument)
{
    struct owner *owner = argument;
    for (unsigned turn = 0; turn < 6 * BLOCKS; turn++)
        block_turn(owner, random_below(&owner->seed, BLOCKS));
    for (size_t i = 0; i < BLOCKS; i++)
        if (owner->blocks[i].start != NULL)
            block_turn(owner, i);
    return NULL;
}

TEST(blocks_do_not_overlap)
{
    static struct owner owner;
    owner.seed = 1;
    size_t before = meta_bytes_used();
    take_and_give(&owner);
    assert_false(owner.overlapped);
    assert_int_equal(meta_bytes_used(), before);
    /* What was needed once is enough for the same again. */
    size_t mapped = meta_bytes_mapped();
    assert_true(mapped >= before);
    owner.seed = 1;
    take_and_give(&owner);
    assert_int_equal(meta_bytes_mapped(), mapped);
}

TEST(blocks_of_threads_do_not_overlap)
{
    enum { THREADS = 4 };
    static struct owner owners[THREADS];
    pthread_t threads[THREADS];
    size_t before = meta_bytes_used();
    for (unsigned i = 0; i < THREADS; i++) {
        owners[i].seed = i + 2;
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &owners[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_false(owners[i].overlapped);
    }
    assert_int_equal(meta_bytes_used(), before);
}

/* ---- Tables ---- */

TEST(tables_are_zero_and_have_pages_of_their_own)
{
    for (size_t bytes = 1; bytes <= 300000; bytes = bytes * 3 + 1) {
        size_t mapped = meta_bytes_mapped();
        size_t whole = align_up(bytes, os_page_size());
        char *table = meta_map(bytes);
        assert_non_null(table);
        assert_int_equal((uintptr_t)table % os_page_size(), 0);
        assert_true(is_zero(table, whole));
        memset(table, 1, whole);
        assert_int_equal(meta_bytes_mapped() - mapped, whole);
    }
}

TEST(a_table_that_cannot_be_had_is_null)
{
    size_t used = meta_bytes_used(), mapped = meta_bytes_mapped();
    assert_null(meta_map((size_t)1 << 60));
    assert_int_equal(meta_bytes_used(), used);
    assert_int_equal(meta_bytes_mapped(), mapped);
}

TEST(the_lock_is_free_between_calls)
{
    assert_int_equal(meta_system.lock.rank, RANK_META);
    assert_true(lock_try(&meta_system.lock));
    lock_release(&meta_system.lock);
}

#if defined(SNUG_DEBUG)
static void take_too_much(void *argument)
{
    (void)argument;
    meta_alloc(META_MOST + 1);
}

TEST(too_large_a_block_is_found)
{
    assert_aborts(take_too_much, NULL, "bytes <= META_MOST does not hold");
}
#endif

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(aligning_wastes_nothing),
        ROW(every_size_is_rounded_to_a_power_of_two_and_aligned_to_it),
        ROW(a_freed_block_is_the_next_of_its_size),
        ROW(blocks_do_not_overlap),
        ROW(blocks_of_threads_do_not_overlap),
        ROW(tables_are_zero_and_have_pages_of_their_own),
        ROW(a_table_that_cannot_be_had_is_null),
        ROW(the_lock_is_free_between_calls),
#if defined(SNUG_DEBUG)
        ROW(too_large_a_block_is_found),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
