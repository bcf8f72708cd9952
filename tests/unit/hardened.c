/*
 * Tests of hardened heaps: each policy on its own, on heaps made for it, in sizes of slabs with
 * many objects, with few, with one, and with a mapping of its own.
 */
#include "heap_support.h"

#include <string.h>

#include "hardened/hardened.h"
#include "heap/harden.h"
#include "heap/user_heaps.h"
#include "options/options.h"
#include "platform/lock.h"
#include "platform/look.h"

static const size_t sizes[] = {1, 24, 40, 200, 1000, 3000, 20000, 100000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
static const size_t large = 300000;

static struct heap *heap;

static int make_heap(void **state)
{
    (void)state;
    struct heap_settings settings = {.name = "hardened", .hardened = true};
    options.misuse = MISUSE_WARN;
    options.thread_cache = 0; /* what caches do is tested apart */
    heap = heap_create(&settings);
    return heap == NULL ? -1 : 0;
}

static int end_heap(void **state)
{
    (void)state;
    heap_destroy(heap);
    options.misuse = MISUSE_ABORT;
    return 0;
}

/* Frees what is there and expects one line with these words. */
static void assert_free_says(char *block, const char *words)
{
    stderr_capture();
    heap_free(block);
    const char *said = stderr_restore();
    if (strstr(said, words) == NULL)
        fail_msg("freeing said '%s' instead of '%s'", said, words);
}

static void assert_free_is_silent(char *block)
{
    stderr_capture();
    heap_free(block);
    assert_string_equal(stderr_restore(), "");
}

static void test_overflow_by_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++)
        for (int value = 0; value < 2; value++) {
            char *block = heap_alloc_in(heap, sizes[i]);
            memset(block, 7, sizes[i]);
            /* Another byte than stands there, or zero, which never does. */
            block[sizes[i]] = value == 0 ? 0 : (char)(block[sizes[i]] ^ 'x');
            assert_free_says(block, "snug: overflow");
        }
    char *block = heap_alloc_in(heap, large);
    block[large] = 0;
    assert_free_says(block, "snug: overflow");
}

/* Whether a guard, or what is of nobody's, lies before a block. */
static bool is_behind_a_guard(const char *block)
{
    const struct hard_zone *zone = (const struct hard_zone *)page_map_entry((uintptr_t)block);
    struct hard_place place = zone_place(zone, (uintptr_t)block);
    return place.number == 0 && (place.slab == 0 || zone->slabs[place.slab - 1].kind == SLAB_GUARD);
}

static void test_underflow(void **state)
{
    (void)state;
    NEED(lock_is_alone(), "libc does not tell whether there are other threads");
    for (size_t i = 0; i < SIZES; i++) {
        char *block;
        do
            block = heap_alloc_in(heap, sizes[i]);
        while (is_behind_a_guard(block));
        block[-1] = 7;
        assert_free_says(block, "snug: underflow");
        block[-1] = 0; /* what is before it may be free */
    }
}

static void test_blocks_have_their_bytes_and_no_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        char *block = heap_alloc_in(heap, sizes[i]);
        assert_int_equal(heap_usable(block, "usable"), sizes[i]);
        for (size_t at = 0; at < sizes[i]; at++)
            assert_int_equal(block[at], 0);
        memset(block, 0xff, sizes[i]);
        assert_free_is_silent(block);
    }
}

static void test_free_is_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i <= SIZES; i++) {
        size_t bytes = i < SIZES ? sizes[i] : large;
        char *block = heap_alloc_in(heap, bytes);
        if (bytes > 16 && i < SIZES)
            assert_free_says(block + 16, "is inside");
        assert_free_is_silent(block);
        assert_free_says(block, "snug: double free");
    }
}

static void test_sizes_that_are_said(void **state)
{
    (void)state;
    for (size_t i = 0; i <= SIZES; i++) {
        size_t bytes = i < SIZES ? sizes[i] : large;
        char *block = heap_alloc_in(heap, bytes);
        stderr_capture();
        heap_free_hardened(heap, block, said_size(bytes + 1, MADE_BY_MALLOC));
        assert_non_null(strstr(stderr_restore(), ", not one of"));
        stderr_capture();
        heap_free_hardened(heap, block, said_size(bytes, MADE_BY_MALLOC));
        assert_string_equal(stderr_restore(), "");
    }
}

