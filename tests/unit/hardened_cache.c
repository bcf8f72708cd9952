/*
 * Tests of what nearly every call in a hardened heap does (hard_fast.h): each promise once more,
 * for a thread with a cache, in sizes from 1 byte to the last that goes this way.
 */
#include "heap_support.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hardened/hard_fast.h"
#include "heap/harden.h"
#include "heap/user_heaps.h"
#include "options/options.h"
#include "platform/lock.h"

static const size_t sizes[] = {1, 15, 16, 24, 47, 64, 100, 200, 555, 1000, 1022};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static struct heap *heap;
static struct hard_cache *cache;

static int make_heap(void **state)
{
    (void)state;
    struct heap_settings settings = {.name = "hardened", .hardened = true};
    options.misuse = MISUSE_WARN;
    heap = heap_create(&settings);
    cache = heap == NULL ? NULL : hard_cache_new(heap->hardened);
    return cache == NULL ? -1 : 0;
}

static int end_heap(void **state)
{
    (void)state;
    hard_cache_free(cache);
    heap_destroy(heap);
    options.misuse = MISUSE_ABORT;
    return 0;
}

/* A block, the fast way if it can be. */
static char *take(size_t bytes)
{
    char *block = hard_pop(cache, bytes, bytes < OBJECT_LONG);
    if (block == NULL)
        block = hard_alloc(heap->hardened, cache, MIN_ALIGN, bytes);
    assert_non_null(block);
    return block;
}

static struct hard_zone *zone_of(const char *block)
{
    return (struct hard_zone *)page_map_entry((uintptr_t)block);
}

static bool is_first(const char *block)
{
    return zone_place(zone_of(block), (uintptr_t)block).number == 0;
}

/* One that is not the first of its slab, nor is the one behind it, and whose neighbours are in use.
 */
static char *take_amid(size_t bytes)
{
    size_t step = bytes / MIN_ALIGN * MIN_ALIGN + MIN_ALIGN;
    for (;;) {
        char *blocks[64];
        for (int i = 0; i < 64; i++)
            blocks[i] = take(bytes);
        for (int i = 0; i < 64; i++)
            for (int j = 0; j < 64; j++)
                if (blocks[j] == blocks[i] - step && !is_first(blocks[i]))
                    return blocks[i];
    }
}

/* Of free. */
static const struct said plain = {.size = SIZE_UNSAID, .maker = MADE_BY_MALLOC};

static enum hard_pushed push(char *block, struct said said)
{
    struct hard_entry entry;
    enum hard_pushed pushed =
        hard_push(cache, zone_of(block), (uintptr_t)block, said, false, &entry);
    if (pushed == HARD_NOT_HERE)
        pushed = hard_push(cache, zone_of(block), (uintptr_t)block, said, true, &entry);
    if (pushed == HARD_PUSHED_TURN || (pushed == HARD_CLAIMED && hard_push_rest(cache, entry)))
        hard_cache_turn(cache);
    return pushed;
}

/* Frees, the fast way if it can be. */
static void give(char *block)
{
    struct misuse misuse;
    if (push(block, plain) == HARD_NOT_PUSHED)
        assert_true(
            hard_free(heap->hardened, cache, zone_of(block), (uintptr_t)block, plain, &misuse));
}

/* That the fast way leaves it alone, and the long one says what it is. */
static void assert_refused(char *block, struct said said, enum misuse_kind kind)
{
    struct misuse misuse;
    assert_int_equal(push(block, said), HARD_NOT_PUSHED);
    assert_false(hard_free(heap->hardened, cache, zone_of(block), (uintptr_t)block, said, &misuse));
    assert_int_equal(misuse.kind, kind);
}

static void test_goes_the_fast_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        give(take_amid(sizes[i]));
        size_t fast = 0;
        for (int turn = 0; turn < 1000; turn++) {
            char *block = hard_pop(cache, sizes[i], sizes[i] < OBJECT_LONG);
            fast += block != NULL;
            block = block != NULL ? block : take(sizes[i]);
            memset(block, 0xff, sizes[i]);
            if (push(block, plain) == HARD_NOT_PUSHED)
                assert_true(is_first(block)), give(block);
        }
        assert_in_range(fast, 800, 1000);
    }
}

