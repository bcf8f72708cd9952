/*
 * Tests of heaps beside malloc's: that every pointer finds its heap, that clearing and destroying
 * free everything and nothing of other heaps, and what becomes of threads' caches of them.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_provider.h"
#include "heap/placed.h"
#include "heap_support.h"
#include "options/options.h"

static struct fake_provider fake;
static struct heap *heap;

static struct heap *create(void)
{
    return heap_create(&(struct heap_settings){.provider = &fake.provider});
}

static int begin(void **state)
{
    fake_provider_init(&fake);
    options_reset(state);
    heap = create();
    return heap == NULL ? -1 : 0;
}

static int end(void **state)
{
    if (heap != NULL)
        heap_destroy(heap);
    bool bad = fake.unknown_range || fake.bytes != 0;
    fake_provider_end(&fake);
    options_reset(state);
    return bad ? -1 : 0;
}

static char *get(size_t bytes)
{
    char *block = heap_alloc_in(heap, bytes);
    assert_non_null(block);
    assert_true(heap_of(block) == heap);
    assert_in_range(heap_usable(block, "test"), bytes, SIZE_MAX);
    return block;
}

static struct cache *make_cache(void)
{
    for (unsigned i = 0; i < 100; i++)
        heap_free(heap_alloc_in(heap, 16));
    struct cache *cache = heap_cache(heap);
    assert_true(cache_exists(cache));
    return cache;
}

static void take_and_give_all_sizes(void)
{
    char *blocks[32];
    size_t count = 0;
    for (const size_t *size = border_sizes; *size != 0; size++) {
        blocks[count] = get(*size);
        pattern_fill(blocks[count++], *size, *size);
    }
    char *aligned = heap_alloc_aligned_in(heap, 8192, 100);
    assert_true(heap_of(aligned) == heap);
    for (size_t i = 0; i < count; i++)
        assert_true(pattern_holds(blocks[i], border_sizes[i], border_sizes[i]));
    assert_heap_sound();
    for (size_t i = 0; i < count; i++)
        heap_free(blocks[i]);
    heap_free(aligned);
    assert_heap_sound();
}

TEST(every_size_is_of_its_heap)
{
    take_and_give_all_sizes();
    make_cache();
    take_and_give_all_sizes();
    heap_trim_of(heap, 0);
    assert_int_equal(fake.bytes, 0);
}

TEST(the_fast_paths_serve_a_heap)
{
    struct cache *cache = make_cache();
    void *small = heap_alloc_in(heap, 16);
    assert_int_equal(page_map_class((uintptr_t)small), PAGE_MAP_OTHER);
    assert_false(cache_put(thread_self.cache, (uintptr_t)small, PAGE_MAP_OTHER));
    assert_true(heap_push_other(NULL, (uintptr_t)small, PAGE_MAP_OTHER));
    assert_ptr_equal(cache_pop(cache, 1), small);
    assert_true(heap_push_other(NULL, (uintptr_t)small, PAGE_MAP_OTHER));
    char *medium = get(2000);
    heap_free(medium);
    assert_ptr_equal(get(2000), medium);
    assert_int_equal(page_map_class((uintptr_t)medium), PAGE_MAP_OTHER_CELL);
    assert_true(heap_push_other(NULL, (uintptr_t)medium, PAGE_MAP_OTHER_CELL));
    assert_false(heap_push_other(NULL, (uintptr_t)medium, PAGE_MAP_OTHER_CELL)); /* twice */
}

TEST(blocks_are_resized_in_their_heap)
{
    for (const size_t *size = border_sizes; *size != 0; size++) {
        char *block = get(*size);
        pattern_fill(block, *size, 1);
        for (const size_t *to = border_sizes; *to != 0; to++) {
            size_t kept = size_min(heap_usable(block, "test"), size_min(*size, *to));
            block = heap_resize(block, *to);
            assert_non_null(block);
            assert_true(heap_of(block) == heap);
            assert_true(pattern_holds(block, kept, 1));
            pattern_fill(block, *size < *to ? *size : *to, 1);
            if (*to < *size)
                break;
        }
        heap_free(block);
    }
}

static uint64_t clock_now = 1;

static uint64_t clock_of_test(void)
{
    return clock_now;
}

static void fill(void)
{
    for (unsigned round = 0; round < 20; round++)
        for (const size_t *size = border_sizes; *size != 0; size++)
            memset(get(*size), 0x5a, *size);
    for (unsigned i = 0; i < 5000; i++)
        get(i % 1500);
}

