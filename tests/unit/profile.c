/*
 * Tests of the profile on the process's own heap: that sites have what their code holds, whatever
 * it calls, in all threads, and that all is as it was when it ends.
 */
#include "heap_support.h"

#include <pthread.h>
#include <string.h>

#include "heap/sampled.h"
#include "heap/user_heaps.h"
#include "options/options.h"
#include "profile/profile.h"
#include "profile/unwind.h"
#include "snug/snug.h"

static struct site_totals totals(void)
{
    return profile.totals;
}

/* Every block is looked at. */
static void begin_exact(void)
{
    options.profile_bytes = 1;
    assert_true(sampled_begin());
}

/* What `act` leaves more of, in blocks and bytes that are live. */
static void assert_grows(uint64_t blocks, uint64_t bytes, uint64_t blocks_before,
                         uint64_t bytes_before)
{
    assert_int_equal(profile.live - blocks_before, blocks);
    assert_int_equal(totals().live_bytes - bytes_before, bytes);
}

TEST(each_call_is_counted)
{
    const size_t sizes[] = {1, 100, 1024, 1025, 5000, 100000, 131072, 200000, 3000000, 140000000};
    begin_exact();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t size = sizes[i];
        uint64_t blocks = profile.live, bytes = totals().live_bytes;
        char *made[] = {snug_malloc(size), snug_calloc(1, size), snug_aligned_alloc(64, size),
                        snug_memalign(8192, size), snug_realloc(NULL, size)};
        assert_grows(5, 5 * size, blocks, bytes);
        assert_true(all_zero(made[1], size));
        for (size_t j = 0; j < 5; j++) {
            assert_true(snug_malloc_usable_size(made[j]) >= size);
            snug_free(made[j]);
        }
        assert_grows(0, 0, blocks, bytes);
    }
    sampled_end();
    assert_heap_sound();
}

/* Between all sizes, on and off at either time. */
static void assert_resized(size_t from, size_t to, bool before, bool after)
{
    uint64_t blocks = profile.live, bytes = totals().live_bytes;
    before ? begin_exact() : sampled_end();
    char *block = snug_malloc(from);
    pattern_fill(block, from, from);
    after ? begin_exact() : sampled_end();
    block = snug_realloc(block, to);
    assert_non_null(block);
    assert_true(pattern_holds(block, size_min(from, to), from));
    bool stays = !after && !before;
    ASSERT_THAT(profile.live - blocks == (after ? 1 : 0) || (before && to <= from),
                "%zu to %zu: %u samples", from, to, (unsigned)(profile.live - blocks));
    if (after && before)
        assert_int_equal(totals().live_bytes - bytes, to);
    if (stays)
        assert_int_equal(totals().live_bytes, bytes);
    snug_free(block);
    assert_grows(0, 0, blocks, bytes);
}

TEST(resizing_is_allocating_anew)
{
    const size_t sizes[] = {10, 200, 1000, 1100, 8900, 9000, 130000, 140000, 1000000};
    const size_t count = sizeof(sizes) / sizeof(sizes[0]);
    for (size_t i = 0; i < count * count; i++)
        for (unsigned on = 0; on < 4; on++)
            if (i / count != i % count)
                assert_resized(sizes[i / count], sizes[i % count], on & 1, on & 2);
    sampled_end();
    assert_heap_sound();
}

TEST(off_is_as_before)
{
    begin_exact();
    void *sample = snug_malloc(64);
    sampled_end();
    uint64_t blocks = profile.live;
    for (unsigned i = 0; i < 100; i++)
        snug_free(snug_malloc(64));
    void *plain = snug_malloc(64);
    assert_int_equal(profile.live, blocks);
    assert_int_equal(page_map_class((uintptr_t)plain), class_of_size(64));
    assert_ptr_equal(heap_of(sample), &heap_default); /* as far as anybody can see */
    snug_free(plain);
    snug_free(sample);
    assert_int_equal(profile.live, blocks - 1);
}

/* ---- Sites ---- */

static __attribute__((noinline)) void *one_site(size_t bytes)
{
    void *block = snug_malloc(bytes);
    __asm__ volatile("" : "+r"(block));
    return block;
}