static void test_overflow(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++)
        for (int value = 0; value < 2; value++) {
            char *block = take_amid(sizes[i]);
            block[sizes[i]] = (char)(value * 'x'); /* zero, too */
            assert_refused(block, plain, MISUSE_OVERFLOW);
        }
}

static void test_last_byte_of_the_object(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        char *block = take_amid(sizes[i]);
        block[(sizes[i] / MIN_ALIGN + 1) * MIN_ALIGN - 1] = 0;
        assert_refused(block, plain, MISUSE_OVERFLOW);
    }
}

static void test_underflow(void **state)
{
    (void)state;
    NEED(lock_is_alone(), "libc does not tell whether there are other threads");
    for (size_t i = 0; i < SIZES; i++) {
        char *block = take_amid(sizes[i]);
        block[-1] = 0;
        assert_refused(block, plain, MISUSE_UNDERFLOW);
    }
}

static void test_wrong_frees(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        char *block = take_amid(sizes[i]);
        assert_refused(block + 1, plain, MISUSE_INSIDE);
        assert_refused(block, said_size(sizes[i] + 1, MADE_BY_MALLOC), MISUSE_SIZE);
        assert_int_not_equal(push(block, said_size(sizes[i], MADE_BY_MALLOC)), HARD_NOT_PUSHED);
        assert_refused(block, plain, MISUSE_DOUBLE_FREE);
    }
}

static enum maker maker_now(const char *block)
{
    size_t bytes;
    struct misuse misuse = hard_usable((uintptr_t)block, &bytes);
    assert_int_equal(misuse.kind, MISUSE_NONE);
    return misuse.maker;
}

/* Neither way frees a block as another's than its maker's; it keeps its maker when it is resized,
 * and loses it when it is freed. What is before another block is told all the same. */
static void test_makers(void **state)
{
    (void)state;
    hard_makers_all = true;
    for (size_t i = 0; i < SIZES; i++)
        for (int made = MADE_BY_NEW; made <= MADE_BY_NEW_ALIGNED; made++) {
            char *block = take_amid(sizes[i]);
            hard_set_maker(heap->hardened, (uintptr_t)block, (enum maker)made);
            assert_int_equal(maker_now(block), made);
            assert_int_equal(heap_usable(block, "usable"), sizes[i]);
            for (int said = MADE_BY_MALLOC; said <= MADE_BY_NEW_ALIGNED; said++)
                if (said != made)
                    assert_refused(block, said_unsized((enum maker)said), MISUSE_MAKER);
            size_t old, step = (sizes[i] / MIN_ALIGN + 1) * MIN_ALIGN;
            assert_int_equal(hard_resize_fast(zone_of(block), (uintptr_t)block, sizes[i], &old),
                             HARD_NOT_RESIZED);
            assert_true(hard_resize(heap->hardened, (uintptr_t)block, sizes[i]));
            assert_int_equal(maker_now(block), made);
            assert_refused(block, said_size(sizes[i] + 1, (enum maker)made), MISUSE_SIZE);
            char *before = block - step; /* which is in use */
            hard_set_maker(heap->hardened, (uintptr_t)before, MADE_BY_NEW);
            before[sizes[i]] ^= 1;
            if (lock_is_alone())
                assert_refused(block, said_unsized((enum maker)made), MISUSE_UNDERFLOW);
            else
                push(block, said_unsized((enum maker)made));
            assert_refused(before, said_unsized(MADE_BY_NEW), MISUSE_OVERFLOW);
        }
    hard_makers_all = false;
}

/* What malloc made, or what free frees, is judged only if all is. */
static void test_makers_of_cxx(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++)
        for (int made = MADE_BY_MALLOC; made <= MADE_BY_NEW_ALIGNED; made++)
            for (int said = MADE_BY_MALLOC; said <= MADE_BY_NEW_ALIGNED; said++) {
                struct misuse misuse;
                char *block = take(sizes[i]);
                struct hard_zone *zone = zone_of(block);
                hard_set_maker(heap->hardened, (uintptr_t)block, (enum maker)made);
                bool right = made == said || made == MADE_BY_MALLOC || said == MADE_BY_MALLOC;
                assert_int_equal(hard_free(heap->hardened, cache, zone, (uintptr_t)block,
                                           said_unsized((enum maker)said), &misuse),
                                 right);
            }
}