/* A write after free is found when quarantine is emptied. */
static void test_written_after_free(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        char *block = heap_alloc_in(heap, sizes[i]);
        heap_free(block);
        block[sizes[i] / 2] = 1;
        stderr_capture();
        heap_trim_of(heap, 0);
        assert_non_null(strstr(stderr_restore(), "snug: use after free"));
    }
}

/* Whether a zone's last object is looked at from behind: a guard is not, nor is an object that was
 * never handed out if its pages are its own, as the look would make one of them present. */
static bool last_is_looked_at(const struct hard_zone *zone)
{
    uint32_t slabs = zone->slabs_count;
    if (zone->slabs[slabs - 1].kind == SLAB_GUARD)
        return false;
    const struct hard_class *row = zone->row;
    bool is_new = zone->states[slabs * row->per_slab - 1] == STATE_NEW;
    return !is_new || row->bytes <= PAGE_BYTES;
}

/* The first of a zone's first slab has the end of another zone before it, or what is nobody's yet.
 */
static void test_underflow_of_a_zone(void **state)
{
    (void)state;
    NEED(lock_is_alone(), "libc does not tell whether there are other threads");
    enum { FEWEST = 4200, MOST = 15000, STEP = 900, OBJECTS = 15 };
    size_t found = 0;
    for (size_t bytes = FEWEST; bytes < MOST; bytes += STEP)
        for (size_t i = 0; i < OBJECTS; i++) {
            char *block = heap_alloc_in(heap, bytes);
            const struct hard_zone *zone =
                (const struct hard_zone *)page_map_entry((uintptr_t)block);
            struct hard_place place = zone_place(zone, (uintptr_t)block);
            if (place.number != 0 || place.slab != 0 || !zone->follows)
                continue;
            const struct hard_zone *before =
                (const struct hard_zone *)page_map_entry((uintptr_t)block - 1);
            if (before != NULL && !last_is_looked_at(before))
                continue;
            char kept = block[-9];
            block[-9] = (char)(kept + 1);
            assert_free_says(block, "snug: underflow");
            block[-9] = kept;
            found++;
        }
    assert_in_range(found, 1, MOST / STEP * OBJECTS);
}

/* Memory of freed blocks that went back to the system is looked at before it serves again, and by a
 * check: of sizes that a page holds, and of longer ones, which only who writes makes present. */
static void test_written_after_trim(void **state)
{
    (void)state;
    static const size_t trimmed[] = {3000, 5000, 12000, 20000, 100000};
    enum { TAKEN = 64 };
    static char *blocks[TAKEN];
    for (size_t i = 0; i < sizeof(trimmed) / sizeof(trimmed[0]); i++) {
        char *block = heap_alloc_in(heap, trimmed[i]);
        heap_free(block);
        heap_trim_of(heap, 0);
        assert_null(heap_check_of(heap));
        block[trimmed[i] / 2] = 1;
        assert_non_null(strstr(heap_check_of(heap), "after it was freed"));
        stderr_capture();
        for (size_t taken = 0; taken < TAKEN; taken++)
            blocks[taken] = heap_alloc_in(heap, trimmed[i]);
        assert_non_null(strstr(stderr_restore(), "snug: use after free"));
        block[trimmed[i] / 2] = 0; /* nobody gets it any more */
        for (size_t taken = 0; taken < TAKEN; taken++) {
            assert_ptr_not_equal(blocks[taken], block);
            assert_free_is_silent(blocks[taken]);
        }
    }
}

/* A write after free is found when the block is to be handed out again, which it is not: of so many
 * that are taken it would be one, since no slab is opened while there are free objects. */
enum { HELD = 1024 };

/* Of what may wait, so many times later there is hardly one of 10^12 that still does. */
enum { WAITS_LONG = 16 };

static void test_written_is_not_handed_out(void **state)
{
    (void)state;
    static char *held[HELD];
    for (size_t i = 0; i < SIZES; i++) {
        heap_trim_of(heap, 0);
        char *block = heap_alloc_in(heap, sizes[i]);
        heap_free(block);
        block[sizes[i] - 1] = 1;
        bool again = false;
        stderr_capture();
        for (size_t turn = 0; turn < WAITS_LONG * options.quarantine_count; turn++)
            heap_free(heap_alloc_in(heap, sizes[i]));
        for (size_t taken = 0; taken < HELD; taken++) {
            held[taken] = heap_alloc_in(heap, sizes[i]);
            again = again || held[taken] == block;
        }
        for (size_t taken = 0; taken < HELD; taken++)
            heap_free(held[taken]);
        assert_non_null(strstr(stderr_restore(), "snug: use after free"));
        assert_false(again);
    }
}