TEST(clearing_frees_everything_and_nothing_else)
{
    char *others = block_get(1000), *medium = block_get(20000);
    pattern_fill(others, 1000, 3);
    pattern_fill(medium, 20000, 4);
    for (unsigned round = 0; round < 3; round++) {
        fill();
        heap_clear(heap);
        assert_heap_sound();
        struct heap_totals totals = heap_totals_of(NULL, heap, NULL);
        assert_int_equal(totals.slabs + totals.cells + totals.large + totals.huge, 0);
        if (round == 0) /* in the others it has learned to keep more */
            assert_in_range(totals.dirty, 0, options.dirty);
        take_and_give_all_sizes();
    }
    assert_true(pattern_holds(others, 1000, 3));
    assert_true(pattern_holds(medium, 20000, 4));
    heap_free(others);
    heap_free(medium);
}

/* As if all had been freed one by one: what is soon wanted again stays, from the second time on. */
TEST(clearing_keeps_what_is_soon_wanted_again)
{
    heap->page_heap.now = clock_of_test;
    options.dirty = MIB;
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 20000; i++)
            memset(get(900), 1, 900);
        heap_clear(heap);
        assert_heap_sound();
        if (round == 0)
            assert_in_range(fake.bytes, 0, 6 * MIB); /* a segment and what lay in the last one */
    }
    unsigned takes = fake.takes;
    size_t purged = fake.purged_bytes;
    for (unsigned i = 0; i < 20000; i++)
        get(900);
    heap_clear(heap);
    assert_int_equal(fake.takes, takes);
    assert_int_equal(fake.purged_bytes, purged);
    assert_true(fake.bytes > 16 * MIB);
    /* It is not kept for good. */
    for (unsigned i = 0; i < 3; i++) {
        clock_now += UINT64_C(20000000000);
        heap_free(get(900));
        page_heap_tick(&heap->page_heap);
    }
    assert_in_range(heap_totals_of(NULL, heap, NULL).dirty, 0, 2 * MIB);
    assert_heap_sound();
}

/* Memory that nobody touched is still known to be zero, and need not be cleared. */
TEST(clearing_does_not_make_clean_pages_dirty)
{
    get(100);
    size_t dirty = heap_totals_of(NULL, heap, NULL).segments;
    heap_clear(heap);
    assert_in_range(heap_totals_of(NULL, heap, NULL).dirty, 1, dirty / 4);
    char *large = heap_alloc_zero_in(heap, MIB);
    assert_true(all_zero(large, MIB));
    memset(large, 1, MIB);
    heap_clear(heap);
    large = heap_alloc_zero_in(heap, MIB);
    assert_true(all_zero(large, MIB));
}

TEST(a_block_of_a_cleared_heap_is_free)
{
    char *small = get(100), *large = get(300000);
    heap_clear(heap);
    options.misuse = MISUSE_WARN;
    stderr_capture();
    heap_free(small);
    heap_free(large);
    assert_int_equal(count_of(stderr_restore(), "is in free memory"), 2);
}

TEST(destroying_gives_all_back)
{
    uint64_t id = heap->id;
    fill();
    heap_destroy(heap);
    assert_int_equal(fake.bytes, 0);
    heap = create();
    assert_true(heap->id > id);
    assert_false(cache_exists(heap_cache_fast(heap)));
    take_and_give_all_sizes();
}

TEST(what_the_provider_will_not_take_back_stays_usable)
{
    fill();
    fake.refuse_give = true;
    heap_clear(heap);
    assert_true(fake.bytes > options.dirty);
    assert_heap_sound();
    /* All of it waits to be used again. */
    assert_int_equal(fake.bytes, heap_totals_of(NULL, heap, NULL).segments);
    fake.refuse_give = false;
    take_and_give_all_sizes();
}

/* ---- Threads ---- */

static void *use_and_leave(void *argument)
{
    void **left = argument;
    make_cache();
    *left = heap_alloc_in(heap, 48);
    return NULL;
}

TEST(a_thread_that_ends_gives_its_cache_back)
{
    void *left;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, use_and_leave, &left), 0);
    pthread_join(thread, NULL);
    assert_int_equal(heap->arenas.threads, 0);
    assert_int_equal(heap->arenas.magazine_bytes, 0);
    heap_free(left);
    heap_trim_of(heap, 0);
    assert_int_equal(fake.bytes, 0);
}

static pthread_barrier_t barrier;

static void *outlive(void *argument)
{
    (void)argument;
    make_cache();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier); /* the heap is destroyed, and there is another */
    for (unsigned i = 0; i < 1000; i++)
        heap_free(heap_alloc_in(heap, 64));
    return NULL;
}

TEST(a_cache_does_not_outlive_its_heap)
{
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, outlive, NULL), 0);
    pthread_barrier_wait(&barrier);
    heap_destroy(heap);
    assert_int_equal(fake.bytes, 0);
    heap = create();
    make_cache();
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    assert_int_equal(heap->arenas.threads, 1);
    assert_heap_sound();
}

