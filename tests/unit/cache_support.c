/*
 * Thread caches for tests. See cache_support.h.
 */
#include "cache_support.h"

struct cache *cache;

int cache_begin(void **state)
{
    int result = arenas_begin(state);
    cache = cache_new(&arenas, false);
    return result;
}

int cache_end(void **state)
{
    if (cache != NULL)
        cache_free(cache);
    cache = NULL;
    assert_arenas_empty();
    return page_heap_end(state);
}

uintptr_t object_get(struct cache *of, size_t class)
{
    void *object = cache_pop(of, class);
    if (object == NULL)
        object = cache_refill(of, class);
    if (object == NULL)
        object = object_alloc(&arenas, class);
    return (uintptr_t)object;
}

void object_put(struct cache *of, uintptr_t object)
{
    size_t class = page_map_class(object);
    if (cache_push(of, object))
        return;
    if (of->top[class][-1] < MARK_LIMIT && cache_make_room(of, class))
        assert_true(cache_push(of, object));
    else
        object_free(object);
}

struct magazine *loaded_of(const struct cache *of, size_t class)
{
    size_t count;
    return loaded_anywhere(of, class, &count);
}

void assert_held(const struct cache *of)
{
    size_t held = quick_held(of->quick);
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        const struct magazine *loaded = loaded_of(of, class);
        if (loaded != NULL)
            held += cache_magazine_bytes(class, loaded->log);
        if (loaded != NULL && loaded->link != NULL)
            held += cache_magazine_bytes(class, loaded->link->log);
    }
    assert_int_equal(of->held_bytes, held);
}