static void test_freed_blocks_are_zero(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        char *block = heap_alloc_in(heap, sizes[i]);
        memset(block, 'x', sizes[i]);
        heap_free(block);
        for (size_t at = 0; at < sizes[i]; at++)
            assert_int_equal(block[at], 0);
    }
}

/* How many frees it takes until an address comes back. */
static void test_addresses_wait(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        heap_trim_of(heap, 0);
        char *first = heap_alloc_in(heap, sizes[i]);
        heap_free(first);
        size_t wait = size_min(options.quarantine_count, options.quarantine / (sizes[i] + 4096));
        for (size_t turn = 0; turn < wait / 2; turn++) {
            char *block = heap_alloc_in(heap, sizes[i]);
            assert_ptr_not_equal(block, first);
            heap_free(block);
        }
    }
    char *first = heap_alloc_in(heap, large), *next;
    heap_free(first);
    next = heap_alloc_in(heap, large / 2);
    assert_ptr_not_equal(next, first);
    heap_free(next);
}

static void test_quarantine_is_bounded(void **state)
{
    (void)state;
    for (int i = 0; i < 4000; i++)
        heap_free(heap_alloc_in(heap, sizes[i % SIZES]));
    assert_true(heap->hardened->wait.count <= options.quarantine_count);
    assert_true(heap->hardened->wait.bytes <= options.quarantine);
    assert_true(hard_totals_of(NULL, heap->hardened).waiting >= options.quarantine / 2);
    heap_trim_of(heap, 0);
    assert_int_equal(hard_totals_of(NULL, heap->hardened).waiting, 0);
}

static void test_order_is_random(void **state)
{
    (void)state;
    enum { COUNT = 64 };
    char *blocks[COUNT];
    int up = 0;
    for (int i = 0; i < COUNT; i++)
        blocks[i] = heap_alloc_in(heap, 24);
    for (int i = 1; i < COUNT; i++)
        up += blocks[i] == blocks[i - 1] + 32;
    assert_in_range(up, 0, COUNT / 4);
    for (int i = 0; i < COUNT; i++)
        heap_free(blocks[i]);
}

/* No page ever has objects of two classes. */
static void test_classes_keep_their_addresses(void **state)
{
    (void)state;
    char *small = heap_alloc_in(heap, 24);
    uintptr_t page = (uintptr_t)small / PAGE_BYTES;
    heap_free(small);
    heap_trim_of(heap, 0);
    for (int i = 0; i < 3000; i++) {
        char *block = heap_alloc_in(heap, 40 + (size_t)i % 900);
        assert_true((uintptr_t)block / PAGE_BYTES != page);
    }
    heap_clear(heap);
}

static void test_guards(void **state)
{
    (void)state;
    size_t guards = 0, open = 0;
    for (int i = 0; i < 2000; i++)
        assert_non_null(heap_alloc_in(heap, 900));
    for (struct hard_zone *zone = heap->hardened->bins[hard_class_of(901)].zones; zone != NULL;
         zone = zone->next)
        for (size_t i = 0; i < zone->slabs_count; i++) {
            guards += i != 0 && zone->slabs[i].kind == SLAB_GUARD; /* the first is the zone's own */
            open += zone->slabs[i].kind == SLAB_OPEN;
        }
    assert_in_range(guards, open / options.guards / 4, open / options.guards * 4);
    heap_clear(heap);
}

/* A long block that is hardly written is not made present by its free, nor by who takes it again.
 */
static void test_pages_stay_away(void **state)
{
    (void)state;
    NEED_SMALL_PAGES;
    enum { BYTES = 100000, TOUCHED = 50000 };
    for (int turn = 0; turn < 1000; turn++) {
        char *block = heap_alloc_in(heap, BYTES);
        assert_in_range(os_resident_bytes(block, align_down(BYTES, PAGE_BYTES)), 0, BYTES / 4);
        assert_int_equal(block[TOUCHED], 0);
        block[TOUCHED] = 1;
        assert_free_is_silent(block);
    }
}

/* Of blocks that no thread keeps, the one that came back last is the next, since it is in the
 * processor's caches. */