/* ---- errno ---- */

static struct fake_provider quiet; /* what `fake` does without the noise */
static unsigned noises;

static bool give_loudly(const struct provider *provider, void *start, size_t bytes)
{
    noises++;
    errno = EBUSY;
    return quiet.provider.give(provider, start, bytes);
}

static bool purge_loudly(const struct provider *provider, void *start, size_t bytes)
{
    noises++;
    errno = EBUSY;
    return quiet.provider.purge(provider, start, bytes);
}

TEST(frees_keep_errno_whatever_a_provider_does_to_it)
{
    static const size_t sizes[] = {16, 1000, 100 * KIB, MIB, 40 * MIB};
    quiet.provider = fake.provider;
    fake.provider.give = give_loudly;
    fake.provider.purge = purge_loudly;
    options.dirty = options.purge_delay = options.thread_cache = 0;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *block = get(sizes[i]), *other = get(sizes[i]), *third = get(sizes[i]);
        unsigned before = noises;
        errno = 77;
        heap_free(block);
        heap_free_in(heap, other);
        assert_int_equal(errno, 77);
        third = heap_resize(third, 2000);
        assert_non_null(third);
        assert_int_equal(errno, 77);
        heap_free(third);
        assert_int_equal(errno, 77);
        assert_true(noises > before || sizes[i] < MIB);
    }
}

/* ---- Many of them ---- */

/* More heaps than a thread's table has room for. */
TEST(a_thread_may_use_many_heaps)
{
    enum { HEAPS = HEAP_SLOTS + 8 };
    struct heap *many[HEAPS];
    struct heap *first = heap;
    for (size_t i = 0; i < HEAPS; i++)
        assert_non_null(many[i] = heap_create(&(struct heap_settings){0}));
    for (unsigned round = 0; round < 40; round++)
        for (size_t i = 0; i < HEAPS; i++) {
            heap = many[i];
            heap_free(get(32));
        }
    make_cache();
    assert_heap_sound();
    for (size_t i = 0; i < HEAPS; i++)
        heap_destroy(many[i]);
    heap = first;
    assert_heap_sound();
}

/* A large block's heap is looked for: the one that was found last is asked first. */
TEST(large_blocks_find_their_heap_whichever_was_before)
{
    char *buffer = os_map(2 * MIB, OS_PAGES_SMALL);
    struct heap *other =
        heap_create(&(struct heap_settings){.buffer = buffer, .buffer_bytes = 2 * MIB});
    void *first = heap_alloc_in(heap, 300000), *second = heap_alloc_in(other, 300000);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(heap_of(first) == heap);
        assert_true(heap_of(second) == other);
    }
    lock_acquire(&heaps_lock); /* of a heap that is named no other is asked */
    alarm(20);
    heap_free_of(heap, first, page_map_class((uintptr_t)first));
    alarm(0);
    lock_release(&heaps_lock);
    assert_true(heap_of(second) == other);
    assert_true(heap_of(buffer + 2 * MIB - 1) == other); /* no block, but in it */
    heap_destroy(other);
    assert_true(os_unmap(buffer, 2 * MIB)); /* with what was known of the heap */
    assert_true(heap_of(second) == &heap_default);
    second = heap_alloc_in(heap, 300000);
    assert_true(heap_of(second) == heap);
    heap_free(second);
}

/* Uses a heap whose place in the thread's table is that of the one that has no memory. */
static struct heap *near_heap;

static void use_near(void *context, struct heap *lacking, size_t missing)
{
    (void)lacking, (void)missing;
    ++*(unsigned *)context;
    for (unsigned i = 0; i < 100; i++)
        heap_free(heap_alloc_in(near_heap, 48));
}

TEST(a_cache_stays_while_the_programs_function_runs)
{
    struct heap *first = heap, *between[HEAP_SLOTS];
    unsigned calls = 0;
    heap = heap_create(
        &(struct heap_settings){.quota = 4 * MIB, .call_back = use_near, .context = &calls});
    for (size_t i = 0; i < HEAP_SLOTS; i++)
        between[i] = heap_create(&(struct heap_settings){0});
    near_heap = between[HEAP_SLOTS - 1];
    assert_int_equal(near_heap->id % HEAP_SLOTS, heap->id % HEAP_SLOTS);
    struct cache *cache = make_cache();
    while (heap_alloc_in(heap, 100000) != NULL)
        continue;
    assert_true(calls != 0);
    assert_ptr_equal(heap_cache_if_any(heap), cache);
    heap_free(heap_alloc_in(near_heap, 48)); /* now it may go */
    assert_false(cache_exists(heap_cache_if_any(heap)));
    for (size_t i = 0; i < HEAP_SLOTS; i++)
        heap_destroy(between[i]);
    heap_destroy(heap);
    heap = first;
}

