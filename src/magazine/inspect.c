/*
 * A last look at what is free, when the process ends: a write to freed memory, or over the end of a
 * block into what is free behind it, is noticed when that is handed out again; what never is, here.
 *
 * Only what is known to be in use by nobody is looked at, and not all of it: a heap may have
 * gigabytes of free objects, and no program should end later for them. A program that ends soon
 * after its mistake, as a test does, has few.
 *
 * Cost: a word of each object in the magazines of the thread that ends the process, which go back
 * to their slabs then, and of at most INSPECT_MOST more for each class and arena.
 */
#include "magazine/cache_magazines.h"

static void objects_inspect(size_t class, const uintptr_t *objects, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uintptr_t object = objects[i];
        if (LIKELY(*object_key_word(object) == object_key(object)))
            continue;
        struct misuse misuse = misuse_of_object(MISUSE_STALE, object, class_bytes(class));
        *object_key_word(object) = object_key(object); /* it is said once */
        misuse_report("exit", &misuse);
        return;
    }
}

void cache_inspect(struct cache *cache)
{
    objects_inspect(cache->newest_class, &cache->newest, cache->newest != 0);
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        size_t count;
        const struct magazine *loaded = loaded_anywhere(cache, class, &count);
        if (loaded == NULL)
            continue;
        struct magazine *spare = loaded->link;
        objects_inspect(class, cache->top[class], count);
        if (spare != NULL)
            objects_inspect(class, magazine_begin(spare), spare->count);
    }
}

/* Objects: of one class, or cells, of one arena, in all some microseconds of the processor. */
enum { INSPECT_MOST = 128 };

void arenas_inspect(struct arenas *arenas)
{
    struct misuse misuse;
    struct arena_class *at;
    struct cells *cells;
    for (size_t class = 1; class < CLASS_COUNT; class++)
        for (unsigned i = 0; (at = arena_class_next(arenas, &i, class)) != NULL;) {
            bin_inspect(&at->bin, INSPECT_MOST, &misuse);
            misuse_report("exit", &misuse);
        }
    for (unsigned i = 0; (cells = arena_cells_next(arenas, &i)) != NULL;) {
        cells_inspect(cells, INSPECT_MOST, &misuse);
        misuse_report("exit", &misuse);
    }
}
