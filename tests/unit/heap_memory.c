/*
 * Tests of what heaps live on: buffers, memory that is not to be touched, quotas and limits; and of
 * visiting what is in them.
 */
#include <stdlib.h>
#include <string.h>

#include "fake_provider.h"
#include "heap/totals.h"
#include "heap/user_heaps.h"
#include "heap_support.h"
#include "options/options.h"
#include "provider/provider_prealloc.h"
#include "stats/stats.h"

static struct heap *make(struct heap_settings settings)
{
    return heap_create(&settings);
}

static void assert_sound(struct heap *heap)
{
    const char *wrong = heap_check_of(heap);
    if (wrong != NULL)
        fail_msg("%s", wrong);
}

/* Takes blocks of many sizes until there is no room for the smallest, with a pattern in each, frees
 * them in another order. Returns the bytes that were live at the most. */
static size_t fill_and_empty(struct heap *heap)
{
    enum { MOST = 40000 };
    static struct {
        char *start;
        size_t bytes;
    } blocks[MOST];
    uint64_t random = 7;
    size_t count = 0, live = 0, refused = 0;
    while (count < MOST && refused < 64) {
        size_t bytes = random_below(&random, 64) == 0 ? random_below(&random, 20000)
                                                      : random_below(&random, 600);
        bytes = refused > 32 ? 16 : bytes + 1;
        char *block = heap_alloc_in(heap, bytes);
        if (block == NULL) {
            refused++;
            continue;
        }
        assert_ptr_equal(heap_of(block), heap);
        pattern_fill(block, bytes, count);
        blocks[count].start = block;
        blocks[count++].bytes = bytes;
        live += bytes;
    }
    assert_sound(heap);
    for (size_t step = 0; step < 3; step++)
        for (size_t i = step; i < count; i += 3) {
            ASSERT_THAT(pattern_holds(blocks[i].start, blocks[i].bytes, i), "block %zu", i);
            heap_free(blocks[i].start);
        }
    assert_sound(heap);
    struct heap_totals totals = heap_totals_of(NULL, heap, NULL);
    assert_int_equal(totals.small_live + totals.cells_live + totals.large + totals.huge, 0);
    return live;
}

/* ---- Buffers ---- */

static char buffer[4 * MIB];

static void use_buffer(char *start, size_t bytes, size_t at_least)
{
    struct counters before = counters_read(NULL, &tallies);
    size_t mapped = meta_bytes_mapped();
    uintptr_t around = page_map_entry((uintptr_t)start + bytes / 2);
    memset(start, 0xa5, bytes);
    start[-1] = 17;
    start[bytes] = 18;
    struct heap *heap = make((struct heap_settings){.buffer = start, .buffer_bytes = bytes});
    assert_non_null(heap);
    assert_true((char *)heap >= start && (char *)heap < start + bytes);
    for (unsigned round = 0; round < 3; round++) {
        size_t live = fill_and_empty(heap);
        ASSERT_THAT(live >= at_least, "%zu of %zu bytes", live, bytes);
        char *large = heap_alloc_in(heap, bytes / 4);
        assert_non_null(large);
        assert_in_range((uintptr_t)large, (uintptr_t)start, (uintptr_t)start + bytes * 3 / 4);
        heap_clear(heap);
        assert_sound(heap);
        char *zero = heap_alloc_zero_in(heap, bytes / 8);
        assert_true(all_zero(zero, bytes / 8));
        heap_free(zero);
    }
    heap_destroy(heap);
    assert_int_equal(start[-1], 17);
    assert_int_equal(start[bytes], 18);
    assert_int_equal(COUNTED(map_calls), before.map_calls);
    assert_int_equal(meta_bytes_mapped(), mapped);
    assert_int_equal(page_map_entry((uintptr_t)start + bytes / 2), around);
}

TEST(a_heap_in_a_buffer_takes_nothing_else)
{
    heap_free(heap_alloc(1)); /* malloc's heap is there */
    use_buffer(buffer + 4096, 64 * KIB, 6 * KIB);
    use_buffer(buffer + 4097, 64 * KIB, 6 * KIB);
    for (size_t offset = 32; offset < 4096; offset += 408) /* wherever pages begin in it */
        use_buffer(buffer + 4096 + offset, 64 * KIB, 4 * KIB);
    use_buffer(buffer + 4096, 70001, 6 * KIB);
    use_buffer(buffer + 12345, 256 * KIB, 80 * KIB);
    use_buffer(buffer + 8, MIB, 500 * KIB);
    use_buffer(buffer + 4096, 3 * MIB + 5, 2 * MIB);
}