static const struct lock *looked_for;
static unsigned times_found;

static void look(struct lock *lock)
{
    times_found += lock == looked_for;
}

static unsigned times_among_locks(const struct heap *of)
{
    looked_for = &of->page_heap.lock;
    times_found = 0;
    heaps_each_lock_of(RANK_PAGE_HEAP, look);
    return times_found;
}

/* What is shared is not copied: its locks are the other process's as well. */
TEST(a_fork_leaves_the_locks_of_shared_memory_alone)
{
    enum { BYTES = 2 * MIB };
    char *shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *own = os_map(BYTES, OS_PAGES_SMALL);
    assert_true(shared != MAP_FAILED && own != NULL);
    struct heap *in_shared =
        heap_create(&(struct heap_settings){.buffer = shared, .buffer_bytes = BYTES});
    struct heap *in_own =
        heap_create(&(struct heap_settings){.buffer = own, .buffer_bytes = BYTES});
    assert_int_equal(times_among_locks(in_shared), 1);
    /* As memory that was paged out: the system tells of what is there only. */
    assert_int_equal(madvise(shared, BYTES, MADV_DONTNEED), 0);
    placed_set_forking(true);
    assert_int_equal(times_among_locks(in_shared), 0);
    assert_int_equal(times_among_locks(in_own), 1);
    placed_set_forking(false);
    assert_int_equal(times_among_locks(in_shared), 1);
    heap_destroy(in_shared);
    heap_destroy(in_own);
    assert_true(os_unmap(shared, BYTES) && os_unmap(own, BYTES));
}

/* The heap has ended, but its addresses are still there: not so what was in them. */
TEST(what_is_not_taken_back_from_a_heap_that_ends_is_purged)
{
    fill();
    size_t purged = fake.purged_bytes;
    fake.refuse_give = true;
    heap_destroy(heap);
    assert_true(fake.bytes != 0 && fake.purged_bytes >= purged + MIB);
    fake.refuse_give = false;
    fake_provider_end(&fake);
    fake_provider_init(&fake);
    heap = NULL;
}

/* All zero, and no more of it each time. */
TEST(a_hardened_heap_uses_again_what_is_not_taken_back)
{
    struct heap *hardened =
        heap_create(&(struct heap_settings){.provider = &fake.provider, .hardened = true});
    size_t bytes = 0;
    fake.refuse_give = true;
    for (unsigned round = 0; round < 20; round++) {
        fake.refuse_purge = round % 2 == 0;
        for (unsigned i = 0; i < 500; i++) {
            unsigned char *block = heap_alloc_in(hardened, 1000);
            assert_non_null(block);
            for (size_t at = 0; at < 1000; at++)
                ASSERT_THAT(block[at] == 0, "round %u: byte %zu is %#x", round, at, block[at]);
            memset(block, 0x5a, 1000);
        }
        if (round == 0)
            bytes = fake.bytes;
        assert_int_equal(fake.bytes, bytes);
        heap_clear(hardened);
    }
    fake.refuse_give = fake.refuse_purge = false;
    heap_destroy(hardened);
    assert_int_equal(fake.bytes, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(every_size_is_of_its_heap, begin, end),
        ROW_WITH(the_fast_paths_serve_a_heap, begin, end),
        ROW_WITH(blocks_are_resized_in_their_heap, begin, end),
        ROW_WITH(clearing_frees_everything_and_nothing_else, begin, end),
        ROW_WITH(clearing_keeps_what_is_soon_wanted_again, begin, end),
        ROW_WITH(clearing_does_not_make_clean_pages_dirty, begin, end),
        ROW_WITH(a_block_of_a_cleared_heap_is_free, begin, end),
        ROW_WITH(destroying_gives_all_back, begin, end),
        ROW_WITH(what_the_provider_will_not_take_back_stays_usable, begin, end),
        ROW_WITH(a_thread_that_ends_gives_its_cache_back, begin, end),
        ROW_WITH(a_cache_does_not_outlive_its_heap, begin, end),
        ROW_WITH(frees_keep_errno_whatever_a_provider_does_to_it, begin, end),
        ROW_WITH(a_thread_may_use_many_heaps, begin, end),
        ROW_WITH(large_blocks_find_their_heap_whichever_was_before, begin, end),
        ROW_WITH(a_cache_stays_while_the_programs_function_runs, begin, end),
        ROW_WITH(a_fork_leaves_the_locks_of_shared_memory_alone, begin, end),
        ROW_WITH(what_is_not_taken_back_from_a_heap_that_ends_is_purged, begin, end),
        ROW_WITH(a_hardened_heap_uses_again_what_is_not_taken_back, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
