/*
 * Bins for tests. See slab_support.h.
 */
#include "slab_support.h"

void bin_begin(struct bin *bin, size_t class)
{
    bin_init(bin, &page_heap, class);
}

void assert_bin_sound(struct bin *bin)
{
    const char *wrong = bin_check(bin);
    if (wrong != NULL)
        fail_msg("%s", wrong);
    assert_page_heap_sound();
}

void objects_alloc(struct bin *bin, uintptr_t *objects, size_t count)
{
    while (count != 0) {
        size_t taken = bin_alloc(bin, objects, count, true);
        assert_in_range(taken, 1, count);
        objects += taken;
        count -= taken;
    }
}

size_t slab_take_all(struct bin *bin, uintptr_t *objects)
{
    objects_alloc(bin, objects, 1);
    size_t capacity = slab_at(objects[0])->capacity;
    objects_alloc(bin, objects + 1, capacity - 1);
    return capacity;
}
