/*
 * Tests of what each layer does when the system has no memory to give for its descriptors. The
 * processes that run out are children; sanitizers need too much address space for it.
 */
#include "page_heap_support.h"

#include <sys/mman.h>

#include "exhaustion_support.h"
#include "heap_calls.h"
#include "meta/meta.h"
#include "meta/page_map.h"
#include "platform/memory.h"

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
    CHILD_CHECK(arenas_alloc_cell(&few, 5000, 16, CELLS_NEW, &misuse, &dirty) == NULL);
    CHILD_CHECK(magazine_new(0) == NULL);
    CHILD_CHECK(cache_new(&few, false) == NULL);
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
        ROW(without_descriptors_nothing_breaks),
        ROW(without_a_page_map_there_are_no_segments),
        ROW(without_a_page_map_huge_blocks_are_found_in_their_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