static void test_last_is_next(void **state)
{
    (void)state;
    enum { COUNT = 24 };
    size_t count = options.quarantine_count;
    options.quarantine_count = 0;
    struct heap_settings settings = {.name = "last", .hardened = true};
    struct heap *other = heap_create(&settings);
    options.quarantine_count = count;
    assert_non_null(other);
    for (size_t bytes = 6000; bytes <= 10000; bytes += 4000) {
        char *blocks[COUNT];
        for (int i = 0; i < COUNT; i++)
            blocks[i] = heap_alloc_in(other, bytes);
        for (int i = 0; i < COUNT; i += 2) /* so that no slab is full */
            assert_free_is_silent(blocks[i]);
        for (int i = 1; i < COUNT; i += 2) {
            assert_free_is_silent(blocks[i]);
            assert_ptr_equal(heap_alloc_in(other, bytes), blocks[i]);
        }
    }
    heap_destroy(other);
}

/* One that is written in full goes back as it is freed. */
static void test_pages_go_back(void **state)
{
    (void)state;
    NEED_SMALL_PAGES;
    enum { BYTES = 100000 };
    char *block = heap_alloc_in(heap, BYTES);
    memset(block, 1, BYTES);
    assert_free_is_silent(block);
    assert_in_range(os_resident_bytes(block, align_down(BYTES, PAGE_BYTES)), 0, BYTES / 4);
}

/* Addresses of large blocks wait, unreachable, and come back zero and with their guards. */
static void test_large_blocks_come_back(void **state)
{
    (void)state;
    enum { FREES = 4 * LARGE_WAIT };
    char *freed[FREES];
    size_t again = 0;
    for (size_t i = 0; i < FREES; i++) {
        size_t bytes = large - i % 100;
        char *block = heap_alloc_in(heap, bytes);
        for (size_t ago = 1; ago <= i; ago++)
            if (freed[i - ago] == block) {
                assert_true(ago >= LARGE_WAIT_LEAST);
                again++;
                break;
            }
        for (size_t at = 0; at < bytes; at += 1000)
            assert_int_equal(block[at], 0);
        assert_int_equal(heap_usable(block, "usable"), bytes);
        memset(block, 1, bytes);
        assert_false(os_is_readable((uintptr_t)block - MIN_ALIGN));
        assert_false(os_is_readable(align_up((uintptr_t)block + large, os_page_size())));
        assert_free_is_silent(block);
        assert_false(os_is_readable((uintptr_t)block));
        assert_false(os_is_readable((uintptr_t)block + large / 2));
        freed[i] = block;
    }
    assert_in_range(again, FREES / 4, FREES);
}

/* Those of one length that is asked for again and again are taken from the system no more, and what
 * waits of them has a page at each end at most. */
static void test_large_blocks_stay_mapped(void **state)
{
    (void)state;
    enum { FREES = 2 * LARGE_WAIT };
    uint64_t before = 0;
    for (size_t i = 0; i < 2 * FREES; i++) {
        if (i == FREES)
            before = os_calls.mmap_calls + os_calls.munmap_calls;
        char *block = heap_alloc_in(heap, large);
        memset(block, 1, large);
        assert_free_is_silent(block);
        size_t stays = os_resident_bytes(block, align_down(large, os_page_size()));
        assert_in_range(stays, 0, os_page_size());
    }
    assert_int_equal(os_calls.mmap_calls + os_calls.munmap_calls, before);
}

/* Addresses serve shorter blocks, too, with nothing behind these that can be reached. */
static void test_large_blocks_of_many_lengths(void **state)
{
    (void)state;
    enum { FREES = 10 * LARGE_WAIT };
    static const char zeros[2 * 300000];
    uint64_t before = os_calls.mmap_calls;
    for (size_t i = 0; i < FREES; i++) {
        size_t bytes = large + i * 7919 % large;
        char *block = heap_alloc_in(heap, bytes);
        assert_memory_equal(block, zeros, bytes);
        assert_false(os_is_readable((uintptr_t)block - MIN_ALIGN));
        assert_false(os_is_readable(align_up((uintptr_t)block + bytes + 1, os_page_size())));
        memset(block, 1, bytes);
        assert_free_is_silent(block);
        assert_false(os_is_readable((uintptr_t)block));
        assert_false(os_is_readable(align_down((uintptr_t)block + bytes - 1, MIN_ALIGN)));
    }
    assert_in_range(os_calls.mmap_calls - before, 1, FREES / 5);
    assert_null(heap_check_of(heap));
}

/* Slabs of which nothing is in use stay up to a part of those in use, or what SNUG_DIRTY says, and
 * are zero either way. */
