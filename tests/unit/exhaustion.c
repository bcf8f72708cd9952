/*
 * Tests of what happens when the system has no memory to give: the heap as a whole, and each layer
 * when there is none for its descriptors. The processes that run out are children; sanitizers need
 * too much address space for it.
 */
#include "page_heap_support.h"

#include "heap/totals.h"
#include "heap_calls.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "meta/meta.h"
#include "meta/page_map.h"
#include "platform/memory.h"

static size_t mapped_bytes(void)
{
    char text[128] = {0};
    int file = open("/proc/self/statm", O_RDONLY);
    CHILD_CHECK(file >= 0 && read(file, text, sizeof(text) - 1) > 0);
    close(file);
    return strtoul(text, NULL, 10) * os_page_size();
}

/* From here on the process may map no more than `bytes` in addition. */
static void limit_memory(size_t bytes)
{
    struct rlimit limit = {mapped_bytes() + bytes, RLIM_INFINITY};
    CHILD_CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

/* ---- The heap ---- */

struct link {
    struct link *next;
};

/* Takes blocks of one size until there are no more. */
static struct link *take_all(size_t bytes, size_t *count)
{
    struct link *first = NULL, *block;
    *count = 0;
    while ((block = heap_alloc(bytes)) != NULL) {
        block->next = first;
        first = block;
        ++*count;
    }
    return first;
}

static void give_all(struct link *first)
{
    while (first != NULL) {
        struct link *next = first->next;
        heap_free(first);
        first = next;
    }
}

#define LIMIT (64 * MIB)

static void exhaust(void *argument)
{
    size_t bytes = *(const size_t *)argument, count, again;
    limit_memory(LIMIT);
    struct link *all = take_all(bytes, &count);
    CHILD_CHECK(heap_check() == NULL);
    CHILD_CHECK(count * bytes > LIMIT / 2); /* most of it was had */
    CHILD_CHECK(heap_alloc(bytes) == NULL);
    CHILD_CHECK(heap_resize(all, 2 * LIMIT) == NULL);
    give_all(all);
    CHILD_CHECK(heap_check() == NULL);
    /* All of it can be had again, in the same size and in one piece. */
    give_all(take_all(bytes, &again));
    CHILD_CHECK(again >= count - count / 16);
    void *one = heap_alloc(LIMIT / 2);
    CHILD_CHECK(one != NULL);
    heap_free(one);
    CHILD_CHECK(heap_check() == NULL);
}

TEST(the_heap_runs_out_of_memory_and_recovers)
{
    static const size_t sizes[] = {16,   64,    208,    700,    1024, 1500,
                                   5000, 40000, 120000, 200000, MIB,  3 * MIB};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        assert_succeeds(exhaust, (void *)&sizes[i]);
}

static void exhaust_at_random(void *argument)
{
    enum { BLOCKS = 2000 };
    static char *blocks[BLOCKS];
    uint64_t seed = *(const uint64_t *)argument;
    size_t failures = 0;
    limit_memory(LIMIT / 4);
    for (unsigned turn = 0; turn < 40000; turn++) {
        size_t i = random_below(&seed, BLOCKS);
        size_t bytes = 1 + random_below(&seed, (size_t)1 << (4 + random_below(&seed, 18)));
        if (blocks[i] != NULL && random_below(&seed, 3) == 0) {
            heap_free(blocks[i]);
            blocks[i] = NULL;
            continue;
        }
        char *block = blocks[i] == NULL ? heap_alloc(bytes) : heap_resize(blocks[i], bytes);
        failures += block == NULL;
        if (block != NULL)
            blocks[i] = block;
        if (turn % 500 == 0)
            CHILD_CHECK(heap_check() == NULL);
    }
    CHILD_CHECK(failures > 100);
    for (size_t i = 0; i < BLOCKS; i++)
        heap_free(blocks[i]);
    heap_trim(0);
    CHILD_CHECK(heap_check() == NULL);
    CHILD_CHECK(heap_totals().segments == 0 && heap_totals().huge == 0);
}

TEST(random_use_at_the_limit_breaks_nothing)
{
    for (uint64_t seed = 1; seed <= 3; seed++)
        assert_succeeds(exhaust_at_random, &seed);
}

/* ---- Descriptors ---- */

/* Takes all memory that there is for descriptors. */
static void exhaust_meta(void)
{
    limit_memory(0);
    for (size_t bytes = META_MOST; bytes >= META_LEAST; bytes /= 2)
        while (meta_alloc(bytes) != NULL)
            continue;
}

static void take_descriptors_away(void *argument)
{
    (void)argument;
    page_heap_begin(NULL);
    struct span *whole = span_get(30), *wall = span_get(1);
    struct span brought = {.units = 1};
    static struct arena arena;
    static struct arenas few;
    arenas_init(&few, &page_heap, &arena, 1);
    exhaust_meta();
    size_t dirty;
    uintptr_t object;
    struct misuse misuse;
    /* Cutting the middle out of a run takes a second descriptor, the beginning does not; it is at
     * no multiple of this, wherever the system has put the segment. */
    uintptr_t start = (uintptr_t)span_end(wall);
    CHILD_CHECK(!span_alloc(&page_heap, &brought, SPAN_LARGE, 1, 2 * (start & -start)));
    CHILD_CHECK(page_heap_check(&page_heap) == NULL);
    CHILD_CHECK(!span_shrink(&page_heap, whole, 10));
    CHILD_CHECK(whole->pages == 30);
    CHILD_CHECK(large_alloc(&page_heap, 100, MIN_ALIGN, &dirty) == NULL);
    CHILD_CHECK(large_alloc(&page_heap, 3 * MIB, MIN_ALIGN, &dirty) == NULL);
    CHILD_CHECK(arenas_refill(&few, 4, &object, 1) == 0);
    CHILD_CHECK(arenas_alloc_cell(&few, 5000, 16, &misuse, &dirty) == NULL);
    CHILD_CHECK(magazine_new(0) == NULL);
    CHILD_CHECK(cache_new(&few) == NULL);
    CHILD_CHECK(segment_new(NULL, &fake.provider, &meta_system, 16) == NULL);
    CHILD_CHECK(meta_map(1) == NULL);
    CHILD_CHECK(page_heap_check(&page_heap) == NULL && arenas_check(&few) == NULL);
    /* What needs no descriptor works, and what is freed serves again. */
    CHILD_CHECK(span_alloc(&page_heap, &brought, SPAN_LARGE, 1, PAGE_BYTES));
    CHILD_CHECK(span_extend(&page_heap, &brought, 2));
    span_put(wall);
    CHILD_CHECK(page_heap_check(&page_heap) == NULL);
    span_put(whole);
    CHILD_CHECK(large_alloc(&page_heap, 100, MIN_ALIGN, &dirty) != NULL);
    CHILD_CHECK(page_heap_check(&page_heap) == NULL);
}

TEST(without_descriptors_nothing_breaks)
{
    assert_succeeds(take_descriptors_away, NULL);
}

/* ---- The page map ---- */

/* Memory at an address for which the page map has no leaf. */
#define FAR ((char *)0x200000000000)

static void *far_take(const struct provider *provider, size_t bytes, size_t alignment)
{
    (void)provider;
    (void)alignment;
    return bytes <= 8 * MIB ? FAR : NULL;
}

static bool far_give(const struct provider *provider, void *start, size_t bytes)
{
    (void)provider;
    return start == FAR && os_unmap(start, bytes);
}

/* The memory, and some for descriptors. */
static void map_far_memory(void)
{
    CHILD_CHECK(mmap(FAR, 8 * MIB, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == FAR);
    meta_free(meta_alloc(META_LEAST), META_LEAST);
}

static void take_the_map_away(void *argument)
{
    (void)argument;
    static const struct provider far = {.take = far_take, .give = far_give};
    map_far_memory();
    limit_memory(0);
    CHILD_CHECK(!page_map_reserve(FAR, PAGE_BYTES));
    CHILD_CHECK(segment_new(NULL, &far, &meta_system, 1024) == NULL);
}

/* Huge blocks do without: they are found in their list. */
static void take_huge_without_the_map(void *argument)
{
    (void)argument;
    static const struct provider far = {.take = far_take, .give = far_give};
    static struct page_heap far_page_heap;
    size_t dirty;
    size_t bytes = 0;
    map_far_memory();
    page_heap_init(&far_page_heap, &far);
    far_page_heap.large_most = MIB;
    limit_memory(0);
    CHILD_CHECK(large_alloc(&far_page_heap, 8 * MIB, MIN_ALIGN, &dirty) == FAR);
    CHILD_CHECK(page_map_entry((uintptr_t)FAR) == 0);
    CHILD_CHECK(large_usable(&far_page_heap, (uintptr_t)FAR, &bytes).kind == MISUSE_NONE);
    CHILD_CHECK(bytes == 8 * MIB);
    CHILD_CHECK(large_usable(&far_page_heap, (uintptr_t)FAR + 16, &bytes).kind == MISUSE_INSIDE);
    CHILD_CHECK(large_usable(&far_page_heap, (uintptr_t)FAR + 8 * MIB, &bytes).kind ==
                MISUSE_UNKNOWN);
    CHILD_CHECK(large_free(&far_page_heap, (uintptr_t)FAR).kind == MISUSE_NONE);
    CHILD_CHECK(far_page_heap.huge_count == 0);
    CHILD_CHECK(large_free(&far_page_heap, (uintptr_t)FAR).kind != MISUSE_NONE);
}

TEST(without_a_page_map_there_are_no_segments)
{
    assert_succeeds(take_the_map_away, NULL);
}

TEST(without_a_page_map_huge_blocks_are_found_in_their_list)
{
    assert_succeeds(take_huge_without_the_map, NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(the_heap_runs_out_of_memory_and_recovers),
        ROW(random_use_at_the_limit_breaks_nothing),
        ROW(without_descriptors_nothing_breaks),
        ROW(without_a_page_map_there_are_no_segments),
        ROW(without_a_page_map_huge_blocks_are_found_in_their_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