/* The site that has most of what is live. */
static const struct site *largest_site(void)
{
    const struct site *largest = NULL;
    for (uint32_t number = 1; number < profile.sites.used; number++) {
        const struct site *site = table_at(&profile.sites, number, sizeof(*site));
        if (largest == NULL || site->live_bytes > largest->live_bytes)
            largest = site;
    }
    return largest;
}

/* Whether the library can tell who called it, on this machine. */
static bool has_stacks(void)
{
    static struct unwind_stack stack;
    unwind_here(&stack);
    return stack.count != 0;
}

TEST(a_site_has_its_peak)
{
    NEED(has_stacks(), "without stacks all blocks are of one site");
    enum { BLOCKS = 100, BYTES = 5000000 };
    static void *blocks[BLOCKS];
    begin_exact();
    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = one_site(BYTES);
    const struct site *site = largest_site();
    assert_int_equal(site->live_bytes, (uint64_t)BLOCKS * BYTES);
    for (unsigned i = 1; i < BLOCKS; i++)
        snug_free(blocks[i]);
    void *later = snug_malloc(1000);
    assert_int_equal(site->live_bytes, BYTES);
    assert_false(site_peak_is_live(site, &profile.totals));
    assert_int_equal(site->peak_bytes, (uint64_t)BLOCKS * BYTES);
    assert_int_equal(site->samples, BLOCKS);
    snug_free(later);
    snug_free(blocks[0]);
    assert_int_equal(site->live_bytes, 0);
    sampled_end();
}

/* ---- Threads ---- */

enum { THREADS = 4, TURNS = 3000 };

static void *churn(void *argument)
{
    uint64_t seed = (uintptr_t)argument;
    void *kept[16] = {NULL};
    for (unsigned i = 0; i < TURNS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        size_t bytes = seed >> 60 == 0 ? 200000 : seed >> 54;
        kept[i % 16] = snug_realloc(kept[i % 16], bytes + 1);
        if (i % 5 == 0) {
            snug_free(kept[(i + 7) % 16]);
            kept[(i + 7) % 16] = NULL;
        }
    }
    for (unsigned i = 0; i < 16; i++)
        snug_free(kept[i]);
    return NULL;
}