static void test_whole_slabs_go(void **state)
{
    (void)state;
    enum { COUNT = 20000, BYTES = 1000 };
    static char *blocks[COUNT];
    const struct hard_zones *zones = &heap->hardened->zones;
    for (int i = 0; i < COUNT; i++)
        memset(blocks[i] = heap_alloc_in(heap, BYTES), 1, BYTES);
    assert_int_equal(zones->whole, 0);
    for (int i = 0; i < COUNT; i++)
        heap_free(blocks[i]);
    size_t used = zones->present - zones->whole; /* by what waits to be free */
    assert_in_range(used, 0, zones->mapped / 2);
    assert_in_range(zones->whole, options.dirty / 2, size_max(options.dirty, used / 4));
    heap_trim_of(heap, 0);
    assert_int_equal(zones->whole, 0);
    assert_null(heap_check_of(heap));
}

static void test_check_finds(void **state)
{
    (void)state;
    NEED(lock_is_alone(), "libc does not tell whether there are other threads");
    for (size_t i = 0; i <= SIZES; i++) {
        size_t bytes = i < SIZES ? sizes[i] : large;
        char *block = heap_alloc_in(heap, bytes), kept = block[bytes];
        assert_null(heap_check_of(heap));
        block[bytes] = (char)(kept + 1);
        assert_non_null(strstr(heap_check_of(heap), "behind its end"));
        block[bytes] = kept;
        assert_null(heap_check_of(heap));
        heap_free(block);
        if (i == SIZES)
            break; /* nobody can write to it any more */
        block[0] = 1;
        assert_non_null(strstr(heap_check_of(heap), "after it was freed"));
        block[0] = 0;
    }
}

static void test_resize(void **state)
{
    (void)state;
    char *block = heap_alloc_in(heap, 1);
    block[0] = 'a';
    for (size_t bytes = 2; bytes < 400000; bytes += bytes / 7 + 1) {
        block = heap_resize(block, bytes);
        assert_int_equal(heap_usable(block, "usable"), bytes);
        assert_int_equal(block[0], 'a');
        block[bytes - 1] = 'a';
        assert_null(heap_check_of(heap));
    }
    for (size_t bytes = 350000; bytes > 3; bytes -= bytes / 5 + 1) {
        block = heap_resize(block, bytes);
        assert_int_equal(heap_usable(block, "usable"), bytes);
        assert_null(heap_check_of(heap));
    }
    assert_free_is_silent(block);
}

/* A block that is read in by a page at a time. */
static void test_what_grows_by_little_moves_seldom(void **state)
{
    (void)state;
    size_t page = os_page_size(), bytes = large, moves = 0;
    char *block = heap_alloc_in(heap, bytes);
    memset(block, 7, bytes);
    for (; bytes < 20 * large; bytes += page) {
        char *grown = heap_resize(block, bytes + page);
        moves += grown != block;
        block = grown;
        assert_int_equal(block[bytes - 1], 7);
        memset(block + bytes, 7, page);
        assert_false(os_is_readable(align_up((uintptr_t)block + bytes + page + 1, page)));
        assert_null(heap_check_of(heap));
    }
    assert_in_range(moves, 2, 40); /* by an eighth each time */
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(block[i], 7);
    block[bytes] ^= 7; /* another byte than stood there, whatever the secret is */
    assert_free_says(block, "snug: overflow");
}

static void test_alignment(void **state)
{
    (void)state;
    for (size_t alignment = 16; alignment <= MIB; alignment *= 2)
        for (size_t i = 0; i < SIZES; i++) {
            char *block = heap_alloc_aligned_in(heap, alignment, sizes[i]);
            assert_int_equal((uintptr_t)block % alignment, 0);
            assert_int_equal(heap_usable(block, "usable"), sizes[i]);
            assert_free_is_silent(block);
        }
}

/* What a thread had that a child of fork has not: all of it comes back to the bins, and is sound.
 */