static void test_freed_blocks_are_zero(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        char *block = take_amid(sizes[i]);
        memset(block, 'x', sizes[i]);
        assert_int_not_equal(push(block, plain), HARD_NOT_PUSHED);
        for (size_t at = 0; at < (sizes[i] / MIN_ALIGN + 1) * MIN_ALIGN; at++)
            assert_int_equal(block[at], 0);
    }
}

/* Each byte of an object, in turn, when it is in a magazine: it is not handed out. */
static void test_written_after_free(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++)
        for (size_t at = 0; at <= sizes[i]; at += sizes[i] / 13 + 1) {
            give(take(sizes[i]));
            struct hard_magazine *magazine = &cache->magazines[sizes[i] / MIN_ALIGN + 1];
            if (magazine->count == 0)
                continue;
            char *object = (char *)entry_object(&magazine->entries[magazine->count - 1]);
            object[at] = 1;
            assert_null(hard_pop(cache, sizes[i], sizes[i] < OBJECT_LONG));
            stderr_capture();
            assert_ptr_not_equal(take(sizes[i]), object);
            assert_non_null(strstr(stderr_restore(), "snug: use after free"));
            object[at] = 0; /* it is before another */
        }
}

/* An address comes back when about half of what may wait has gone, and what waits is bounded. */
static void test_addresses_wait(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        char *first = take(sizes[i]);
        give(first);
        size_t in_bytes = cache->wait.bytes_most / (sizes[i] + 2 * MIN_ALIGN);
        size_t wait = size_min(options.quarantine_count, in_bytes) / 2;
        for (size_t turn = 0; turn < wait * 3 / 4; turn++) {
            char *block = take(sizes[i]);
            assert_ptr_not_equal(block, first);
            give(block);
            assert_true(cache->wait.count <= options.quarantine_count);
            assert_true(cache->wait.bytes <= cache->wait.bytes_most);
        }
    }
    assert_true(cache->wait.count >= options.quarantine_count / 2 ||
                cache->wait.bytes >= cache->wait.bytes_most / 2);
}

/* The older half of what waits is not in the order in which it came. */
static void test_waits_in_random_order(void **state)
{
    (void)state;
    enum { COUNT = 800 };
    char *blocks[COUNT];
    for (int i = 0; i < COUNT; i++)
        blocks[i] = take(24);
    for (int i = 0; i < COUNT; i++)
        give(blocks[i]);
    size_t in_order = 0, count = cache->wait.old;
    assert_int_equal(cache->wait.count, cache->wait.count_most);
    assert_in_range(count, COUNT / 8, COUNT);
    for (size_t at = 0, last = COUNT; at < count; at++)
        for (size_t i = 0; i < COUNT; i++)
            if ((char *)entry_object(wait_at(&cache->wait, (uint32_t)at)) == blocks[i]) {
                in_order += i == last + 1;
                last = i;
                break;
            }
    assert_in_range(in_order, 0, count / 2);
}

/* When an address comes back is random: that of one is seldom that of another. */
static void test_waits_differ(void **state)
{
    (void)state;
    enum { ROUNDS = 64, MOST = 4096 };
    size_t same = 0, last = 0;
    for (int round = 0; round < ROUNDS; round++) {
        char *first = take(24);
        give(first);
        size_t frees = 0;
        for (char *block = NULL; block != first && frees < MOST; frees++) {
            block = take(24);
            give(block);
        }
        same += frees == last;
        last = frees;
    }
    assert_in_range(same, 0, ROUNDS / 8);
}

/* What waits is looked at while there are other threads, too: in the thread's quarantine, its
 * magazines, and the quarantine of all. */
static void test_check_finds_what_waits(void **state)
{
    (void)state;
    enum { COUNT = 400, LONG = 20000 };
    struct misuse misuse;
    char *blocks[COUNT];
    for (int i = 0; i < COUNT; i++)
        blocks[i] = take(100);
    for (int i = 0; i < COUNT; i++)
        give(blocks[i]);
    char *in_magazine = (char *)entry_object(&cache->magazines[100 / MIN_ALIGN + 1].entries[0]);
    char *young = blocks[COUNT - 1], *old = (char *)entry_object(wait_at(&cache->wait, 0));
    char *shared = hard_alloc(heap->hardened, cache, MIN_ALIGN, LONG);
    assert_true(
        hard_free(heap->hardened, cache, zone_of(shared), (uintptr_t)shared, plain, &misuse));
    assert_true(hard_check_waiting(heap->hardened, cache, &misuse));
    char *all[] = {in_magazine, young, old, shared};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        all[i][17] = 1;
        assert_false(hard_check_waiting(heap->hardened, cache, &misuse));
        assert_int_equal(misuse.kind, MISUSE_WRITTEN);
        assert_ptr_equal((char *)misuse.address, all[i]);
        all[i][17] = 0;
    }
}

