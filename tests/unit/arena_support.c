/*
 * Arenas for tests. See arena_support.h.
 */
#include "arena_support.h"

#include <sched.h>
#include <string.h>

struct arenas arenas;
unsigned arenas_here;
static struct arena first, second;

static int begin(void **state, unsigned count)
{
    int result = page_heap_begin(state);
    memset(&arenas, 0, sizeof(arenas));
    memset(&first, 0, sizeof(first));
    memset(&second, 0, sizeof(second));
    arenas_init(&arenas, &page_heap, &first, count);
    arenas_here = 0;
    if (count == 2) {
        arenas.list[1] = &second;
        arenas.end = 2;
    }
    return result;
}

void arenas_of_two_threads(void)
{
    unsigned cpu = os_cpu();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    arenas.threads = 2;
    arenas_here = cpu % 2;
    if (arenas_here != 0)
        arenas_swap();
}

int arenas_begin(void **state)
{
    return begin(state, 1);
}

int two_arenas_begin(void **state)
{
    return begin(state, 2);
}

void arenas_swap(void)
{
    struct arena *arena = arenas.list[0];
    arenas.list[0] = arenas.list[1];
    arenas.list[1] = arena;
}

void assert_arenas_sound(void)
{
    const char *wrong = arenas_check(&arenas);
    if (wrong != NULL)
        fail_msg("%s", wrong);
    assert_page_heap_sound();
}

void assert_arenas_empty(void)
{
    assert_arenas_sound();
    arenas_trim(&arenas);
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        struct arena_totals totals = arenas_totals(NULL, &arenas, class);
        ASSERT_THAT(totals.slabs + totals.total + totals.free + totals.waiting == 0, "class %zu",
                    class);
    }
    assert_int_equal(arenas_cell_totals(NULL, &arenas).bytes, 0);
    assert_int_equal(arenas_cell_totals(NULL, &arenas).free, 0);
    assert_int_equal(arenas.magazine_bytes, 0);
    assert_page_heap_empty();
}

struct magazine *get_full(size_t class)
{
    struct magazine *none = NULL;
    return arenas_get_full(&arenas, class, &none);
}

bool put_full(size_t class, struct magazine *magazine)
{
    struct magazine *empty = NULL;
    bool put = arenas_put_full(&arenas, class, magazine, &empty);
    if (empty != NULL)
        magazine_free(empty);
    return put;
}

struct magazine *magazine_filled(size_t class)
{
    struct magazine *magazine = magazine_new(size_classes[class].magazine_log);
    assert_non_null(magazine);
    size_t capacity = magazine_capacity(magazine->log);
    uintptr_t *begin = magazine_begin(magazine);
    struct bin *bin = &class_in(0, class)->bin;
    size_t count = bin->page_heap == NULL ? arenas_refill(&arenas, class, begin, 1) : 0;
    while (count < capacity) { /* not arenas_refill: what waits in depots stays there */
        size_t got = bin_alloc(bin, begin + count, capacity - count, true);
        assert_in_range(got, 1, capacity - count);
        count += got;
    }
    magazine->count = (uint32_t)capacity;
    return magazine;
}

void magazine_drain(struct magazine *magazine)
{
    slabs_free(magazine_begin(magazine), magazine_capacity(magazine->log), "free");
    magazine_free(magazine);
}
