/*
 * Bins for tests. See slab_support.h.
 */
#include "slab_support.h"

void bin_begin(struct bin *bin, size_t class)
{
    bin_init(bin, &spans, class);
}

void assert_bin_sound(struct bin *bin)
{
    const char *wrong = bin_check(bin);
    if (wrong != NULL)
        fail_msg("%s", wrong);
    assert_spans_sound();
}

void objects_take(struct bin *bin, uintptr_t *objects, size_t count)
{
    while (count != 0) {
        size_t taken = bin_take(bin, objects, count, true);
        assert_in_range(taken, 1, count);
        objects += taken;
        count -= taken;
    }
}

size_t slab_take_all(struct bin *bin, uintptr_t *objects)
{
    objects_take(bin, objects, 1);
    size_t capacity = slab_at(objects[0])->capacity;
    objects_take(bin, objects + 1, capacity - 1);
    return capacity;
}