/* From each size to each other of its class: what stays, what is new, and the canary behind it. */
static void test_resize(void **state)
{
    (void)state;
    for (size_t bytes = 1; bytes < HARD_FAST_MOST - 1; bytes += bytes < 50 ? 1 : 37)
        for (size_t other = align_down(bytes, MIN_ALIGN) + (bytes < MIN_ALIGN);
             other < align_down(bytes, MIN_ALIGN) + MIN_ALIGN; other++) {
            char *block = take(bytes);
            size_t old = 0;
            memset(block, 7, bytes);
            assert_int_equal(hard_resize_fast(zone_of(block), (uintptr_t)block, other, &old),
                             HARD_RESIZED);
            for (size_t at = 0; at < other; at++)
                assert_int_equal(block[at], at < bytes ? 7 : 0);
            assert_int_equal(heap_usable(block, "usable"), other);
            char kept = block[other];
            block[other] = 0;
            assert_int_equal(hard_resize_fast(zone_of(block), (uintptr_t)block, bytes, &old),
                             HARD_NOT_RESIZED);
            assert_int_equal(push(block, plain), HARD_NOT_PUSHED);
            block[other] = kept;
            assert_true(push(block, said_size(other, MADE_BY_MALLOC)) >= HARD_PUSHED);
            assert_int_equal(hard_resize_fast(zone_of(block), (uintptr_t)block, bytes, &old),
                             HARD_NOT_RESIZED);
        }
}

/* To another class it moves; a pointer into a block is none. */
static void test_resize_moves(void **state)
{
    (void)state;
    size_t old = 0;
    char *block = take(100);
    assert_int_equal(hard_resize_fast(zone_of(block), (uintptr_t)block, 95, &old), HARD_MOVES);
    assert_int_equal(old, 100);
    assert_int_equal(hard_resize_fast(zone_of(block), (uintptr_t)block, 112, &old), HARD_MOVES);
    assert_int_equal(hard_resize_fast(zone_of(block), (uintptr_t)block, 1000, &old), HARD_MOVES);
    assert_int_equal(hard_resize_fast(zone_of(block), (uintptr_t)block + 16, 100, &old),
                     HARD_NOT_RESIZED);
    assert_true(push(block, said_size(100, MADE_BY_MALLOC)) >= HARD_PUSHED);
}

/* ---- Caches of heaps of the program's own ---- */

static size_t in_caches(const struct heap *of)
{
    struct hard_totals totals = hard_totals_of(NULL, of->hardened);
    return totals.cached + totals.waiting;
}

static void *use_heap(void *argument)
{
    struct heap *used = argument;
    for (size_t i = 0; i < 20 * CALLS_BEFORE_CACHE; i++)
        heap_free(heap_alloc_in(used, sizes[i % SIZES]));
    return in_caches(used) > 0 && heap_hard_cache_if_any(used) != NULL ? used : NULL;
}

/* A thread gets one, which is as sound as malloc's; it goes with the thread. */
static void test_other_heaps_have_caches(void **state)
{
    (void)state;
    pthread_t thread;
    void *had;
    assert_null(heap_hard_cache_if_any(heap));
    assert_ptr_equal(use_heap(heap), heap);
    size_t own = in_caches(heap);
    assert_int_equal(pthread_create(&thread, NULL, use_heap, heap), 0);
    assert_int_equal(pthread_join(thread, &had), 0);
    assert_ptr_equal(had, heap);
    assert_int_equal(hard_totals_of(NULL, heap->hardened).live_count, 0);
    heap_trim_of(heap, 0);
    assert_int_equal(in_caches(heap), 0);
    assert_true(own > 0);
    char *block = heap_alloc_in(heap, 100);
    block[100] = 0;
    stderr_capture();
    heap_free(block);
    assert_non_null(strstr(stderr_restore(), "snug: overflow"));
}