static void test_orphans_come_back(void **state)
{
    (void)state;
    struct hardened *hardened = heap->hardened;
    hardened->held_most = MIB;
    struct hard_cache *cache = hard_cache_new(hardened);
    for (int i = 0; i < 300; i++) {
        void *block = hard_alloc(hardened, cache, MIN_ALIGN, sizes[i % 4]);
        struct hard_zone *zone = (struct hard_zone *)page_map_entry((uintptr_t)block);
        struct misuse misuse;
        assert_true(hard_free(hardened, cache, zone, (uintptr_t)block, said_unsized(MADE_BY_MALLOC),
                              &misuse));
    }
    *(char *)entry_object(wait_at(&cache->wait, 0)) = 1; /* as if it was still being cleared */
    assert_true(hard_totals_of(NULL, hardened).cached > 0);
    assert_true(hard_totals_of(NULL, hardened).waiting > 0);
    hard_forked(hardened, NULL);
    assert_non_null(hard_alloc(hardened, NULL, MIN_ALIGN, 24));
    struct hard_totals totals = hard_totals_of(NULL, hardened);
    assert_int_equal(totals.cached + totals.waiting, 0);
    assert_int_equal(totals.live_count, 1);
    assert_null(heap_check_of(heap));
}

static void test_classes(void **state)
{
    (void)state;
    size_t last = 1;
    for (size_t bytes = 1; bytes <= HARD_MOST; bytes++) {
        size_t class = hard_class_of(bytes);
        assert_true(class >= last && class < HARD_CLASSES);
        assert_true(hard_classes[class].bytes >= bytes && hard_classes[class - 1].bytes < bytes);
        last = class;
    }
}

/* ---- Memory that is not the system's ---- */

/* What is taken is full of 7s, and may be reached as long as it is the provider's. */
static char stock[64 << 20] __attribute__((aligned(4096)));
static size_t stock_taken;

static void *stock_take(const struct provider *provider, size_t bytes, size_t alignment)
{
    (void)provider;
    size_t at = align_up(stock_taken, alignment);
    if (at + bytes > sizeof(stock))
        return NULL;
    stock_taken = at + bytes;
    memset(stock + at, 7, bytes);
    return stock + at;
}

static bool stock_give(const struct provider *provider, void *start, size_t bytes)
{
    (void)provider;
    memset(start, 7, bytes); /* faults if a guard is left in it */
    return true;
}

static bool stock_purge(const struct provider *provider, void *start, size_t bytes)
{
    (void)provider, (void)start, (void)bytes;
    return false;
}

static void test_other_memory(void **state)
{
    (void)state;
    static const struct provider provider = {
        .take = stock_take, .give = stock_give, .purge = stock_purge, .unclean = true};
    struct heap_settings settings = {.provider = &provider, .hardened = true};
    struct heap *other = heap_create(&settings);
    assert_non_null(other);
    stderr_capture();
    for (size_t round = 0; round < 40; round++) {
        char *block = heap_alloc_in(other, large);
        assert_non_null(block);
        for (size_t i = 0; i < large; i++)
            assert_int_equal(block[i], 0);
        memset(block, 1, large);
        heap_free(block);
        for (size_t i = 0; i < SIZES; i++)
            heap_free(heap_alloc_in(other, sizes[i]));
    }
    assert_string_equal(stderr_restore(), "");
    heap_destroy(other);
}

int main(void)
{
#define ON_HEAP(name) cmocka_unit_test_setup_teardown(name, make_heap, end_heap)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_memory),
        ON_HEAP(test_overflow_by_one),
        ON_HEAP(test_underflow),
        ON_HEAP(test_blocks_have_their_bytes_and_no_more),
        ON_HEAP(test_free_is_complete),
        ON_HEAP(test_sizes_that_are_said),
        ON_HEAP(test_written_after_free),
        ON_HEAP(test_underflow_of_a_zone),
        ON_HEAP(test_written_after_trim),
        ON_HEAP(test_written_is_not_handed_out),
        ON_HEAP(test_freed_blocks_are_zero),
        ON_HEAP(test_addresses_wait),
        ON_HEAP(test_quarantine_is_bounded),
        ON_HEAP(test_order_is_random),
        ON_HEAP(test_classes_keep_their_addresses),
        ON_HEAP(test_guards),
        ON_HEAP(test_pages_stay_away),
        ON_HEAP(test_pages_go_back),
        ON_HEAP(test_last_is_next),
        ON_HEAP(test_large_blocks_come_back),
        ON_HEAP(test_large_blocks_stay_mapped),
        ON_HEAP(test_large_blocks_of_many_lengths),
        ON_HEAP(test_whole_slabs_go),
        ON_HEAP(test_check_finds),
        ON_HEAP(test_resize),
        ON_HEAP(test_what_grows_by_little_moves_seldom),
        ON_HEAP(test_alignment),
        ON_HEAP(test_orphans_come_back),
        ON_HEAP(test_classes),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