/* In the buffer of a heap in a buffer. */
TEST(buffers_nest)
{
    struct heap *outer =
        make((struct heap_settings){.buffer = buffer, .buffer_bytes = sizeof(buffer)});
    char *inside = heap_alloc_in(outer, 2 * MIB);
    use_buffer(inside + 100, 2 * MIB - 200, MIB);
    char *block = heap_alloc_in(outer, 100);
    assert_ptr_equal(heap_of(inside), outer);
    heap_free(block);
    heap_free(inside);
    heap_destroy(outer);
}

TEST(a_buffer_that_is_too_small_is_refused)
{
    assert_null(
        make((struct heap_settings){.buffer = buffer, .buffer_bytes = HEAP_BUFFER_LEAST - 1}));
}

TEST(many_heaps_in_buffers)
{
    enum { HEAPS = 64 };
    struct heap *heaps[HEAPS];
    char *blocks[HEAPS];
    for (size_t i = 0; i < HEAPS; i++) {
        heaps[i] = make((struct heap_settings){.buffer = buffer + i * 64 * KIB,
                                               .buffer_bytes = HEAP_BUFFER_LEAST});
        assert_non_null(heaps[i]);
        blocks[i] = heap_alloc_in(heaps[i], 100);
    }
    /* The page map has no room for another. */
    char *more = malloc(64 * KIB);
    assert_null(make((struct heap_settings){.buffer = more, .buffer_bytes = 64 * KIB}));
    free(more);
    for (size_t i = 0; i < HEAPS; i++) {
        assert_ptr_equal(heap_of(blocks[i]), heaps[i]);
        heap_free(blocks[i]);
        heap_destroy(heaps[i]);
    }
}

/* ---- Outside ---- */

TEST(bookkeeping_outside_touches_nothing)
{
    char *start = buffer + 1000;
    size_t bytes = MIB;
    memset(start, 0x5a, bytes);
    struct heap *heap =
        make((struct heap_settings){.buffer = start, .buffer_bytes = bytes, .outside = true});
    assert_non_null(heap);
    void *blocks[1000];
    for (unsigned round = 0; round < 20; round++) {
        for (size_t i = 0; i < 1000; i++) {
            blocks[i] = heap_alloc_in(heap, i % 700 + 1);
            assert_in_range((uintptr_t)blocks[i], (uintptr_t)start, (uintptr_t)start + bytes);
        }
        void *large = heap_alloc_in(heap, 100000);
        void *aligned = heap_alloc_aligned_in(heap, 4096, 5000);
        assert_true(heap_usable(large, "test") >= 100000);
        heap_free(large);
        heap_free(aligned);
        for (size_t i = 0; i < 1000; i++)
            heap_free(blocks[(i * 7) % 1000]);
        assert_sound(heap);
    }
    heap_clear(heap);
    heap_destroy(heap);
    for (size_t i = 0; i < bytes; i++)
        ASSERT_THAT(start[i] == 0x5a, "byte %zu was written", i);
}

TEST(misuse_is_seen_without_keys)
{
    struct heap *heap =
        make((struct heap_settings){.buffer = buffer, .buffer_bytes = MIB, .outside = true});
    char *block = heap_alloc_in(heap, 100), *other = heap_alloc_in(heap, 100);
    options.misuse = MISUSE_WARN;
    heap_free(block);
    stderr_capture();
    heap_free(block);
    heap_free(other + 16);
    const char *said = stderr_restore();
    assert_int_equal(count_of(said, "double free"), 1);
    assert_int_equal(count_of(said, "is inside"), 1);
    heap_destroy(heap);
}

static bool write_nothing(void *context, void *block, size_t bytes)
{
    (void)block;
    *(size_t *)context += bytes;
    return true;
}

