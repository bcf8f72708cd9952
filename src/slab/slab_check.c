/*
 * The invariants of slabs and bins. See slab.h.
 */
#include "base/bits.h"
#include "platform/check.h"
#include "slab/slab.h"

/* Whether a free object still carries its key. */
static const char *object_check(const struct page_heap *page_heap, uintptr_t object)
{
    if (page_heap->untouched || *object_key_word(object) == object_key(object))
        return NULL;
    return check_found((const void *)object, "a small block was written to when it was free");
}

bool object_waits(const struct page_heap *page_heap, size_t class, uintptr_t address)
{
    return page_map_covers(address) && page_map_class_call(address) == class_byte(page_heap, class) &&
           on_grid(address, class) && *object_key_word(address) == object_key(address);
}

const char *objects_check(const struct page_heap *page_heap, size_t class, const uintptr_t *objects,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (page_map_class_call(objects[i]) != class_byte(page_heap, class))
            return check_found((const void *)objects[i],
                               "a magazine holds an object of another class");
        const char *wrong = object_check(page_heap, objects[i]);
        if (wrong != NULL)
            return wrong;
    }
    return NULL;
}

static const char *slab_check_objects(const struct bin *bin, const struct slab *slab)
{
    const char *wrong = NULL;
    for (size_t i = bitmap_next(slab->free_bits, slab_words(slab), 0);
         i < slab_words(slab) * 64 && wrong == NULL;
         i = bitmap_next(slab->free_bits, slab_words(slab), i + 1))
        wrong = object_check(bin->page_heap, slab_object(slab, (unsigned)i));
    return wrong;
}

static const char *slab_check(const struct bin *bin, const struct slab *slab)
{
    size_t bits = 0;
    for (size_t i = 0; i < slab_words(slab); i++)
        bits += bit_count(slab->free_bits[i]);
    if (slab->fresh > slab->capacity || slab->free_count > slab->capacity)
        return "a slab counts more objects than it has";
    if (bits + slab->capacity - slab->fresh != slab->free_count)
        return "a slab's bits and its count of free objects differ";
    if (bitmap_next(slab->free_bits, slab_words(slab), slab->fresh) != slab_words(slab) * 64)
        return "a slab has a bit for an object that was never handed out";
    if (slab->span.owner != bin || slab->span.class != bin->class)
        return "a slab stands in another bin's list";
    return slab_check_objects(bin, slab);
}

const char *bin_check(struct bin *bin)
{
    lock_acquire(&bin->lock);
    const char *wrong = NULL;
    size_t free_objects = 0;
    if (bin->current != NULL) {
        wrong = slab_check(bin, bin->current);
        free_objects = bin->current->free_count;
    }
    for (unsigned i = 0; i < BIN_LEVELS; i++)
        LIST_EACH(node, &bin->level[i]) {
            const struct slab *slab = CONTAINER_OF(node, struct slab, span.link);
            if (wrong == NULL)
                wrong = slab_check(bin, slab);
            if (wrong == NULL && (slab->free_count == 0 || slab_level(slab) != i))
                wrong = "a slab stands in the wrong list";
            if (wrong == NULL && slab->settle_at != slab_settle_at(slab))
                wrong = "a slab does not know when it belongs elsewhere";
            free_objects += slab->free_count;
        }
    if (wrong == NULL && free_objects != bin->free_objects)
        wrong = "a bin's count of free objects is wrong";
    lock_release(&bin->lock);
    return wrong;
}
