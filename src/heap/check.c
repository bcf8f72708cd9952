/*
 * Walking whole heaps, in search of an invariant that does not hold. See heap.h.
 */
#include "platform/check.h"

#include "heap/thread.h"
#include "heap/user_heaps.h"

const char *heap_check_of(struct heap *heap)
{
    const struct cache *cache = heap_cache_if_any(heap);
    check_begin();
    const char *wrong = cache_check(cache);
    if (wrong == NULL)
        wrong = arenas_check(&heap->arenas);
    return wrong != NULL ? wrong : spans_check(&heap->spans);
}

static bool check_next(struct heap *heap, void *wrong)
{
    *(const char **)wrong = heap_check_of(heap);
    return *(const char **)wrong != NULL;
}

const char *heap_check(void)
{
    heap_init();
    const char *wrong = heap_check_of(&heap_default);
    if (wrong == NULL)
        heaps_find(check_next, &wrong);
    return wrong;
}
