/*
 * A thread's newest object: a free is one object late, as fast.h says. Here is what the fast path
 * leaves: there is no room for the one before, or none is before.
 */
#include "magazine/shared.h"

bool cache_put_slow(struct cache *cache, uintptr_t address, size_t class)
{
    size_t class_before = cache->newest_class;
    if (class_before != 0 && cache_is_full(cache, class_before))
        cache_make_room(cache, class_before);
    if (UNLIKELY(!object_is_live(address, class)))
        return false;
    /* Now, as a report of what was misused may run a handler that frees. */
    uintptr_t before = cache->newest, *top = cache->top[cache->newest_class];
    class_before = cache->newest_class;
    *object_key_word(address) = object_key(address);
    cache_set_newest(cache, address, class);
    if (LIKELY(top[-1] >= MARK_LIMIT)) {
        top[-1] = before;
        cache_set_top(cache, class_before, top - 1);
    } else if (before != 0 && shared_put(cache->arenas, before, class_before, true) != SHARED_PUT) {
        slabs_free(&before, 1, "free");
    }
    return true;
}