TEST(an_own_provider_outside)
{
    struct fake_provider fake;
    fake_provider_init(&fake);
    fake.provider.unclean = true;
    struct heap *heap = make((struct heap_settings){.provider = &fake.provider, .outside = true});
    size_t live = 0;
    void *block = heap_alloc_in(heap, 3000), *small = heap_alloc_in(heap, 30);
    assert_true(heap_visit(heap, write_nothing, &live));
    assert_int_equal(live, 3000 + 32);
    for (size_t i = 0; i < fake.range_count; i++)
        assert_true(all_zero(fake.ranges[i].start, fake.ranges[i].bytes));
    heap_free(block);
    heap_free(small);
    heap_destroy(heap);
    assert_int_equal(fake.bytes, 0);
    fake_provider_end(&fake);
}

TEST(what_is_not_clean_is_cleared)
{
    static const size_t sizes[] = {10, 3000, 300000, 3000000, 0};
    struct fake_provider fake;
    fake_provider_init(&fake);
    fake.provider.unclean = true;
    struct heap *heap = make((struct heap_settings){.provider = &fake.provider});
    for (const size_t *size = sizes; *size != 0; size++) {
        char *block = heap_alloc_in(heap, *size);
        memset(block, 1, *size);
        heap_free(block);
        block = heap_alloc_zero_in(heap, *size);
        assert_true(all_zero(block, *size));
        heap_free(block);
    }
    heap_destroy(heap);
    fake_provider_end(&fake);
}

/* The pages of memory taken ahead cannot go back one by one; whole segments can. */
TEST(heaps_on_one_provider_leave_each_other_what_they_do_not_use)
{
    struct pool pool;
    enum { BLOCKS = 30000 };
    static void *blocks[BLOCKS];
    assert_true(provider_prealloc_init(&pool, 32 * MIB, NULL));
    struct heap *first = make((struct heap_settings){.provider = &pool.provider});
    struct heap *second = make((struct heap_settings){.provider = &pool.provider});
    for (unsigned round = 0; round < 4; round++) {
        for (size_t i = 0; i < BLOCKS; i++)
            assert_non_null(blocks[i] = heap_alloc_in(first, 800));
        if (round % 2 == 0)
            heap_clear(first);
        for (size_t i = 0; round % 2 != 0 && i < BLOCKS; i++)
            heap_free(blocks[i]);
        for (size_t i = 0; i < BLOCKS; i++)
            blocks[i] = heap_alloc_in(second, 800);
        ASSERT_THAT(blocks[BLOCKS - 1] != NULL, "round %u", round);
        heap_clear(second);
        heap_trim_of(first, 0);
        heap_trim_of(second, 0);
        assert_sound(first);
        assert_sound(second);
    }
    heap_destroy(first);
    heap_destroy(second);
    assert_int_equal(pool.extents->taken_pages, 0);
    pool_end(&pool);
}

/* ---- Quota and limits ---- */

TEST(a_quota_is_kept_to_and_used)
{
    static const size_t quotas[] = {256 * KIB, MIB, 8 * MIB, 16 * MIB, 24 * MIB, 0};
    for (const size_t *quota = quotas; *quota != 0; quota++) {
        struct heap *heap = make((struct heap_settings){.quota = *quota});
        assert_non_null(heap);
        void *first = NULL;
        size_t count = 0;
        for (void **block; (block = heap_alloc_in(heap, 200)) != NULL; count++) {
            *block = first;
            first = block;
        }
        ASSERT_THAT(count * 208 > *quota * 8 / 10, "%zu blocks with a quota of %zu", count, *quota);
        assert_true(quota_used(&heap->record->quota) <= *quota);
        assert_null(heap_alloc_in(heap, 5000000));
        while (first != NULL) {
            void *next = *(void **)first;
            heap_free(first);
            first = next;
        }
        /* What is cached goes back before a request of another kind is refused. */
        void *large = heap_alloc_in(heap, *quota / 2);
        assert_non_null(large);
        heap_free(large);
        assert_sound(heap);
        heap_destroy(heap);
    }
}