/* What waits in it is forgotten when the heap is cleared, and nothing of it is another heap's. */
static void test_caches_end_with_their_heaps(void **state)
{
    (void)state;
    struct heap_settings settings = {.name = "other", .hardened = true};
    for (int round = 0; round < 20; round++) {
        struct heap *other = heap_create(&settings);
        assert_null(heap_hard_cache_if_any(other));
        assert_int_equal(in_caches(other), 0);
        assert_ptr_equal(use_heap(other), other);
        heap_clear(other);
        assert_int_equal(in_caches(other), 0);
        assert_ptr_equal(use_heap(other), other);
        assert_null(heap_check_of(other));
        heap_destroy(other);
    }
}

/* More heaps than a thread's table has places: the caches that have to go leave nothing behind. */
static void test_many_heaps(void **state)
{
    (void)state;
    struct heap_settings settings = {.name = "other", .hardened = true};
    struct heap *others[2 * HEAP_SLOTS];
    for (size_t i = 0; i < 2 * HEAP_SLOTS; i++) {
        others[i] = heap_create(&settings);
        assert_ptr_equal(use_heap(others[i]), others[i]);
    }
    for (size_t i = 0; i < 2 * HEAP_SLOTS; i++) {
        struct hard_totals totals = hard_totals_of(NULL, others[i]->hardened);
        assert_true((totals.cached == 0) == (i < HEAP_SLOTS));
        assert_int_equal(totals.live_count, 0);
        heap_destroy(others[i]);
    }
}

/* A thread holds a sixteenth of a quota at most, whatever it does; and that serves it. */
static void test_caches_keep_to_a_quota(void **state)
{
    (void)state;
    static void *blocks[100];
    for (size_t quota = 512 * KIB; quota <= 16 * MIB; quota *= 2) {
        struct heap_settings settings = {.name = "small", .hardened = true, .quota = quota};
        struct heap *small = heap_create(&settings);
        for (size_t round = 0; round < 40; round++) {
            size_t bytes = 24 + 56 * (round % 4), count = 0;
            for (; count < 100 && (blocks[count] = heap_alloc_in(small, bytes)) != NULL; count++)
                ;
            assert_true(count > 0);
            while (count != 0)
                heap_free(blocks[--count]);
            const struct hard_cache *own = heap_hard_cache_if_any(small);
            assert_non_null(own);
            size_t held = own->wait.bytes, most = own->wait.bytes_most + own->room;
            for (size_t class = 1; class < HARD_KEPT; class++) {
                held += own->magazines[class].count * hard_class_bytes(class);
                most += own->magazines[class].most * hard_class_bytes(class);
            }
            assert_in_range(held, 1, quota / ONE_OF_MANY);
            assert_in_range(most, held, quota / ONE_OF_MANY);
            assert_true(own->magazines[hard_class_of(24 + 1)].most != 0);
        }
        assert_null(heap_check_of(small));
        heap_destroy(small);
    }
}

/* More threads than have parts share what caches may hold: no part is more than its share. */
static void test_many_caches_share(void **state)
{
    (void)state;
    enum { MANY = 64 };
    struct heap_settings settings = {.name = "small", .hardened = true, .quota = MIB};
    struct heap *small = heap_create(&settings);
    struct hard_cache *caches[MANY];
    for (size_t i = 0; i < MANY; i++) {
        caches[i] = hard_cache_new(small->hardened);
        size_t share = MIB / size_max(ONE_OF_MANY, i + 1);
        assert_in_range(caches[i]->room + caches[i]->wait.bytes_most, share / 2, share);
    }
    for (size_t i = 0; i < MANY; i++)
        hard_cache_free(caches[i]);
    heap_destroy(small);
}

/* Malloc's heap has no quota: what a thread holds of it grows with what it does, up to what the
 * table says. */
static void test_caches_of_malloc(void **state)
{
    (void)state;
    enum { LIVE = 300 };
    static void *blocks[LIVE];
    NEED(heap_default.hardened != NULL, "SNUG_PRESET=hardened is not set");
    for (size_t i = 0; i < 2 * CALLS_BEFORE_CACHE; i++)
        heap_free(heap_alloc_in(&heap_default, 1));
    const struct hard_cache *own = hard_cache_self;
    assert_ptr_equal(own->home, heap_default.hardened);
    assert_in_range(own->room, options.thread_cache / 2 - KIB, options.thread_cache / 2);
    for (size_t class = 3; class < HARD_KEPT; class++) {
        heap_free(heap_alloc_in(&heap_default, hard_class_bytes(class) - 1));
        assert_int_equal(own->magazines[class].most, 2);
        assert_int_equal(own->magazines[class].count, 0); /* one was taken, and waits */
    }
    for (size_t class = 3; class < HARD_KEPT; class++) {
        for (size_t i = 0; i < LIVE; i++)
            blocks[i] = heap_alloc_in(&heap_default, hard_class_bytes(class) - 1);
        for (size_t i = 0; i < LIVE; i++)
            heap_free(blocks[i]);
        assert_int_equal(own->magazines[class].most, hard_classes[class].magazine);
    }
    assert_int_equal(own->wait.bytes_most, options.quarantine / ONE_OF_MANY);
}