TEST(threads_and_switching)
{
    pthread_t threads[THREADS];
    begin_exact();
    uint64_t blocks = profile.live, bytes = totals().live_bytes;
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    for (unsigned i = 0; i < 200; i++) {
        sampled_end();
        sampled_begin();
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_grows(0, 0, blocks, bytes);
    assert_int_equal(profile.lost, 0);
    sampled_end();
    assert_heap_sound();
}

TEST(requests_from_outside)
{
    options.profile_bytes = 1;
    events.wanted.profile = PROFILE_ON;
    heap_serve(HEAP_LONG); /* as the tool does it */
    snug_free(snug_malloc(64));
    assert_true(profile.on);
    assert_int_equal(events.wanted.profile, PROFILE_NOTHING);
    events.wanted.profile = PROFILE_OFF;
    snug_free(snug_malloc(64));
    assert_false(profile.on);
    assert_true(size_is_below(SMALL_MOST, &page_map.small_sizes));
}

/* ---- Heaps of the program's own ---- */

static __attribute__((noinline)) void *one_site_of(snug_heap *heap, size_t bytes)
{
    void *block = snug_heap_malloc(heap, bytes);
    __asm__ volatile("" : "+r"(block));
    return block;
}

static __attribute__((noinline)) void *another_site_of(snug_heap *heap, size_t bytes)
{
    void *block = snug_heap_calloc(heap, 1, bytes);
    __asm__ volatile("" : "+r"(block));
    return block;
}

/* The site of a block that is a sample. */
static const struct site *site_of(void *block)
{
    struct profile_block sample;
    assert_true(profile_take(block, &sample));
    profile_put_back(block, &sample);
    return table_at(&profile.sites, sample.site, sizeof(struct site));
}

static void hold_in_two(snug_heap *first, snug_heap *second)
{
    enum { BLOCKS = 30 };
    uint64_t blocks = profile.live, bytes = totals().live_bytes;
    void *one = NULL, *other = NULL;
    for (unsigned i = 0; i < BLOCKS; i++) {
        one = one_site_of(first, 100);
        other = another_site_of(second, 3000);
        assert_true(one != NULL && other != NULL && all_zero(other, 3000));
    }
    assert_ptr_equal(snug_heap_of(one), first);
    assert_ptr_equal(snug_heap_of(other), second);
    assert_grows(2 * BLOCKS, BLOCKS * 3100, blocks, bytes);
    const struct site *ones = site_of(one), *others = site_of(other);
    assert_int_equal(ones->live_bytes, BLOCKS * 100);
    assert_int_equal(others->live_bytes, BLOCKS * 3000);
    snug_heap_free(first, one);
    assert_int_equal(ones->live_bytes, (BLOCKS - 1) * 100);
    snug_heap_clear(first);
    assert_int_equal(ones->live_bytes, 0);
    assert_int_equal(others->live_bytes, BLOCKS * 3000);
    snug_free(other);
    assert_grows(BLOCKS - 1, (BLOCKS - 1) * 3000, blocks, bytes);
    snug_heap_destroy(second);
    assert_grows(0, 0, blocks, bytes);
    assert_non_null(one_site_of(first, 500));
    snug_heap_destroy(first);
    assert_grows(0, 0, blocks, bytes);
    assert_int_equal(profile.lost, 0);
}

TEST(heaps_have_samples)
{
    NEED(has_stacks(), "without stacks all blocks are of one site");
    static char buffer[8 * MIB];
    struct snug_heap_config small = {.size = sizeof(small), .quota = 4 * MIB},
                            placed = {.size = sizeof(placed),
                                      .buffer = buffer,
                                      .buffer_bytes = sizeof(buffer)},
                            hard = {.size = sizeof(hard), .flags = SNUG_HEAP_HARDENED};
    begin_exact();
    hold_in_two(snug_heap_create(NULL), snug_heap_create(NULL));
    hold_in_two(snug_heap_create(&small), snug_heap_create(NULL));
    hold_in_two(snug_heap_create(NULL), snug_heap_create(&placed));
    hold_in_two(snug_heap_create(&hard), snug_heap_create(&small));
    sampled_end();
    assert_heap_sound();
}

TEST(heaps_resize_samples)
{
    const size_t sizes[] = {10, 1000, 9000, 200000, 3000000, 150000, 100, 5000};
    uint64_t blocks = profile.live, bytes = totals().live_bytes;
    snug_heap *heap = snug_heap_create(NULL);
    begin_exact();
    char *block = snug_heap_aligned_alloc(heap, 64, 300);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        pattern_fill(block, 10, 1);
        block = snug_heap_realloc(heap, block, sizes[i]);
        assert_true(pattern_holds(block, 10, 1));
        assert_ptr_equal(snug_heap_of(block), heap);
        assert_grows(1, sizes[i], blocks, bytes);
    }
    sampled_end();
    block = snug_heap_realloc(heap, block, 300);
    assert_grows(0, 0, blocks, bytes);
    assert_null(snug_heap_check(heap) ? heap : NULL);
    snug_heap_destroy(heap);
}

/* Where a heap has no page left, its small blocks are had as ever, and what is missing is said. */
TEST(full_heaps_serve_on)
{
    struct snug_heap_config config = {.size = sizeof(config), .quota = MIB};
    snug_heap *heap = snug_heap_create(&config);
    begin_exact();
    uint64_t lost = profile.lost;
    unsigned count = 0;
    sampled_end();
    void *slab = snug_heap_malloc(heap, 64);
    begin_exact();
    while (snug_heap_malloc(heap, PAGE_BYTES) != NULL)
        count++;
    assert_true(count > 0 && slab != NULL);
    assert_int_equal(profile.lost, lost);
    assert_non_null(snug_heap_malloc(heap, 64));
    assert_int_equal(profile.lost, lost + 1);
    snug_heap_destroy(heap);
    sampled_end();
    profile.lost = lost;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(a_site_has_its_peak), /* first: nothing else has been at a peak */
        ROW(each_call_is_counted),  ROW(resizing_is_allocating_anew), ROW(off_is_as_before),
        ROW(threads_and_switching), ROW(requests_from_outside),       ROW(heaps_have_samples),
        ROW(heaps_resize_samples),  ROW(full_heaps_serve_on),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