/* What malloc's heap keeps is given up for another heap, but not for a quota of that. */
TEST(what_other_heaps_keep_is_given_up_for_the_limit)
{
    heap_clock_stop();
    void *blocks[8];
    for (size_t i = 0; i < 8; i++)
        memset(blocks[i] = heap_alloc(3 * MIB), 1, 3 * MIB);
    for (size_t i = 0; i < 8; i++)
        heap_free(blocks[i]);
    size_t kept = heap_totals().segment_cache;
    assert_true(kept >= 20 * MIB);
    struct heap *bounded = make((struct heap_settings){.quota = MIB});
    assert_null(heap_alloc_in(bounded, 2 * MIB));
    assert_int_equal(heap_totals().segment_cache, kept);
    options.limit = COUNTED(map_bytes) - COUNTED(unmap_bytes) + 8 * MIB;
    struct heap *heap = make((struct heap_settings){0});
    assert_non_null(heap_alloc_in(heap, 16 * MIB));
    assert_int_equal(heap_totals().segment_cache, 0);
    /* And the other way round. */
    heap_clear(heap);
    assert_non_null(blocks[0] = heap_alloc(20 * MIB));
    heap_free(blocks[0]);
    heap_destroy(heap);
    heap_destroy(bounded);
    options_reset(NULL);
}

struct told {
    unsigned calls;
    size_t missing;
    void *block; /* freed when told, if it is not NULL */
};

static void on_limit(void *context, struct heap *heap, size_t missing)
{
    struct told *told = context;
    told->calls++;
    told->missing = missing;
    if (told->block != NULL)
        heap_free(told->block);
    told->block = NULL;
    heap_free(heap_alloc_in(heap, 10)); /* it may allocate; it is not called from within */
}

TEST(a_soft_limit_tells_what_is_missing)
{
    struct told told = {0};
    struct heap *heap = make(
        (struct heap_settings){.soft_limit = 6 * MIB, .call_back = on_limit, .context = &told});
    void *first = heap_alloc_in(heap, 2 * MIB);
    assert_int_equal(told.calls, 0);
    void *second = heap_alloc_in(heap, 5 * MIB);
    assert_int_equal(told.calls, 1);
    assert_int_equal(told.missing, MIB);
    heap_free(heap_alloc_in(heap, 50)); /* no more than before */
    assert_int_equal(told.calls <= 2, true);
    unsigned calls = told.calls;
    void *third = heap_alloc_in(heap, 8 * MIB);
    assert_int_equal(told.calls, calls + 1);
    heap_free(first);
    heap_free(second);
    heap_free(third);
    heap_trim_of(heap, 0);
    heap_free(heap_alloc_in(heap, 100)); /* below again */
    calls = told.calls;
    third = heap_alloc_in(heap, 8 * MIB);
    assert_int_equal(told.calls, calls + 1);
    heap_destroy(heap);
}

TEST(who_is_told_may_make_room)
{
    struct told told = {0};
    struct heap *heap =
        make((struct heap_settings){.quota = 32 * MIB, .call_back = on_limit, .context = &told});
    told.block = heap_alloc_in(heap, 20 * MIB);
    void *block = heap_alloc_in(heap, 25 * MIB);
    assert_non_null(block);
    assert_int_equal(told.calls, 1);
    assert_int_equal(told.missing, 25 * MIB);
    assert_null(heap_alloc_in(heap, 25 * MIB));
    assert_int_equal(told.calls, 2);
    heap_destroy(heap);
}

/* ---- Failing providers ---- */

/* A fixed sequence of calls that leads to all kinds of the provider's. With the provider failing at
 * some, blocks may be NULL; those that are not must be right. */