static void test_order_is_random(void **state)
{
    (void)state;
    enum { COUNT = 120 };
    char *last = take(24);
    int beside = 0;
    for (int i = 0; i < COUNT; i++) {
        char *block = take(24);
        beside += block == last + 32 || block == last - 32;
        last = block;
    }
    assert_in_range(beside, 0, COUNT / 4);
}

/* ---- Secrets ---- */

/* All random states of a heap: the quarantines', the zones', the large blocks', and the bins'. */
enum { STATES = 4 + HARD_CLASSES - 1 };

static void states_read(uint64_t states[STATES])
{
    struct hardened *hardened = heap->hardened;
    states[0] = hardened->wait.random;
    states[1] = cache->wait.random;
    states[2] = hardened->zones.random;
    states[3] = hardened->large.random;
    for (size_t class = 1; class < HARD_CLASSES; class++)
        states[3 + class] = hardened->bins[class].random;
}

static void assert_all_differ(const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(words[i] != words[j]);
}

/* Who learns one of them has no other. */
static void test_secrets_are_drawn_apart(void **state)
{
    (void)state;
    uint64_t states[STATES + 3];
    states_read(states);
    states[STATES] = canary_secret.mask | 1;
    states[STATES + 1] = canary_secret.factor;
    states[STATES + 2] = page_map.key | 1;
    assert_all_differ(states, STATES + 3);
}

/* Reads the states of the heap in a child of fork. */
static void states_of_child(uint64_t states[STATES])
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    heap_fork_before(); /* nobody calls these handlers here otherwise */
    pid_t child = fork();
    if (child == 0) {
        heap_fork_in_child();
        states_read(states);
        ssize_t size = (ssize_t)(STATES * sizeof(uint64_t));
        _exit(write(ends[1], states, (size_t)size) == size ? 0 : 1);
    }
    heap_fork_in_parent();
    close(ends[1]);
    assert_int_equal(read(ends[0], states, STATES * sizeof(uint64_t)), STATES * sizeof(uint64_t));
    close(ends[0]);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_children_draw_otherwise(void **state)
{
    (void)state;
    uint64_t states[3 * STATES];
    states_read(states);
    states_of_child(states + STATES);
    states_of_child(states + (size_t)2 * STATES);
    assert_all_differ(states, (size_t)3 * STATES);
}

int main(void)
{
#define ON_HEAP(name) cmocka_unit_test_setup_teardown(name, make_heap, end_heap)
    const struct CMUnitTest tests[] = {
        ON_HEAP(test_goes_the_fast_way),
        ON_HEAP(test_overflow),
        ON_HEAP(test_last_byte_of_the_object),
        ON_HEAP(test_underflow),
        ON_HEAP(test_wrong_frees),
        ON_HEAP(test_makers),
        ON_HEAP(test_makers_of_cxx),
        ON_HEAP(test_freed_blocks_are_zero),
        ON_HEAP(test_written_after_free),
        ON_HEAP(test_addresses_wait),
        ON_HEAP(test_waits_in_random_order),
        ON_HEAP(test_waits_differ),
        ON_HEAP(test_check_finds_what_waits),
        ON_HEAP(test_resize),
        ON_HEAP(test_other_heaps_have_caches),
        ON_HEAP(test_caches_end_with_their_heaps),
        ON_HEAP(test_many_heaps),
        ON_HEAP(test_caches_keep_to_a_quota),
        ON_HEAP(test_many_caches_share),
        ON_HEAP(test_caches_of_malloc),
        ON_HEAP(test_resize_moves),
        ON_HEAP(test_order_is_random),
        ON_HEAP(test_secrets_are_drawn_apart),
        ON_HEAP(test_children_draw_otherwise),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