static void scripted_run(struct heap *heap)
{
    static const size_t sizes[] = {16, 900, 20000, 300000, 1100000, 1200000, 100, 400000};
    enum { SLOTS = 24 };
    char *blocks[SLOTS] = {0};
    size_t bytes[SLOTS];
    for (size_t step = 0; step < 120; step++) {
        size_t slot = step * 7 % SLOTS;
        if (blocks[slot] != NULL && step % 3 == 0) {
            size_t to = sizes[(step + 3) % 8];
            char *moved = heap_resize(blocks[slot], to);
            if (moved != NULL) {
                assert_true(pattern_holds(moved, size_min(bytes[slot], to), slot));
                blocks[slot] = moved;
                bytes[slot] = to;
                pattern_fill(moved, to, slot);
            }
        } else if (blocks[slot] != NULL) {
            assert_true(pattern_holds(blocks[slot], bytes[slot], slot));
            heap_free(blocks[slot]);
            blocks[slot] = NULL;
        } else {
            bytes[slot] = sizes[step % 8];
            blocks[slot] = step % 2 == 0 ? heap_alloc_zero_in(heap, bytes[slot])
                                         : heap_alloc_in(heap, bytes[slot]);
            if (blocks[slot] != NULL)
                pattern_fill(blocks[slot], bytes[slot], slot);
        }
        if (step % 50 == 0)
            heap_trim_of(heap, 0);
        if (step % 10 == 0)
            assert_sound(heap);
        if (step == 80)
            options.dirty = 0;
    }
    heap_clear(heap);
    assert_sound(heap);
}

/* ThreadSanitizer makes it slow, and there is one thread. */
#if defined(__SANITIZE_THREAD__)
enum { CALL_STEP = 17 };
#else
enum { CALL_STEP = 1 };
#endif

/* For every n, the nth call fails; then all from the nth on. */
TEST(any_call_of_a_provider_may_fail)
{
    static const unsigned lengths[] = {1, 100000};
    unsigned failed = 0;
    for (size_t length = 0; length < 2; length++)
        for (unsigned n = 1;; n += CALL_STEP) {
            struct fake_provider fake;
            fake_provider_init(&fake);
            options_reset(NULL);
            options.dirty = MIB;
            fake.fail_first = n;
            fake.fail_last = n + lengths[length] - 1;
            struct heap *heap = make((struct heap_settings){.provider = &fake.provider});
            scripted_run(heap);
            heap_destroy(heap);
            assert_heap_sound();
            assert_false(fake.unknown_range);
            bool reached = fake.failed != 0;
            failed += fake.failed;
            fake_provider_end(&fake);
            if (!reached || n > 400)
                break;
        }
    assert_true(failed > 100 / CALL_STEP);
}

/* ---- Visiting ---- */

struct seen {
    void **expected;
    size_t count, found, bytes;
};

static bool see(void *context, void *block, size_t bytes)
{
    struct seen *seen = context;
    for (size_t i = 0; i < seen->count; i++)
        if (seen->expected[i] == block) {
            seen->found++;
            seen->bytes += bytes;
            return true;
        }
    return false;
}

TEST(live_blocks_are_visited_and_no_others)
{
    struct heap *heap = make((struct heap_settings){.name = "visited"});
    assert_string_equal(heap->record->name, "visited");
    void *blocks[400];
    size_t count = 0, usable = 0;
    for (size_t i = 0; i < 2000; i++) {
        size_t bytes = i % 100 == 99 ? 50000 * (i / 100) : i * 3 % 3000;
        void *block = heap_alloc_in(heap, bytes);
        if (i % 5 == 0) {
            blocks[count++] = block;
            usable += heap_usable(block, "test");
        } else {
            heap_free(block);
        }
    }
    struct seen seen = {blocks, count, 0, 0};
    assert_true(heap_visit(heap, see, &seen));
    assert_int_equal(seen.found, count);
    assert_int_equal(seen.bytes, usable);
    seen.count = 0;
    assert_false(heap_visit(heap, see, &seen));
    heap_clear(heap);
    assert_true(heap_visit(heap, see, &seen));
    heap_destroy(heap);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(a_heap_in_a_buffer_takes_nothing_else),
        ROW(buffers_nest),
        ROW(a_buffer_that_is_too_small_is_refused),
        ROW(many_heaps_in_buffers),
        ROW(bookkeeping_outside_touches_nothing),
        ROW(misuse_is_seen_without_keys),
        ROW(an_own_provider_outside),
        ROW(what_is_not_clean_is_cleared),
        ROW(heaps_on_one_provider_leave_each_other_what_they_do_not_use),
        ROW(a_quota_is_kept_to_and_used),
        ROW(what_other_heaps_keep_is_given_up_for_the_limit),
        ROW(a_soft_limit_tells_what_is_missing),
        ROW(who_is_told_may_make_room),
        ROW(any_call_of_a_provider_may_fail),
        ROW(live_blocks_are_visited_and_no_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
